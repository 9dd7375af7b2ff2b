"""What is asked, of what, with which answer, and what stands in for a source that was not used."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from gradwhy.flow import SourceFact, Status

PARAMS = 'p = {"x": jnp.array([0.5, -1.5, 2.5]), "w": jnp.array([1.0, 2.0, 3.0])}\n'


def line_of(span: object) -> int | None:
    return None if span is None else span.line - 3  # type: ignore[attr-defined, no-any-return]


def test_leaves_are_named_by_the_users_expression_and_by_their_path(observe: Callable[[str], list]) -> None:
    (told,) = observe(
        "weights = {'dense': {'kernel': jnp.ones((2, 2)), 'bias': jnp.zeros(2)}}\n"
        "def loss(params, x):\n    return jnp.sum(x @ params['dense']['kernel'])\n"
        "jax.grad(loss)(weights, jnp.ones(2))\n"
    )
    asked = told.asked("weights['dense']['bias']")
    assert "params['dense']['bias']" in asked.source.aliases
    assert (asked.source.class_name, asked.source.shape) == ("Array", (2,))
    assert told.question.target == "loss"
    assert line_of(told.question.span) == 4
    assert told.statuses == {"weights['dense']['bias']": Status.ZERO, "weights['dense']['kernel']": Status.OK}


@pytest.mark.parametrize(
    ("ask", "kind"),
    [
        ("jax.grad(loss)(p)", "jax.grad"),
        ("jax.value_and_grad(loss)(p)", "jax.value_and_grad"),
        ("jax.grad(lambda p: (loss(p), p['x']), has_aux=True)(p)", "jax.grad"),
        ("jax.value_and_grad(lambda p: (loss(p), 1), has_aux=True)(p)", "jax.value_and_grad"),
        ("jax.grad(lambda a, p: loss(p), argnums=1)(3.0, p)", "jax.grad"),
        ("jax.grad(lambda a, p: loss(p), (-1,))(3.0, p)", "jax.grad"),
        ("jax.jacrev(lambda p: loss(p) * jnp.ones(2))(p)", "jax.jacrev"),
        ("jax.jacfwd(lambda p: loss(p) * jnp.ones(2))(p)", "jax.jacfwd"),
        ("jax.jacobian(loss)(p)", "jax.jacobian"),
        ("jax.vjp(loss, p)[1](1.0)", "jax.vjp"),
        ("jax.jit(jax.grad(loss))(p)", "jax.grad"),
        ("jax.vmap(jax.grad(loss))(jax.tree.map(lambda a: a[None], p))", "jax.grad"),
    ],
)
def test_every_way_to_ask_gets_the_same_answer(ask: str, kind: str, observe: Callable[[str], list]) -> None:
    (told,) = observe(
        PARAMS + "def loss(p):\n    return jnp.sum(jax.lax.stop_gradient(p['x']) * p['w'])\n" + ask + "\n"
    )
    assert told.question.kind == kind
    found = {name[-5:]: status for name, status in told.statuses.items()}
    assert found == {"['x']": Status.ZERO, "['w']": Status.OK}
    (lost,) = [name for name in told.statuses if name.endswith("['x']")]
    assert told.barriers(lost) == [("stopped", 3)]


def test_a_pulled_back_zero_is_no_missing_gradient(observe: Callable[[str], list]) -> None:
    (told,) = observe("value, pull = jax.vjp(lambda x: x * 2.0, jnp.ones(3))\npull(jnp.zeros(3))\n")
    assert set(told.statuses.values()) == {Status.OK}


def test_a_pullback_that_nobody_calls_asks_nothing(observe: Callable[[str], list]) -> None:
    assert observe("jax.vjp(lambda x: x * 2.0, jnp.ones(3))\n") == []


def test_a_rule_that_pulls_back_itself_is_seen_whole(observe: Callable[[str], list]) -> None:
    told = observe(
        "@jax.custom_vjp\ndef f(x, a):\n    return jnp.sin(x) * a\n"
        "def there(x, a):\n    return f(x, a), (x, a)\n"
        "def back(kept, g):\n    _, pull = jax.vjp(lambda x: jnp.sin(x) * kept[1], kept[0])\n"
        "    return pull(g)[0], jnp.zeros_like(kept[1])\n"
        "f.defvjp(there, back)\np = {'x': jnp.ones(3), 'a': jnp.array(2.0)}\n"
        "jax.grad(lambda p: jnp.sum(f(p['x'], p['a'])))(p)\n"
    )
    inner, outer = told
    assert inner.question.kind == "jax.vjp" and set(inner.statuses.values()) == {Status.OK}
    assert outer.statuses == {"p['a']": Status.ZERO, "p['x']": Status.OK}
    assert outer.barriers("p['a']") == [("custom", 8)]


def test_a_healthy_path_makes_a_source_healthy_however_many_are_cut(observe: Callable[[str], list]) -> None:
    (told,) = observe(
        PARAMS
        + "def loss(p):\n    h = jnp.tanh(p['x'])\n    s = h + jax.lax.stop_gradient(jnp.round(h) - h)\n"
        + "    return jnp.sum(s * p['w'])\njax.grad(loss)(p)\n"
    )
    assert set(told.statuses.values()) == {Status.OK}
    assert told.graph is None


def test_under_jit_a_path_that_is_whole_is_healthy_and_asked_once(observe: Callable[[str], list]) -> None:
    told = observe(
        PARAMS
        + "step = jax.jit(jax.grad(lambda p: jnp.sum(jax.nn.relu(p['x']) * p['w'])))\n"
        + "for _ in range(3):\n    step(p)\n"
    )
    assert [set(t.statuses.values()) for t in told] == [{Status.OK}]


def test_the_same_question_in_a_loop_has_the_same_key(observe: Callable[[str], list]) -> None:
    told = observe(
        PARAMS
        + "loss = lambda p: jnp.sum(p['x'])\n"
        + "for _ in range(3):\n    jax.grad(loss)(p)\n"
        + "jax.grad(loss)(p)\n"
    )
    keys = [t.answer.key for t in told]
    assert keys[0] == keys[1] == keys[2] != keys[3]


def test_a_gradient_that_is_not_finite_is_cut_where_it_turned_so(observe: Callable[[str], list]) -> None:
    (told,) = observe(
        "def loss(x):\n    h = jnp.sum(jnp.square(x))\n    length = jnp.sqrt(h)\n    return length * 2.0\n"
        "x = jnp.zeros(3)\njax.grad(loss)(x)\n"
    )
    assert told.statuses == {"x": Status.NAN}
    assert told.barriers("x") == [("not-finite", 3)]


def test_a_gradient_that_is_flat_is_cut_where_it_turned_zero(observe: Callable[[str], list]) -> None:
    (told,) = observe(
        PARAMS + "def loss(p):\n    h = p['x'] * 0.5\n    r = jax.nn.relu(h - 9.0)\n    return jnp.sum(r * p['w'])\n"
        "jax.grad(loss)({'x': p['x'], 'w': p['w']})\n"
    )
    assert set(told.statuses.values()) == {Status.ZERO}
    assert told.barriers("p['x']") == [("flat", 4)]
    assert told.barriers("p['w']") == [("flat", 5)]


def test_a_zero_that_cannot_be_shown_leaves_the_path_whole(observe: Callable[[str], list]) -> None:
    (told,) = observe("x = jnp.array(2.0)\njax.grad(lambda x: x * 3.0 - x * 3.0)(x)\n")
    assert told.statuses == {"x": Status.ZERO}
    assert told.barriers("x") == []


def test_a_later_zero_is_watched_fully_the_next_time(observe: Callable[[str], list]) -> None:
    told = observe(
        "def loss(x):\n    return jnp.sum(jax.nn.relu(x))\n"
        "for start in (1.0, 1.0, -1.0, -1.0):\n    jax.grad(loss)(jnp.array([start, start]))\n"
    )
    assert [list(t.statuses.values()) for t in told] == [[Status.OK], [Status.OK], [Status.ZERO], [Status.ZERO]]
    assert told[2].barriers("x") == []
    assert told[3].barriers("x") == [("flat", 2)]


@pytest.mark.parametrize(
    ("way_out", "what"),
    [("np.asarray(h)", "numpy"), ("np.power(h, 2)", "numpy"), ("float(jnp.sum(h))", "float")],
)
def test_a_value_that_numpy_asks_for_ends_the_question(
    way_out: str, what: str, observe: Callable[[str], list], listening: object
) -> None:
    with pytest.raises(Exception, match=r"array|concrete"):
        observe(
            PARAMS
            + f"def loss(p):\n    h = jnp.tanh(p['x'])\n    back = {way_out}\n    return jnp.sum(back * p['w'])\n"
            "jax.grad(loss)(p)\n"
        )
    (told,) = listening.told  # type: ignore[attr-defined]
    assert len(listening.escapes) == 1  # type: ignore[attr-defined]
    assert told.statuses == {"p['x']": Status.ERROR, "p['w']": Status.OK}
    assert told.question.failure.kind == "left-framework"
    assert told.question.failure.op == what
    assert told.barriers("p['x']") == [("host", 4)]


def test_writing_into_a_numpy_buffer_is_a_way_out(observe: Callable[[str], list], listening: object) -> None:
    with pytest.raises(Exception, match="array"):
        observe(
            PARAMS + "buffer = np.zeros(3)\ndef loss(p):\n    buffer[:] = jnp.tanh(p['x'])\n"
            "    return jnp.sum(buffer * p['w'])\njax.grad(loss)(p)\n"
        )
    (told,) = listening.told  # type: ignore[attr-defined]
    assert told.barriers("p['x']") == [("host", 4)]


def test_an_exception_of_the_programs_own_is_no_question(observe: Callable[[str], list], listening: object) -> None:
    with pytest.raises(ZeroDivisionError):
        observe("jax.grad(lambda x: x / (1 // 0))(1.0)\n")
    assert listening.told == [] and listening.escapes == []  # type: ignore[attr-defined]


def test_numpy_of_a_value_that_is_not_differentiated_is_no_question(
    observe: Callable[[str], list], listening: object
) -> None:
    with pytest.raises(Exception, match="array"):
        observe(
            "def step(x, data):\n    return jax.grad(lambda x: jnp.sum(x * np.asarray(data * 2.0)))(x)\n"
            "jax.jit(step)(jnp.ones(3), jnp.ones(3))\n"
        )
    assert listening.told == []  # type: ignore[attr-defined]


def test_an_integer_source_is_the_one_the_error_is_about(observe: Callable[[str], list], listening: object) -> None:
    with pytest.raises(TypeError, match="requires real"):
        observe("p = {'w': jnp.ones(2), 'n': jnp.array(3)}\njax.grad(lambda p: jnp.sum(p['w']))(p)\n")
    (told,) = listening.told  # type: ignore[attr-defined]
    assert told.statuses == {"p['n']": Status.ERROR, "p['w']": Status.OK}
    assert SourceFact.INTEGER in told.asked("p['n']").facts
    assert told.question.failure.kind == "integer-dtype"


def test_an_integer_that_the_program_allows_is_no_missing_gradient(observe: Callable[[str], list]) -> None:
    (told,) = observe(
        "p = {'w': jnp.ones(2), 'n': jnp.array(3)}\njax.grad(lambda p: jnp.sum(p['w']), allow_int=True)(p)\n"
    )
    assert set(told.statuses.values()) == {Status.OK}


def test_a_vector_is_told_as_such(observe: Callable[[str], list], listening: object) -> None:
    with pytest.raises(TypeError, match="scalar-output"):
        observe("x = jnp.ones(3)\njax.grad(lambda x: x * 2.0)(x)\n")
    (told,) = listening.told  # type: ignore[attr-defined]
    assert (told.statuses, told.question.failure.kind) == ({"x": Status.ERROR}, "non-scalar-target")


def test_the_array_itself_is_told_from_the_argument(observe: Callable[[str], list]) -> None:
    (told,) = observe(
        "x = jnp.array([0.5, -1.5])\nw = jnp.ones(2)\ndef loss(given, w):\n    h = x * 2.0\n    return jnp.sum(h * w)\n"
        "jax.grad(loss, argnums=(0, 1))(x, w)\n"
    )
    asked = told.asked("x")
    assert (asked.status, asked.stand_in, asked.stand_in_kind) == (Status.ZERO, "x", "same-object")
    assert line_of(asked.stand_in_span) == 4
    assert told.barriers("x") == [("unwatched", 4)]


def test_the_array_itself_is_found_in_a_compiled_loss(observe: Callable[[str], list]) -> None:
    (told,) = observe(
        "x = jnp.array([0.5, -1.5])\n@jax.jit\ndef loss(given):\n    return jnp.sum(x * 2.0) + jnp.sum(given) * 0.0\n"
        "class Model:\n    pass\n"
        "jax.grad(lambda given: jnp.sum(jax.jit(lambda: x * 2.0)()))(x)\n"
    )
    assert told.asked("x").stand_in_kind == "same-object"


def test_under_jit_the_argument_is_known_by_its_name(observe: Callable[[str], list]) -> None:
    (told,) = observe(
        "class Model:\n"
        "    def __init__(self):\n        self.params = {'scale': jnp.array(1.5), 'w': jnp.ones(2)}\n"
        "    def loss(self, params):\n        return self.params['scale'] * jnp.sum(params['w'])\n"
        "    def fit(self):\n        return jax.jit(jax.grad(self.loss))(self.params)\n"
        "Model().fit()\n"
    )
    asked = told.asked("params['scale']")
    assert (asked.stand_in, asked.stand_in_kind) == ("self.params['scale']", "same-name")
    assert told.barriers("params['scale']") == [("unwatched", 5)]


def test_a_value_made_before_is_read_from_the_source(observe: Callable[[str], list]) -> None:
    (told,) = observe(
        PARAMS
        + "half = p['x'] * 0.5\nmemory = {}\ndef write(p):\n    memory['h'] = jnp.tanh(half)\n"
        + "write(p)\ndef loss(p):\n    return jnp.sum(memory['h'] * p['w'])\njax.grad(loss)(p)\n"
    )
    asked = told.asked("p['x']")
    assert (asked.stand_in, asked.stand_in_kind) == ("memory['h']", "made-before")
    assert line_of(asked.stand_in_span) == 5
    assert told.barriers("p['x']") == [("before", 5)]
    path = told.path("p['x']")
    assert not path.regions[0].first.edge.is_observed


def test_a_copy_is_known_by_its_numbers_only_if_they_are_no_common_ones(observe: Callable[[str], list]) -> None:
    text = (
        "kept = {{}}\np = {{'w': jnp.ones(3), 's': jnp.array({number})}}\n"
        "kept.update({{k: jnp.asarray(np.array(v)) for k, v in p.items()}})\n"
        "def loss(p):\n    return jnp.sum(p['w']) * kept['s']\njax.grad(loss)(p)\n"
    )
    copied = observe(text.format(number="0.37"))[-1].asked("p['s']")
    assert (copied.stand_in, copied.stand_in_kind) == ("kept['s']", "same-values")
    assert observe(text.format(number="1.0"))[-1].asked("p['s']").stand_in is None


def test_a_parameter_of_a_later_phase_is_unused_and_no_path_leads_through_updates(
    observe: Callable[[str], list],
) -> None:
    told = observe(
        PARAMS
        + "def loss(p, step):\n    scale = p['x'] if step < 2 else jnp.ones(3)\n    return jnp.sum((scale * p['w']) ** 2)\n"
        + "for step in range(4):\n    grads = jax.grad(loss)(p, step)\n"
        + "    p = jax.tree.map(lambda a, g: a - 0.1 * g, p, grads)\n"
    )
    assert [t.statuses["p['x']"] for t in told] == [Status.OK, Status.OK, Status.ZERO, Status.ZERO]
    assert told[2].path("p['x']") is None
    assert told[2].asked("p['x']").stand_in is None


def test_what_was_computed_and_dropped_is_last_used_there(observe: Callable[[str], list]) -> None:
    (told,) = observe(
        PARAMS
        + "def body(h, t):\n    fresh = jnp.tanh(h * t)\n    return h, jnp.sum(h)\n"
        + "def loss(p):\n    h, sums = jax.lax.scan(body, p['w'], p['x'])\n    return jnp.sum(h) + jnp.sum(sums)\n"
        + "jax.grad(loss)(p)\n"
    )
    asked = told.asked("p['x']")
    assert asked.status is Status.ZERO
    assert line_of(asked.last_use) == 3


def test_a_loop_that_carries_the_cut_on_is_a_cycle(observe: Callable[[str], list]) -> None:
    (told,) = observe(
        PARAMS
        + "def body(h, _):\n    return jax.lax.stop_gradient(h) * 0.5 + 1.0, jnp.sum(h)\n"
        + "def loss(p):\n    h, sums = jax.lax.scan(body, p['x'], None, length=3)\n    return jnp.sum(h * p['w'])\n"
        + "jax.grad(loss)(p)\n"
    )
    assert told.barriers("p['x']") == [("stopped", 3)]
    carried = next(op for op in told.graph.ops if op.name == "scan" and len(op.inputs) == 2)
    later = {value for op in told.graph.ops if op.id > carried.id for value in op.outputs}
    assert {i.value for i in carried.inputs} - later, "one input comes from before the loop"


def test_a_gradient_of_a_gradient_is_of_the_second_order(observe: Callable[[str], list]) -> None:
    told = observe(
        "def inner(x, w):\n    return jnp.sum(jax.lax.stop_gradient(x) * w ** 2)\n"
        "def outer(p):\n    return jnp.sum(jax.grad(inner, argnums=1)(p['x'], p['w']))\n"
        + PARAMS
        + "jax.grad(outer)(p)\n"
    )
    assert told[0].statuses == {"p['w']": Status.OK}
    last = told[-1]
    assert last.statuses == {"p['x']": Status.ZERO, "p['w']": Status.OK}
    assert last.question.order == 2
    assert last.barriers("p['x']") == [("stopped", 2)]


def test_questions_of_another_thread_are_answered_apart(observe: Callable[[str], list]) -> None:
    told = observe(
        "import threading\n" + PARAMS + "def ask():\n    jax.grad(lambda p: jnp.sum(jnp.round(p['x'])) + 1.0)(p)\n"
        "threads = [threading.Thread(target=ask) for _ in range(4)]\n"
        "[t.start() for t in threads]\n[t.join() for t in threads]\n"
    )
    assert threading.active_count() >= 1
    assert [t.barriers("p['x']") for t in told] == [[("not-differentiable", 4)]] * 4

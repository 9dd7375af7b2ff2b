"""What JAX refuses, leaves out, or reads stale: the source that it is about, and the line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gradwhy.diagnose import explain
from gradwhy.flow import Finding, SourceFact, Status

Observe = Callable[[str], list]


def findings(told: list) -> list[Finding]:
    last = told[-1]
    assert last.graph is not None
    return explain(last.question, last.graph, 0)


def found(told: list) -> dict[str, tuple[str, set[int]]]:
    """The cause and the lines of what is said about each source, by its name."""
    lines = {}
    for finding in findings(told):
        spans = [finding.place, *(cut.span for cut in finding.cuts)]
        for source in finding.sources:
            lines[source.name] = (finding.cause, {span.line - 3 for span in spans if span is not None})
    return lines


def refused(observe: Observe, listening: object, text: str, wording: str) -> dict[str, tuple[str, set[int]]]:
    with pytest.raises(Exception, match=wording):
        observe(text)
    return found(listening.told)  # type: ignore[attr-defined]


P = "p = {'a': jnp.array(0.5), 'b': jnp.array(2.0)}\n"


@pytest.mark.parametrize("decorator", ["static_argnums=(1,)", "static_argnames=('rate',)"])
def test_a_traced_static_argument_is_closed_over_and_names_its_leaf(
    decorator: str, observe: Observe, listening: object
) -> None:
    text = (
        f"from functools import partial\n@partial(jax.jit, {decorator})\ndef scaled(x, rate):\n    return x * rate\n"
        + P
        + "def loss(p):\n    return scaled(p['a'], p['b'])\njax.grad(loss)(p)\n"
    )
    assert refused(observe, listening, text, "Non-hashable") == {"p['b']": ("closed-over", {7})}
    (told,) = listening.told  # type: ignore[attr-defined]
    assert told.question.failure.span.line - 3 == 2
    assert told.statuses["p['a']"] is Status.OK


def test_an_array_in_nondiff_argnums_is_a_matter_of_the_custom_rule(observe: Observe, listening: object) -> None:
    text = (
        "from functools import partial\n@partial(jax.custom_vjp, nondiff_argnums=(1,))\ndef f(x, e):\n    return x * e\n"
        "f.defvjp(lambda x, e: (x * e, x), lambda e, r, g: (g * e,))\n"
        + P
        + "jax.grad(lambda p: f(p['a'], p['b']))(p)\n"
    )
    assert refused(observe, listening, text, "nondiff_argnums") == {"p['b']": ("custom-gradient", {7})}


def test_a_custom_jvp_stops_what_nondiff_argnums_names(observe: Observe) -> None:
    told = observe(
        "from functools import partial\n@partial(jax.custom_jvp, nondiff_argnums=(1,))\ndef f(x, e):\n    return x * e\n"
        "@f.defjvp\ndef rule(e, primals, tangents):\n    return f(primals[0], e), tangents[0] * e\n"
        + P
        + "jax.grad(lambda p: f(p['a'], p['b']))(p)\n"
    )
    assert found(told) == {"p['b']": ("custom-gradient", {9})}


def test_a_callback_is_named_at_its_line_and_for_what_it_was_given(observe: Observe, listening: object) -> None:
    callback = "jax.pure_callback(np.sin, jax.ShapeDtypeStruct((), jnp.float32), p['a'])"
    text = P + f"def loss(p):\n    h = {callback}\n    return h * p['b']\njax.grad(loss)(p)\n"
    assert refused(observe, listening, text, "do not support JVP") == {"p['a']": ("left-framework", {3})}


def test_a_value_kept_from_an_earlier_call_is_a_write_into_state(observe: Observe, listening: object) -> None:
    text = (
        P + "class Model:\n    kept = None\n    def loss(self, p):\n        h = jnp.tanh(p['a'])\n"
        "        if self.kept is None:\n            self.kept = h\n        return self.kept * p['b']\n"
        "model = Model()\nfor _ in range(2):\n    jax.grad(model.loss)(p)\n"
    )
    assert refused(observe, listening, text, "unexpected tracer") == {"p['a']": ("state-write", {7, 8})}


def test_a_state_that_is_read_after_it_was_written_is_stale(observe: Observe) -> None:
    text = (
        "p = {{'writer': jnp.ones(3), 'reader': jnp.ones(3)}}\nmemory = {{'slot': jnp.array([0.1, 0.2, 0.3])}}\n"
        "def loss(p, memory):\n{body}"
        "    return jnp.sum(read), new\njax.grad(loss, has_aux=True)(p, memory)\n"
    )
    write, read = "    new = {'slot': jnp.tanh(p['writer'])}\n", "    read = memory['slot'] * p['reader']\n"
    assert found(observe(text.format(body=write + read))) == {"p['writer']": ("state-write", {5})}
    # What is read first and written for the next step is as it is meant.
    cause, _ = found(observe(text.format(body=read + write)))["p['writer']"]
    assert cause == "unused"


@pytest.mark.parametrize(("made", "line"), [("p['a'] * jnp.ones(2)", {3, 5}), ("(p['a'] * 1.0, {'aux': p['b']})", {5})])
def test_what_is_no_single_number_is_told_where_it_is_made_or_asked(
    made: str, line: set[int], observe: Observe, listening: object
) -> None:
    text = P + f"def loss(p):\n    value = {made}\n    return value\njax.grad(loss)(p)\n"
    told = refused(observe, listening, text, "scalar-output")
    assert told == {"p['a']": ("non-scalar-target", line), "p['b']": ("non-scalar-target", line)}
    (finding,) = findings(listening.told)  # type: ignore[attr-defined]
    assert finding.help is not None and finding.help.key.endswith("has-aux" if "aux" in made else "default")


def test_a_whole_number_as_target_is_cut_where_it_became_one(observe: Observe, listening: object) -> None:
    text = P + "def loss(p):\n    hits = p['a'] > 0\n    return jnp.sum(hits)\njax.grad(loss)(p)\n"
    told = refused(observe, listening, text, "requires real-valued outputs")
    assert told["p['a']"] == ("non-differentiable-op", {3})


def test_a_string_among_the_parameters_is_the_leaf_that_is_named(observe: Observe, listening: object) -> None:
    text = "p = {'w': jnp.ones(2), 'name': 'linear'}\njax.grad(lambda p: jnp.sum(p['w']))(p)\n"
    assert refused(observe, listening, text, "not a valid JAX type") == {"p['name']": ("integer-dtype", {1})}


def test_an_integer_leaf_is_placed_where_the_program_makes_it(observe: Observe, listening: object) -> None:
    text = (
        "def init():\n    return {\n        'w': jnp.ones(2),\n        'norm': {'count': jnp.array(0)},\n    }\n"
        "state = init()\njax.grad(lambda s: jnp.sum(s['w']))(state)\n"
    )
    assert refused(observe, listening, text, "requires real") == {"state['norm']['count']": ("integer-dtype", {4})}


def test_a_plain_number_that_is_used_cuts_and_one_that_is_shown_does_not(observe: Observe) -> None:
    told = observe(P + "def loss(p):\n    t = p['a'].item()\n    return t * p['b']\njax.grad(loss)(p)\n")
    assert found(told) == {"p['a']": ("left-framework", {3})}
    told = observe(P + "def loss(p):\n    print(p['a'].item())\n    return p['b'] * 2\njax.grad(loss)(p)\n")
    assert found(told)["p['a']"][0] == "unused"


def test_a_use_behind_a_condition_that_does_not_hold_is_named(observe: Observe) -> None:
    told = observe(
        P + "use = False\ndef extra(p):\n    return p['a'] * 2\ndef loss(p):\n    h = p['b']\n    if use:\n"
        "        h = h + extra(p)\n    return h\njax.grad(loss)(p)\n"
    )
    assert found(told) == {"p['a']": ("unused", {7})}


def test_what_a_scan_computes_and_drops_is_named_in_its_body(observe: Observe) -> None:
    told = observe(
        P + "def cell(p, h):\n    return jnp.tanh(h * p['a'])\n"
        "def loss(p):\n    def body(h, _):\n        new = cell(p, h)\n        return h * 0.9, h\n"
        "    h, _ = jax.lax.scan(body, p['b'], None, length=3)\n    return h\njax.grad(loss)(p)\n"
    )
    assert found(told) == {"p['a']": ("unused", {6})}


@pytest.mark.parametrize(
    "use",
    [
        "    db = g\n    b = b - 0.1 * db\n",
        "    named = dict(zip(('w', 'b'), [g]))\n",
        "    g = {'w': g}\n    g.get('b')\n",
    ],
)
def test_an_argument_that_is_not_asked_about_and_looked_for_in_the_answer(use: str, observe: Observe) -> None:
    told = observe(
        "def loss(w, b, x):\n    return jnp.mean((x * w + b) ** 2)\nw, b, x = jnp.array(1.0), jnp.array(0.5), jnp.ones(3)\n"
        "if True:\n    g = jax.grad(loss)(w, b, x)\n" + use
    )
    (finding,) = findings(told)
    assert found(told)["b"][0] == "not-watched" and finding.place is not None and finding.place.line - 3 == 5
    assert SourceFact.NOT_ASKED in told[-1].asked("b").facts


@pytest.mark.parametrize(
    "use",
    ["    w = w - 0.1 * g\n", "    print('b', b, g)\n", "    x = x + 1.0\n", "    g2 = {'w': g}\n    g2.get('w')\n"],
)
def test_an_argument_that_nobody_looks_for_is_data(use: str, observe: Observe) -> None:
    (told,) = observe(
        "def loss(w, b, x):\n    return jnp.mean((x * w + b) ** 2)\nw, b, x = jnp.array(1.0), jnp.array(0.5), jnp.ones(3)\n"
        "if True:\n    g = jax.grad(loss)(w, b, x)\n" + use
    )
    assert told.statuses == {"w": Status.OK}


def test_the_components_of_one_gradient_are_no_other_arguments(observe: Observe) -> None:
    (told,) = observe(
        "def f(point, scale):\n    return scale * point[0] * point[1]\n"
        "dx, dy = jax.grad(f)(jnp.array([1.0, 2.0]), jnp.array(3.0))\n"
    )
    assert set(told.statuses.values()) == {Status.OK} and len(told.statuses) == 1


def test_a_hessian_that_is_zero_by_nature_is_a_note_and_a_cut_is_not(observe: Observe) -> None:
    linear = findings(observe("jax.hessian(lambda x: 3.0 * jnp.sum(x))(jnp.ones(2))\n"))
    assert [f.severity.value for f in linear] == ["note"]
    told = observe(P + "jax.hessian(lambda p: p['a'] ** 2 * jax.lax.stop_gradient(p['b']) ** 2)(p)\n")
    assert found(told) == {"p['b']": ("detached", {2})}
    assert told[-1].statuses["p['a']"] is Status.OK

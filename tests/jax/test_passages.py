"""What every kind of op does to a gradient, in the graph that is drawn of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gradwhy.backends.jax import ops
from gradwhy.flow import Barrier, Passage, Status

LOSS = """
def loss(p):
    h = p["x"] * 2.0
    {between}
    return jnp.sum(c * p["w"])
p = {{"x": jnp.array([0.5, -1.5, 2.5]), "w": jnp.array([1.0, 2.0, 3.0])}}
jax.grad(loss)(p)
"""

CUTS = [
    ("stop_gradient", "c = jax.lax.stop_gradient(h)", "stopped"),
    ("round", "c = jnp.round(h)", "not-differentiable"),
    ("floor", "c = jnp.floor(h)", "not-differentiable"),
    ("sign", "c = jnp.sign(h)", "not-differentiable"),
    ("argmax", "c = jax.nn.one_hot(jnp.argmax(h), 3)", "not-differentiable"),
    ("cast", "c = h.astype(jnp.int32).astype(jnp.float32)", "integer"),
    ("comparison", "c = (h > 0).astype(jnp.float32)", "condition"),
    ("choice", "c = jnp.where(h > 0, 2.0, 3.0)", "condition"),
    ("nested jit", "c = jax.jit(lambda v: jax.lax.stop_gradient(v) * 2.0)(h)", "stopped"),
    ("vmap", "c = jax.vmap(lambda v: jnp.round(v) * 2.0)(h)", "not-differentiable"),
    ("checkpoint", "c = jax.checkpoint(lambda v: jnp.round(jnp.sin(v)))(h)", "not-differentiable"),
    ("cond", "c = jax.lax.cond(True, lambda v: jnp.round(v), lambda v: jnp.floor(v), h)", "not-differentiable"),
    ("scan", "c = jax.lax.scan(lambda v, _: (jnp.floor(v) * 0.5, None), h, None, length=2)[0]", "not-differentiable"),
]


@pytest.mark.parametrize(("between", "barrier"), [c[1:] for c in CUTS], ids=[c[0] for c in CUTS])
@pytest.mark.parametrize("is_compiled", [False, True], ids=["eager", "jit"])
def test_a_cut_is_found_on_its_line(
    between: str, barrier: str, is_compiled: bool, observe: Callable[[str], list]
) -> None:
    text = LOSS.format(between=between)
    (told,) = observe(text.replace("jax.grad(loss)", "jax.jit(jax.grad(loss))") if is_compiled else text)
    (lost,) = [name for name, status in told.statuses.items() if status is not Status.OK]
    assert lost.endswith("['x']")
    assert told.statuses[lost] is Status.ZERO
    assert told.barriers(lost) == [(barrier, 4)]


def test_an_index_carries_nothing_and_the_cast_before_it_is_a_cut_of_its_own(observe: Callable[[str], list]) -> None:
    (told,) = observe(
        """
table = jnp.arange(4.0)
def loss(p):
    place = jnp.floor(p["x"]).astype(jnp.int32)
    return table[place] * p["w"]
p = {"x": jnp.array(1.5), "w": jnp.array(3.0)}
jax.grad(loss)(p)
"""
    )
    assert told.barriers("p['x']") == [("not-differentiable", 4), ("integer", 4), ("index", 5)]


def test_an_integer_buffer_makes_what_is_written_into_it_integer(observe: Callable[[str], list]) -> None:
    (told,) = observe(
        """
def loss(p):
    kept = jnp.zeros(3, jnp.int32).at[0].set(p["x"].astype(jnp.int32))
    return jnp.sum(kept * p["w"])
p = {"x": jnp.array(1.5), "w": jnp.array(3.0)}
jax.grad(loss)(p)
"""
    )
    assert told.barriers("p['x']") == [("integer", 3)]


def test_of_several_outputs_each_has_its_own_passage(observe: Callable[[str], list]) -> None:
    (told,) = observe(
        """
def loss(p):
    best, where = jax.lax.top_k(p["x"], 1)
    _, other = jax.lax.top_k(p["y"], 1)
    return jnp.sum(best * where * other)
p = {"x": jnp.array([1.0, 2.0]), "y": jnp.array([1.0, 2.0])}
jax.grad(loss)(p)
"""
    )
    assert told.statuses == {"p['x']": Status.OK, "p['y']": Status.ZERO}
    assert told.barriers("p['y']") == [("not-differentiable", 4)]


def test_a_rule_that_returns_nothing_for_an_input_is_a_custom_cut_at_the_rule(observe: Callable[[str], list]) -> None:
    text = """
@jax.custom_vjp
def scaled(x, a):
    return a * x
def back(kept, g):
    x, a = kept
    return g * a, {nothing}
scaled.defvjp(lambda x, a: (a * x, (x, a)), back)
def loss(p):
    return jnp.sum(scaled(p["x"], p["a"]))
p = {{"x": jnp.array([1.0, 2.0]), "a": jnp.array(3.0)}}
{ask}(p)
"""
    zeros, none = "jnp.zeros_like(a)", "None"
    for nothing, ask, line in (
        (zeros, "jax.grad(loss)", 7),
        (zeros, "jax.jit(jax.grad(loss))", 7),
        (none, "jax.grad(loss)", 10),
        (none, "jax.jit(jax.grad(loss))", 10),
    ):
        told = observe(text.format(nothing=nothing, ask=ask))[-1]
        (lost,) = [name for name, status in told.statuses.items() if status is not Status.OK]
        assert told.statuses[lost] is Status.ZERO and lost.endswith("['a']"), (nothing, ask)
        assert told.barriers(lost) == [("custom", line)], (nothing, ask)


def test_a_forward_rule_that_gives_zero_is_a_custom_cut(observe: Callable[[str], list]) -> None:
    (told,) = observe(
        """
@jax.custom_jvp
def flat(x):
    return jnp.sin(x)
@flat.defjvp
def rule(primals, tangents):
    return flat(*primals), jnp.zeros_like(primals[0])
def loss(p):
    return jnp.sum(flat(p["x"])) + p["w"]
p = {"x": jnp.array([1.0, 2.0]), "w": jnp.array(3.0)}
jax.grad(loss)(p)
"""
    )
    assert told.barriers("p['x']") == [("custom", 9)]
    path = told.path("p['x']")
    assert path is not None and path.regions[0].first.op.name == "flat"


def test_a_loop_without_a_reverse_is_not_registered(observe: Callable[[str], list], listening: object) -> None:
    with pytest.raises(ValueError, match="Reverse-mode differentiation does not work"):
        observe(
            """
def loss(p):
    y = jax.lax.while_loop(lambda v: jnp.sum(v) < 50.0, lambda v: v * 2.0, p["x"])
    return jnp.sum(y) + p["w"]
p = {"x": jnp.array([1.0, 2.0]), "w": jnp.array(3.0)}
jax.grad(loss)(p)
"""
        )
    (told,) = listening.told  # type: ignore[attr-defined]
    assert told.question.failure.kind == "no-gradient-registered"
    assert told.statuses["p['x']"] is Status.ERROR
    assert told.barriers("p['x']") == [("not-registered", 3)]


def test_the_same_loop_flows_forward(observe: Callable[[str], list]) -> None:
    (told,) = observe(
        """
def double(x):
    return jax.lax.while_loop(lambda v: jnp.sum(v) < 50.0, lambda v: v * 2.0, x)
jax.jit(jax.jacfwd(double))(jnp.array([1.0, 2.0]))
"""
    )
    assert set(told.statuses.values()) == {Status.OK}


def test_an_op_of_which_jax_kept_no_derivative_is_cut_whatever_we_know_of_it(observe: Callable[[str], list]) -> None:
    """`ops` has no entry for this primitive; that JAX gave its output no tangent says enough."""
    (told,) = observe(
        """
from jax.extend.core import Primitive
from jax.interpreters import ad, mlir
odd = Primitive("odd")
odd.def_impl(lambda x: x * 3.0)
odd.def_abstract_eval(lambda x: x)
ad.primitive_jvps[odd] = lambda primals, tangents: (odd.bind(*primals), ad.Zero(jax.typeof(primals[0])))
def loss(p):
    return jnp.sum(odd.bind(p["x"])) + p["w"]
p = {"x": jnp.array([1.0, 2.0]), "w": jnp.array(3.0)}
jax.grad(loss)(p)
"""
    )
    assert told.barriers("p['x']") == [("not-differentiable", 9)]


@pytest.mark.parametrize(
    ("name", "position", "read", "made", "edge"),
    [
        ("mul", 0, "float32", "float32", (Passage.FLOWS, None)),
        ("mul", 0, "bfloat16", "bfloat16", (Passage.FLOWS, None)),
        ("mul", 1, "complex64", "complex64", (Passage.FLOWS, None)),
        ("mul", 0, "int32", "float32", (Passage.CUT, Barrier.INTEGER)),
        ("gather", 1, "int32", "float32", (Passage.NOTHING, Barrier.INDEX)),
        ("scatter", 1, "int32", "float32", (Passage.NOTHING, Barrier.INDEX)),
        ("scatter", 2, "int32", "int32", (Passage.CUT, Barrier.INTEGER)),
        ("scatter-add", 2, "float32", "float32", (Passage.FLOWS, None)),
        ("dynamic_slice", 2, "int32", "float32", (Passage.NOTHING, Barrier.INDEX)),
        ("dynamic_update_slice", 1, "float32", "float32", (Passage.FLOWS, None)),
        ("select_n", 0, "bool", "float32", (Passage.NOTHING, Barrier.INTEGER)),
        ("pure_callback", 0, "float32", "float32", (Passage.CUT, Barrier.HOST)),
        ("while", 0, "float32", "float32", (Passage.CUT, Barrier.NOT_REGISTERED)),
        ("convert_element_type", 0, "float32", "float0", (Passage.CUT, Barrier.INTEGER)),
    ],
)
def test_passages_follow_the_dtypes(name: str, position: int, read: str, made: str, edge: object) -> None:
    assert ops.passage(name, position, read, made) == edge


def test_a_rule_without_a_part_in_the_loss_is_not_blamed(observe: Callable[[str], list]) -> None:
    """The rule's own ops ran in C++ and were not seen; what turned the gradient zero is the relu before it."""
    (told,) = observe(
        """
@jax.custom_vjp
def passed(x):
    return x * 1.0
passed.defvjp(lambda x: (x * 1.0, x), lambda x, g: (g * 2.0 + jnp.tanh(g),))
passed(jnp.ones(3))
def loss(p):
    h = jax.nn.relu(p["x"])
    return jnp.sum(passed(h)) + p["w"]
p = {"x": jnp.array([-1.0, -2.0, -3.0]), "w": jnp.array(3.0)}
jax.grad(loss)(p)
"""
    )
    assert told.barriers("p['x']") == [("flat", 8)]

"""A program under the JAX backend prints, compiles and raises what it does without, and its steps run none of our code."""

from __future__ import annotations

import gc
import sys
import types
import weakref
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax.extend.core import Primitive

from gradwhy.backends.jax import JaxBackend
from gradwhy.backends.jax.record import LONGEST_HISTORY, Recorder
from gradwhy.backends.patches import open_patches

PROGRAMS = {
    "tracers": """
def loss(x):
    print(x, type(x).__name__, x.aval)
    return jnp.sum(x * 2.0)
jax.grad(loss)(jnp.ones(2)); jax.jit(jax.grad(loss))(jnp.ones(2)); jax.vmap(jax.grad(loss))(jnp.ones((2, 2)))
jax.grad(jax.jit(loss))(jnp.ones(3)); jax.jacfwd(loss)(jnp.ones(2)); jax.vjp(loss, jnp.ones(2))[1](1.0)
""",
    "branches": """
def loss(x):
    if x > 0:
        return x * int(x)
    try:
        return x * float(x)
    except Exception as problem:
        print(type(problem).__name__)
        return x.item() * x
print([float(jax.grad(loss)(v)).hex() for v in (2.5, -1.5)])
""",
    "rules": """
@jax.custom_vjp
def f(x):
    print("plain"); return jnp.sin(x)
f.defvjp(lambda x: (print("there"), (jnp.sin(x), x))[1], lambda x, g: (print("back", type(g).__name__), (g * jnp.cos(x),))[1])
print(jax.grad(lambda x: f(x) ** 2)(0.5), jax.jit(jax.grad(f))(0.5))
""",
    "random": """
key = jax.random.key(3)
p = {"w": jax.random.normal(key, (3, 2)), "b": jnp.zeros(2)}
def loss(p, x):
    return jnp.mean(jax.nn.relu(x @ p["w"] + p["b"]) ** 2) + jax.random.uniform(key)
step = jax.jit(jax.value_and_grad(loss))
for _ in range(3):
    value, g = step(p, jnp.ones((4, 3)))
    p = jax.tree.map(lambda a, d: a - 0.1 * d, p, g)
print(float(value).hex(), [float(v).hex() for v in p["w"].ravel()], np.asarray(jax.grad(loss)(p, jnp.ones((4, 3)))["w"]).tobytes())
""",
    "exceptions": """
import traceback
for ask in (lambda: jax.grad(lambda x: x)(jnp.ones(2)), lambda: jax.grad(lambda x: x)(1), lambda: jax.grad(3),
            lambda: jax.grad(lambda x: x, argnums=2)(1.0), lambda: jax.grad(lambda x: np.sin(x))(1.0),
            lambda: jax.grad(lambda x: {}["no"])(1.0), lambda: jnp.ones(2) @ jnp.ones(3), lambda: jax.vjp(3, 1.0),
            lambda: jax.jit(jax.grad(lambda x: x / (1 // 0)))(1.0)):
    try:
        ask()
    except Exception as problem:
        print(type(problem).__name__, str(problem)[:200])
        print([(f.filename.rsplit("/", 1)[-1], f.name) for f in traceback.extract_tb(problem.__traceback__)])
        print(type(problem.__cause__).__name__, type(problem.__context__).__name__, problem.__suppress_context__)
""",
    "leaks": """
with jax.checking_leaks():
    print(jax.grad(lambda x: jnp.sum(jnp.tanh(x)))(jnp.ones(2)))
    print(jax.jit(jax.grad(lambda x: jnp.sum(jnp.round(x) * x)))(jnp.ones(2)))
    print(jax.jit(lambda x: jax.vjp(jnp.sin, x)[1](1.0))(0.5))
""",
    "names": """
def loss(x):
    "The loss."
    return x ** 2
g = jax.grad(loss)
print(g.__name__, g.__doc__, g.__wrapped__ is loss, g.__module__, sorted(vars(g)), jax.jit(g).__name__)
print(jax.make_jaxpr(g)(1.0), jax.jit(g).lower(1.0).as_text())
""",
    "locations": """
def loss(x):
    h = jnp.tanh(x) + jnp.linalg.norm(x)
    return jnp.sum(jax.lax.scan(lambda c, _: (jnp.sin(c), None), h, None, length=2)[0])
print(jax.jit(jax.value_and_grad(loss)).lower(jnp.ones(2)).as_text(debug_info=True))
print(jax.make_jaxpr(jax.grad(loss))(jnp.ones(2)).pretty_print(source_info=True))
""",
}


class Silent:
    """A witness that wants every answer in full and keeps none."""

    def answered(self, answer: object) -> None:
        answer.build(True)  # type: ignore[attr-defined]

    def escaped(self, problem: BaseException) -> None: ...

    def failed(self, what: str, problem: BaseException) -> None:
        raise AssertionError(what) from problem


@pytest.fixture
def attached() -> Callable[[], JaxBackend]:
    def attach() -> JaxBackend:
        backend = JaxBackend()
        backend.attach(Silent())
        return backend

    return attach


def run(text: str, file: Path) -> Counter[str]:
    """Run a program, and count the events with which JAX tells what it traces and compiles."""
    events: Counter[str] = Counter()
    file.write_text("import jax\nimport jax.numpy as jnp\nimport numpy as np\n" + text, encoding="utf-8")
    main = types.ModuleType("__main__")
    jax.clear_caches()
    listener = lambda event, duration, **_: events.update([event])  # noqa: E731
    jax.monitoring.register_event_duration_secs_listener(listener)
    try:
        exec(compile(file.read_bytes(), str(file), "exec"), main.__dict__)
    finally:
        jax.monitoring.unregister_event_duration_listener(listener)
    return Counter({event: n for event, n in events.items() if "compil" in event or "trac" in event})


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_prints_and_compiles_the_same(
    name: str, attached: Callable[[], JaxBackend], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = []
    # The first run fills what JAX keeps of a process. All stand on one line: JAX writes the stack into what it compiles.
    for is_observed in (False, False, True):
        backend = attached() if is_observed else None
        try:
            events = run(PROGRAMS[name], tmp_path / "program.py")
        finally:
            if backend is not None:
                backend.detach()
        kept.append((events, capsys.readouterr()))
    (plain_events, plain), (events, observed) = kept[1:]
    assert observed.out == plain.out and plain.out
    assert observed.err == plain.err
    assert events == plain_events and events


def test_compiled_steps_run_none_of_our_code(attached: Callable[[], JaxBackend]) -> None:
    backend, calls = attached(), Counter[str]()
    try:
        step = jax.jit(jax.grad(lambda x: jnp.sum(jnp.round(x) + x)))
        x = jnp.ones(3)
        x = x - 0.1 * step(x)
        x = x - 0.1 * step(x)
        sys.setprofile(lambda frame, event, _: calls.update([frame.f_code.co_filename]))
        for _ in range(5):
            x = x - 0.1 * step(x)
        sys.setprofile(None)
    finally:
        sys.setprofile(None)
        backend.detach()
    assert calls
    assert not [file for file in calls if "/gradwhy/" in file]


def test_everything_is_put_back(attached: Callable[[], JaxBackend]) -> None:
    before = (jax.grad, jax.value_and_grad, jax.vjp, jax.jacrev, jax.jacfwd, jax.jacobian, jax.lax.stop_gradient)
    bind, kept = Primitive.bind, jax.grad
    backend = attached()
    ours = jax.grad(jnp.sin)
    pull = jax.vjp(jnp.sin, 1.0)[1]
    pull(1.0)
    call = type(pull).__call__
    assert jax.grad is not kept and Primitive.bind is not bind
    backend.detach()
    backend.detach()
    after = (jax.grad, jax.value_and_grad, jax.vjp, jax.jacrev, jax.jacfwd, jax.jacobian, jax.lax.stop_gradient)
    assert after == before and Primitive.bind is bind
    assert type(pull).__call__ is not call
    assert open_patches() == ()
    assert float(ours(0.0)) == 1.0, "what was made under observation still works"


def test_no_value_is_kept_alive(attached: Callable[[], JaxBackend]) -> None:
    backend, seen = attached(), []

    def loss(x: jax.Array) -> jax.Array:
        h = jnp.tanh(x * 2.0)
        seen.append(weakref.ref(h))
        return jnp.sum(h)

    try:
        for _ in range(3):
            gradient = jax.grad(loss)(jnp.ones(3))
        gone = weakref.ref(gradient)
        del gradient
        assert gone() is None, "the gradient of the last question"
        gc.collect()
        assert [ref() for ref in seen] == [None] * 3
    finally:
        backend.detach()


def test_a_pullback_keeps_no_argument_alive_that_it_does_not_need(attached: Callable[[], JaxBackend]) -> None:
    backend = attached()
    try:
        x = jnp.ones(3) + 1.0
        pull = jax.vjp(lambda x: x * 2.0, x)[1]
        gone = weakref.ref(x)
        del x
        gc.collect()
        assert gone() is None
        assert pull(jnp.ones(3))[0].tolist() == [2.0, 2.0, 2.0]
    finally:
        backend.detach()


def test_history_is_bounded(attached: Callable[[], JaxBackend]) -> None:
    backend = attached()
    try:
        x = jnp.ones(())
        for _ in range(LONGEST_HISTORY // 10):
            x = jax.lax.add(x, 1.0)
        gc.collect()
        before = len(gc.get_objects())
        for _ in range(LONGEST_HISTORY * 2):
            x = jax.lax.add(x, 1.0)
        gc.collect()
        assert len(gc.get_objects()) - before < LONGEST_HISTORY * 12
    finally:
        backend.detach()


def test_parameters_of_a_training_loop_have_no_history(attached: Callable[[], JaxBackend]) -> None:
    backend = attached()
    try:
        p = {"w": jnp.ones(3)}
        loss = lambda p: jnp.sum(jax.lax.mul(p["w"], p["w"]))  # noqa: E731
        for _ in range(5):
            p = jax.tree.map(lambda a, g: jax.lax.sub(a, g), p, jax.grad(loss)(p))
        gc.collect()
        before = len(gc.get_objects())
        for _ in range(50):
            p = jax.tree.map(lambda a, g: jax.lax.sub(a, g), p, jax.grad(loss)(p))
        gc.collect()
        assert len(gc.get_objects()) - before < 50
    finally:
        backend.detach()


def test_a_record_follows_its_value_and_not_its_id() -> None:
    recorder, first = Recorder(), jnp.ones(3)
    record = recorder.begin(first)
    assert recorder.of(first) is record
    del first
    assert recorder.of(jnp.zeros(3)) is None
    assert record.ref is None

"""What it costs JAX to observe `Primitive.bind`, beside staging the function once more.

    python benchmarks/jax_observe.py                  the table, in under two minutes
    python benchmarks/jax_observe.py --seconds 120    with so much time for each ratio's pairs

Two ways lead to what a differentiated function did. Its primitives can be seen as they are bound, while the function runs
for the program's sake; or the function is staged with `jax.make_jaxpr` beside the program's own call and the result is
read. Compared are a `bind` that only calls JAX's, gradwhy as it is, and a staging of what the program differentiates. Of a
staging nothing is read here: the figure is the least that it can cost, and the function's Python runs twice for it.

Every ratio is paired: the work runs plainly, in one of the ways, plainly again, in one process, and its processor time is
divided by the mean of its two neighbours.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from ratios import Step, interval, seconds

from gradwhy.running.attach import Attachments
from gradwhy.session import Session

PASSING, GRADWHY, STAGING = "bind passed on", "gradwhy", "staged beside"

FEWEST_PAIRS = 3

Loss = Callable[[Any], Any]


# --- what runs


def transformer_loss(*, width: int = 32, depth: int = 2) -> tuple[Loss, Any]:
    """The loss of a small transformer as a function of its parameters, and these."""
    keys = iter(jax.random.split(jax.random.key(0), 6 * depth + 1))

    def weights(rows: int, columns: int) -> Any:
        return jax.random.normal(next(keys), (rows, columns)) / rows**0.5

    shapes = {"q": (width, width), "k": (width, width), "v": (width, width), "o": (width, width)}
    shapes |= {"wide": (width, 4 * width), "narrow": (4 * width, width)}
    parameters = [{name: weights(*shape) for name, shape in shapes.items()} for _ in range(depth)]
    x = jax.random.normal(next(keys), (8, 32, width))

    def norm(h: Any) -> Any:
        return (h - h.mean(-1, keepdims=True)) / jnp.sqrt(h.var(-1, keepdims=True) + 1e-6)

    def loss(parameters: Any) -> Any:
        h = x
        for block in parameters:
            y = norm(h)
            scores = (y @ block["q"]) @ (y @ block["k"]).swapaxes(-1, -2) / width**0.5
            h = h + jax.nn.softmax(scores) @ (y @ block["v"]) @ block["o"]
            h = h + jax.nn.gelu(norm(h) @ block["wide"]) @ block["narrow"]
        return jnp.mean(h**2)

    return loss, parameters


def tiny_loss() -> tuple[Loss, Any]:
    """A hundred ops that compute next to nothing, so that all there is to see is the cost of an op."""

    def loss(x: Any) -> Any:
        y = x
        for _ in range(50):
            y = y * 1.01 + 0.5
        return y.sum()

    return loss, jnp.array([1.0, 2.0])


@dataclass(frozen=True, slots=True)
class Work:
    """A gradient to time.

    `times` of it make one measurement, `share` says how much longer than others it is measured, and `is_compiled` that it
    runs under `jit`: each time its first call, in a JAX that remembers nothing.
    """

    name: str
    make: Callable[[], tuple[Loss, Any]]
    times: int
    share: float = 1.0
    is_compiled: bool = False


WORKS = (
    Work("eager gradient of a hundred tiny ops", tiny_loss, 5),
    Work("eager gradient of a 2-layer transformer", transformer_loss, 2),
    Work("first step under jit, 2-layer transformer", transformer_loss, 1, share=2.0, is_compiled=True),
)


def asking(loss: Loss, parameters: Any, *, is_compiled: bool) -> Step:
    """A step that asks for the gradient; a function under `jit` is another one each time, and so compiled anew."""

    def step() -> object:
        if not is_compiled:
            return jax.block_until_ready(jax.grad(loss)(parameters))
        jax.clear_caches()
        return jax.block_until_ready(jax.jit(lambda given: jax.grad(loss)(given))(parameters))

    return step


# --- what is compared


@contextmanager
def passed_on() -> Iterator[None]:
    """A `bind` in Python that does nothing but call JAX's."""
    original = Primitive.bind

    def bind(self: Primitive, /, *args: Any, **params: Any) -> Any:
        return original(self, *args, **params)

    Primitive.bind = bind
    try:
        yield
    finally:
        Primitive.bind = original


@contextmanager
def observed() -> Iterator[None]:
    """gradwhy as `gradwhy run` sets it up."""
    attachments = Attachments(Session("benchmark"))
    attachments.install()
    try:
        yield
    finally:
        attachments.remove()


@contextmanager
def alone() -> Iterator[None]:
    yield


CONTESTANTS = {PASSING: passed_on, GRADWHY: observed, STAGING: alone}


# --- time


def paired_times(work: Work, budget: float) -> dict[str, list[tuple[float, float]]]:
    """For each way, as often as `budget` seconds allow, the seconds of the plain work and of the one in that way."""
    loss, parameters = work.make()
    plain = asking(loss, parameters, is_compiled=work.is_compiled)

    def staged() -> object:
        found = plain()
        # A lambda of its own: what JAX has staged for the program's call is not to be found again.
        jax.make_jaxpr(lambda given: loss(given))(parameters)
        return found

    def measured(step: Step) -> float:
        if not work.is_compiled:
            seconds(step, 1)
        return seconds(step, work.times)

    seconds(plain, 2)
    found: dict[str, list[tuple[float, float]]] = {way: [] for way in CONTESTANTS}
    end = time.monotonic() + budget
    while len(found[GRADWHY]) < FEWEST_PAIRS or time.monotonic() < end:
        before = measured(plain)
        for way, contestant in CONTESTANTS.items():
            with contestant():
                under = measured(staged if way == STAGING else plain)
            after = measured(plain)
            found[way].append(((before + after) / 2, under))
            before = after
    return found


def binds_in(step: Step) -> int:
    """How many primitives are bound in one step."""
    seen = 0
    original = Primitive.bind

    def bind(self: Primitive, /, *args: Any, **params: Any) -> Any:
        nonlocal seen
        seen += 1
        return original(self, *args, **params)

    Primitive.bind = bind
    try:
        step()
    finally:
        Primitive.bind = original
    return seen


def show(work: Work, budget: float) -> None:
    found = paired_times(work, budget)
    binds = binds_in(asking(*work.make(), is_compiled=work.is_compiled))
    base = statistics.median(plain for times in found.values() for plain, _ in times) / work.times
    print(f"\n{work.name}: {1e3 * base:.2f} ms, {binds} binds, {len(found[GRADWHY])} pairs")
    for way, times in found.items():
        middle, low, high = interval([under / plain for plain, under in times])
        extra = statistics.median(under - plain for plain, under in times) / work.times / binds * 1e6
        print(f"  {way:16}{middle:6.3f}x  [{low:.3f}, {high:.3f}]  {extra:+7.2f} us a bind", flush=True)


def show_later_steps() -> None:
    """How often Python's `bind` runs in a step that was compiled before."""
    loss, parameters = transformer_loss(depth=1)
    with observed():
        step = jax.jit(lambda given: jax.grad(loss)(given))
        step(parameters)
        print(f"\na step compiled before: {binds_in(lambda: jax.block_until_ready(step(parameters)))} binds in Python")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=16.0, help="how long each piece of work is timed, about")
    given = parser.parse_args()
    print(f"JAX {jax.__version__}, Python {sys.version.split()[0]}, {os.cpu_count()} CPUs")
    for work in WORKS:
        show(work, given.seconds * work.share)
    show_later_steps()


if __name__ == "__main__":
    main()

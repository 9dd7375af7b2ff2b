"""What observing costs a TensorFlow program, beside TensorFlow's own debugging tools.

    python benchmarks/tensorflow_overhead.py            the table, in about ten minutes
    python benchmarks/tensorflow_overhead.py --quick    a fast look
    python benchmarks/tensorflow_overhead.py --long     with memory over 100,000 steps

Every ratio is paired: the step runs plainly, under a tool, plainly again, in one process, and the tool's time is divided by
the mean of its two neighbours. Processor time is compared, which a busy machine disturbs least.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import keras
import tensorflow as tf
from ratios import Step, interval, seconds
from tensorflow.python.framework import op_callbacks

import gradwhy
from gradwhy.running.attach import Attachments
from gradwhy.session import Session

PLAIN, GRADWHY, DEBUGGER, CHECK_NUMERICS = "plain", "gradwhy", "Debugger V2", "check_numerics"
NO_OP = "empty callback"
FIRST_OF_LONG = 20_000


# --- what runs


class Block(keras.layers.Layer):
    """One block of a small transformer, as people write it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.attention = keras.layers.MultiHeadAttention(4, width // 4)
        self.norm1 = keras.layers.LayerNormalization()
        self.norm2 = keras.layers.LayerNormalization()
        self.wide = keras.layers.Dense(4 * width, activation="gelu")
        self.narrow = keras.layers.Dense(width)

    def call(self, x: Any) -> Any:
        y = self.norm1(x)
        x = x + self.attention(y, y)
        return x + self.narrow(self.wide(self.norm2(x)))


def transformer(*, width: int = 64, depth: int = 4) -> Step:
    """A train step of a small transformer, run op by op."""
    blocks = [Block(width) for _ in range(depth)]
    head = keras.layers.Dense(1)
    optimizer = keras.optimizers.SGD(1e-4)
    x = tf.random.normal((16, 32, width))

    def step() -> None:
        with tf.GradientTape() as tape:
            h = x
            for block in blocks:
                h = block(h)
            loss = tf.reduce_mean(head(h) ** 2)
        variables = [v for block in blocks for v in block.trainable_variables] + head.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))

    return step


def tiny_ops() -> Step:
    """A loop of ops that compute next to nothing, so that all there is to see is the cost of an op."""
    v = tf.Variable([1.0, 2.0])

    def step() -> None:
        for _ in range(20):
            with tf.GradientTape() as tape:
                y = v
                for _ in range(50):
                    y = y * 1.01 + 0.5
                loss = tf.reduce_sum(y)
            tape.gradient(loss, v)

    return step


def compiled() -> Step:
    """The train step of the transformer as a `tf.function`, traced before it is timed."""
    plain = transformer(depth=2)
    plain()  # Layers and optimizer make their variables at their first call.
    return tf.function(plain)


def small_model() -> Step:
    """A train step so small that a hundred thousand of them can be run."""
    w, b = tf.Variable(tf.random.normal((8, 1))), tf.Variable(tf.zeros((1,)))
    x, y = tf.random.normal((16, 8)), tf.random.normal((16, 1))
    optimizer = keras.optimizers.SGD(1e-3)

    def step() -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ w + b - y) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, [w, b]), [w, b], strict=True))

    return step


@dataclass(frozen=True, slots=True)
class Program:
    """A step to time: `steps` of them make one measurement. `is_compiled`: each tool needs one traced under it."""

    name: str
    make: Callable[[], Step]
    steps: int
    budget: float
    is_compiled: bool = False


PROGRAMS = (
    Program("eager transformer step", transformer, 4, 1.12),
    Program("loop of tiny ops", tiny_ops, 2, 1.35),
    Program("tf.function step", compiled, 24, 1.01, is_compiled=True),
)


# --- what is compared


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
def dumped() -> Iterator[None]:
    """TensorFlow's Debugger V2 in its cheapest mode, which keeps no values."""
    with tempfile.TemporaryDirectory() as folder:
        tf.debugging.experimental.enable_dump_debug_info(folder, tensor_debug_mode="NO_TENSOR")
        try:
            yield
        finally:
            tf.debugging.experimental.disable_dump_debug_info()


@contextmanager
def checked() -> Iterator[None]:
    """TensorFlow's check of every op's output for NaN and infinity."""
    tf.debugging.enable_check_numerics()
    try:
        yield
    finally:
        tf.debugging.disable_check_numerics()


@contextmanager
def heard() -> Iterator[None]:
    """An op callback that does nothing: no observer that hears of every op can cost less."""

    def callback(op_type: Any, inputs: Any, attrs: Any, outputs: Any, op_name: Any = None, graph: Any = None) -> None:
        return

    op_callbacks.add_op_callback(callback)
    try:
        yield
    finally:
        op_callbacks.remove_op_callback(callback)


@contextmanager
def alone() -> Iterator[None]:
    yield


CONTESTANTS = {PLAIN: alone, NO_OP: heard, GRADWHY: observed, DEBUGGER: dumped, CHECK_NUMERICS: checked}


# --- time


def paired_times(program: Program, tools: list[str], pairs: int) -> dict[str, list[tuple[float, float]]]:
    """For each tool, `pairs` times the seconds of the plain step and of the one under the tool."""
    plain = program.make()
    steps = dict.fromkeys(tools, plain)
    seconds(plain, 3)
    if program.is_compiled:
        for tool in tools:
            with CONTESTANTS[tool]():
                steps[tool] = program.make()
                seconds(steps[tool], 3)
    found: dict[str, list[tuple[float, float]]] = {tool: [] for tool in tools}
    for _ in range(pairs):
        before = seconds(plain, program.steps)
        for tool in tools:
            with CONTESTANTS[tool]():
                seconds(steps[tool], 1)
                under = seconds(steps[tool], program.steps)
            seconds(plain, 1)
            after = seconds(plain, program.steps)
            found[tool].append(((before + after) / 2, under))
            before = after
    return found


def ops_in(step: Step) -> int:
    """How many ops TensorFlow reports in one step."""
    seen = 0

    def count(*args: Any, **kwargs: Any) -> None:
        nonlocal seen
        seen += 1

    op_callbacks.add_op_callback(count)
    try:
        step()
    finally:
        op_callbacks.remove_op_callback(count)
    return seen


def show_times(program: Program, tools: list[str], pairs: int) -> None:
    found = paired_times(program, tools, pairs)
    step = program.make()
    seconds(step, 2)
    ops = ops_in(step)
    base = statistics.median(plain for times in found.values() for plain, _ in times) / program.steps
    print(f"\n{program.name}: {1e3 * base:.2f} ms, {ops} ops; budget {program.budget:.2f}x")
    for tool, times in found.items():
        middle, low, high = interval([under / plain for plain, under in times])
        extra = statistics.median(under - plain for plain, under in times) / program.steps / ops * 1e6
        verdict = "" if tool != GRADWHY else "  holds" if holds(program.budget, middle, low) else "  MISSED"
        print(f"  {tool:16}{middle:6.3f}x  [{low:.3f}, {high:.3f}]  {extra:+7.2f} us an op{verdict}", flush=True)


def holds(budget: float, middle: float, low: float) -> bool:
    """Whether a budget holds: the interval reaches down to it, and its middle is no more than 0.03 above."""
    return low <= budget and middle <= budget + 0.03


def show_calls() -> None:
    """How often Python of ours runs in a step of a traced function."""
    home = str(Path(gradwhy.__file__).parent)
    entries = calls = 0

    def count(frame: Any, event: str, arg: Any) -> None:
        nonlocal entries, calls
        if event == "call" and frame.f_code.co_filename.startswith(home):
            calls += 1
            entries += frame.f_back is None or not frame.f_back.f_code.co_filename.startswith(home)

    with observed():
        step = compiled()
        seconds(step, 2)
        sys.setprofile(count)
        for _ in range(10):
            step()
        sys.setprofile(None)
    print(
        f"\ntf.function step: TensorFlow calls gradwhy {entries / 10:g} times a step, {calls / 10:g} Python calls in all"
    )


# --- memory, each contestant in a process of its own


def resident() -> int:
    """The bytes of memory that this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def peak() -> int:
    """The most bytes of memory that this process ever held."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def child(tool: str, program: str, steps: int) -> None:
    """Run `steps` steps under a tool and print what memory they took."""
    samples = []
    with CONTESTANTS[tool]():
        step = {"transformer": transformer, "small": small_model}[program]()
        for number in range(1, steps + 1):
            step()
            if number % max(1, steps // 50) == 0:
                samples.append((number, resident()))
    print(json.dumps({"peak": peak(), "samples": samples}))


def memory_of(tool: str, program: str, steps: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--child", tool, program, str(steps)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def slope(samples: list[tuple[int, int]], first: int) -> float:
    """Bytes a step, by least squares over the samples from step `first` on."""
    kept = [(x, y) for x, y in samples if x >= first]
    return statistics.linear_regression(*zip(*kept, strict=True)).slope


def show_memory(tools: list[str], steps: int, pairs: int) -> None:
    print(f"\npeak memory, eager transformer, {steps} steps, {pairs} pairs of processes", flush=True)
    plain = [memory_of(PLAIN, "transformer", steps)["peak"] for _ in range(pairs)]
    print(f"  {PLAIN:16}{statistics.median(plain) / 2**20:6.0f} MiB")
    for tool in tools:
        under = [memory_of(tool, "transformer", steps)["peak"] for _ in range(pairs)]
        ratio = statistics.median(u / p for u, p in zip(under, plain, strict=True))
        print(f"  {tool:16}{statistics.median(under) / 2**20:6.0f} MiB  {ratio:.3f}x", flush=True)


def show_slope(tools: list[str], steps: int) -> None:
    first = FIRST_OF_LONG if steps > 2 * FIRST_OF_LONG else steps // 5
    print(f"\ngrowth of memory, small eager train step, steps {first:,} to {steps:,}", flush=True)
    for tool in (PLAIN, *tools):
        grown = slope(memory_of(tool, "small", steps)["samples"], first)
        print(f"  {tool:16}{grown:+8.1f} bytes a step", flush=True)


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], sys.argv[3], int(sys.argv[4]))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few pairs, and few steps for memory")
    parser.add_argument("--long", action="store_true", help="memory over 100,000 steps")
    parser.add_argument("--only", metavar="WORD", help="only the programs whose name holds WORD; `memory` for memory")
    parser.add_argument("--alone", action="store_true", help="gradwhy without the other tools")
    parser.add_argument("--pairs", type=int, help="how many pairs for each ratio")
    given = parser.parse_args()
    tools = [GRADWHY] if given.alone else [GRADWHY, DEBUGGER, CHECK_NUMERICS]
    timed = [NO_OP, *tools]
    pairs = given.pairs or (5 if given.quick else 15)
    keras.utils.set_random_seed(0)
    print(
        f"TensorFlow {tf.__version__}, Keras {keras.__version__}, Python {sys.version.split()[0]}, {os.cpu_count()} CPUs"
    )
    for program in PROGRAMS:
        if not given.only or given.only in program.name:
            show_times(program, timed, pairs)
    if not given.only or given.only in "tf.function step":
        show_calls()
    if not given.only or given.only == "memory":
        show_memory(tools, 5 if given.quick else 20, 1 if given.quick else 3)
        show_slope([GRADWHY], 100_000 if given.long else 2_000 if given.quick else 10_000)


if __name__ == "__main__":
    main()

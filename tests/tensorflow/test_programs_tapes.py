"""Programs with tapes: nested, persistent, paused, reset, asked for more than a gradient."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from forkserver import ForkServer
from programs import Program, Runs, Said, faults_of

HEAD = """
import tensorflow as tf

x = tf.Variable([0.5, -1.0, 2.0])
w = tf.Variable([1.0, 2.0, 3.0])
"""

LATE_WATCH = """
image = tf.constant([0.5, -1.0, 2.0])
with tf.GradientTape() as tape:
    hidden = image * 2.0  # cut
    tape.watch(image)
    loss = tf.reduce_sum(hidden * w)
print(tape.gradient(loss, image))
"""

STOP_RECORDING = """
with tf.GradientTape() as tape:
    with tape.stop_recording():
        scaled = tf.exp(x)  # cut
    loss = tf.reduce_sum(scaled * w)
print(tape.gradient(loss, [x, w]))
"""

RESET = """
with tf.GradientTape() as tape:
    hidden = x * 2.0  # cut
    tape.reset()
    loss = tf.reduce_sum(hidden * w)
print(tape.gradient(loss, [x, w]))
"""

INNER_TAPE_ONLY = """
with tf.GradientTape() as outer:
    scale = tf.reduce_sum(x)
with tf.GradientTape() as inner:
    loss = tf.reduce_sum(w * scale)  # cut
print(inner.gradient(loss, [w]), outer.gradient(loss, [x]))
"""

NESTED = """
with tf.GradientTape() as outer:
    with tf.GradientTape() as inner:
        loss = tf.reduce_sum(x ** 3 * w)
    slope = inner.gradient(loss, x)
    size = tf.reduce_sum(tf.stop_gradient(slope) * w)  # cut
print(outer.gradient(size, [x, w]))
"""

GRADIENT_OUTSIDE_OUTER = """
with tf.GradientTape() as outer:
    with tf.GradientTape() as inner:
        loss = tf.reduce_sum(x ** 3)
slope = inner.gradient(loss, x)  # cut
print(outer.gradient(slope, x))
"""

LINEAR_TWICE = """
with tf.GradientTape() as outer:
    with tf.GradientTape() as inner:
        loss = tf.reduce_sum(x * w)  # cut
    slope = inner.gradient(loss, x)
print(outer.gradient(slope, x))
"""

PERSISTENT = """
with tf.GradientTape(persistent=True) as tape:
    kept = tf.reduce_sum(x * w)
    steps = tf.floor(x)  # cut
    stairs = tf.reduce_sum(steps * 2.0)
print(tape.gradient(kept, x))
print(tape.gradient(stairs, x))
del tape
"""

USED_UP = """
with tf.GradientTape() as tape:
    loss = tf.reduce_sum(x * w)
print(tape.gradient(loss, x))
print(tape.gradient(loss, w))  # cut
"""

JACOBIAN = """
with tf.GradientTape() as tape:
    order = tf.argsort(x)  # cut
    ranks = tf.cast(order, tf.float32) * w
print(tape.jacobian(ranks, [x, w]))
"""

BATCH_JACOBIAN = """
batch = tf.constant([[0.5, -1.0], [2.0, 1.0]])
with tf.GradientTape() as tape:
    tape.watch(batch)
    made = tf.constant(batch.numpy() ** 2)  # cut
print(tape.batch_jacobian(made, batch))
"""

OTHER_VARIABLE = """
def renewed(value):
    return tf.Variable(value + 1.0)  # cut

with tf.GradientTape() as tape:
    y = renewed(x)
    loss = tf.reduce_sum(y * w)
print(tape.gradient(loss, [x, w]))
"""

NOT_ACCESSED = """
with tf.GradientTape(watch_accessed_variables=False) as tape:
    tape.watch(w)
    loss = tf.reduce_sum(x * w)  # cut
print(tape.gradient(loss, [x, w]))
"""

AFTER = """
with tf.GradientTape() as tape:
    hidden = x * w
loss = tf.reduce_sum(hidden)  # cut
print(tape.gradient(loss, [x, w]))
"""

HEALTHY = """
with tf.GradientTape(persistent=True) as tape:
    a = tf.reduce_sum(x * w)
    with tf.GradientTape() as inner:
        b = tf.reduce_sum(x ** 3)
    c = inner.gradient(b, x)
    tape.reset()
    d = tf.reduce_sum(x ** 2) * 2.0
    with tape.stop_recording():
        e = tf.reduce_sum(w)
print(tape.gradient(d, x), tape.jacobian(d, x))
"""

PROGRAMS = [
    Program("late-watch", LATE_WATCH, (Said("error", "not-watched", ("image",)),)),
    Program("stop-recording", STOP_RECORDING, (Said("error", "paused", ("x",)),)),
    Program("reset", RESET, (Said("error", "wrong-tape", ("x",)),)),
    Program("inner-tape-only", INNER_TAPE_ONLY, (Said("error", "after-tape", ("x",)),)),
    Program("nested", NESTED, (Said("error", "detached", ("x",)),)),
    Program("gradient-outside-outer", GRADIENT_OUTSIDE_OUTER, (Said("error", "after-tape", ("x",)),)),
    Program("linear-twice", LINEAR_TWICE, (Said("note", "unused", ("x",)),)),
    Program("persistent", PERSISTENT, (Said("error", "non-differentiable-op", ("x",)),)),
    Program("used-up", USED_UP, (Said("error", "wrong-tape", ("w",)),), "RuntimeError: A non-persistent GradientTape"),
    Program("jacobian", JACOBIAN, (Said("error", "non-differentiable-op", ("x",)),)),
    Program("batch-jacobian", BATCH_JACOBIAN, (Said("warning", "left-framework", ("batch",)),)),
    Program("other-variable", OTHER_VARIABLE, (Said("error", "rewrapped", ("x",)),)),
    Program("not-accessed", NOT_ACCESSED, (Said("error", "not-watched", ("x",)),)),
    Program("after", AFTER, (Said("error", "after-tape", ("w", "x")),)),
    Program("healthy", HEALTHY, ()),
]
PROGRAMS = [Program(p.id, HEAD + p.text, p.said, p.problem) for p in PROGRAMS]


@pytest.fixture(scope="module")
def runs(server_of: Callable[[str], ForkServer]) -> Runs:
    return Runs(server_of("tensorflow"), PROGRAMS)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.id)
def test_program_is_told_what_happened(program: Program, runs: Runs) -> None:
    assert faults_of(program, runs.of(program)) == []

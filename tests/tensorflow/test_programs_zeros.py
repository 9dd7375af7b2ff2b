"""Zeros that stand for a cut, zeros that are right, and facts that are no bugs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from forkserver import ForkServer
from programs import Program, Runs, Said, faults_of

HEAD = """
import numpy as np
import tensorflow as tf

x = tf.Variable([0.5, -1.0, 2.0])  # made
w = tf.Variable([1.0, 2.0, 3.0])
"""

UNCONNECTED = """
with tf.GradientTape() as tape:
    hidden = tf.constant(x.numpy() * 2.0)  # cut
    loss = tf.reduce_sum(hidden * w)
print(tape.gradient(loss, [x, w], unconnected_gradients=tf.UnconnectedGradients.ZERO))
"""

COND = """
@tf.function
def chosen(x, w):
    def stopped():
        return tf.stop_gradient(x) * w  # cut
    return tf.cond(tf.reduce_sum(w) > 0.0, stopped, lambda: w * 2.0)

with tf.GradientTape() as tape:
    loss = tf.reduce_sum(chosen(x, w))
print(tape.gradient(loss, [x, w]))
"""

WHILE = """
@tf.function
def repeated(x, w):
    total = tf.zeros(3)
    for _ in tf.range(3):
        total += tf.round(x) * w  # cut
    return total

with tf.GradientTape() as tape:
    loss = tf.reduce_sum(repeated(x, w))
print(tape.gradient(loss, [x, w]))
"""

PY_FUNCTION = """
def through(value, factor):
    return tf.constant(value.numpy() * 2.0) * factor  # cut

@tf.function
def doubled(x, w):
    return tf.py_function(through, [x, w], tf.float32)

with tf.GradientTape() as tape:
    loss = tf.reduce_sum(doubled(x, w))
print(tape.gradient(loss, [x, w]))
"""

OPAQUE_BODY = """
def through(value, factor):
    return tf.stop_gradient(value) * factor

@tf.function
def doubled(x, w):
    return tf.py_function(through, [x, w], tf.float32)  # cut

with tf.GradientTape() as tape:
    loss = tf.reduce_sum(doubled(x, w))
print(tape.gradient(loss, [x, w]))
"""

FUSED_MEAN = """
images = tf.Variable(tf.ones((2, 3, 3, 1)) * 0.5)
with tf.GradientTape() as tape:
    made, mean, _, *_ = tf.raw_ops.FusedBatchNormV3(  # cut
        x=images, scale=[1.0], offset=[0.0], mean=[], variance=[], is_training=True
    )
    loss = tf.reduce_sum(mean ** 2) * w[0]
print(tape.gradient(loss, [images, w]))
"""

TRANSFORM = """
shift = tf.Variable([1.0, 0.0, 0.5, 0.0, 1.0, 0.0, 0.0, 0.0])
image = tf.Variable(tf.reshape(tf.range(16.0), (1, 4, 4, 1)))
with tf.GradientTape() as tape:
    moved = tf.raw_ops.ImageProjectiveTransformV3(  # cut
        images=image, transforms=shift[None], output_shape=[4, 4], fill_value=0.0, interpolation="BILINEAR"
    )
    loss = tf.reduce_sum(moved ** 2)
print(tape.gradient(loss, [shift, image]))
"""

PAD = """
edge = tf.Variable(0.3)
with tf.GradientTape() as tape:
    padded = tf.pad(x, [[1, 1]], constant_values=edge)  # cut
    loss = tf.reduce_sum(padded ** 2)
print(tape.gradient(loss, [edge, x]))
"""

SHUFFLE = """
with tf.GradientTape() as tape:
    mixed = tf.random.shuffle(x)  # cut
    loss = tf.reduce_sum(mixed * w)
print(tape.gradient(loss, [x, w]))
"""

UNTAKEN_BRANCH = """
@tf.function
def chosen(x, w):
    return tf.cond(tf.reduce_sum(w) > 0.0, lambda: w * 2.0, lambda: x * w)

with tf.GradientTape() as tape:
    loss = tf.reduce_sum(chosen(x, w))
print(tape.gradient(loss, [x, w]))  # cut
"""

UNUSED_HEAD = """
weights = {"trunk": w, "head": x}
with tf.GradientTape() as tape:
    loss = tf.reduce_sum(weights["trunk"] ** 2)
found = tape.gradient(loss, list(weights.values()))
for gradient, weight in zip(found, weights.values()):
    if gradient is not None:
        weight.assign_sub(0.1 * gradient)
"""

FROZEN = """
kept = tf.Variable([1.0, 2.0, 3.0], trainable=False)
with tf.GradientTape() as tape:
    loss = tf.reduce_sum(x * kept)
found = tape.gradient(loss, [x])
print(found)
"""

METRIC = """
with tf.GradientTape() as tape:
    scores = x * w
    loss = tf.reduce_sum(scores ** 2)
    best = tf.argmax(scores)
    hits = tf.reduce_mean(tf.cast(best == 2, tf.float32))
print(tape.gradient(loss, [x, w]), float(hits), float(loss))
"""

SECOND_OF_RELU = """
with tf.GradientTape() as outer:
    with tf.GradientTape() as inner:
        loss = tf.reduce_sum(tf.nn.relu(x) * 3.0)
    slope = inner.gradient(loss, x)
    total = tf.reduce_sum(slope * w)
print(outer.gradient(total, [x, w]))  # cut
"""

PROGRAMS = [
    Program("unconnected", UNCONNECTED, (Said("loud", "left-framework", ("x",)),)),
    Program("cond", COND, (Said("loud", "detached", ("x",)),)),
    Program("while", WHILE, (Said("loud", "non-differentiable-op", ("x",)),)),
    Program("py-function", PY_FUNCTION, (Said("loud", "left-framework", ("x",)),)),
    # The body runs out of sight: that it passes nothing on is seen, but not why.
    Program("py-function-opaque", OPAQUE_BODY, (Said("warning", "unknown", ("x",)),)),
    Program("fused-mean", FUSED_MEAN, (Said("loud", "non-differentiable-op", ("images",)),)),
    Program("transform", TRANSFORM, (Said("loud", "non-differentiable-op", ("shift",)),)),
    Program("pad", PAD, (Said("loud", "non-differentiable-op", ("edge",)),)),
    Program("shuffle", SHUFFLE, (Said("loud", "non-differentiable-op", ("x",)),)),
    Program("untaken-branch", UNTAKEN_BRANCH, (Said("note", "saturated", ("x",)),)),
    Program("unused-head", UNUSED_HEAD, (Said("note", "unused", ("x",), "made"),)),
    Program("frozen-unasked", FROZEN, ()),
    Program("metric", METRIC, ()),
    Program("second-of-relu", SECOND_OF_RELU, (Said("note", "saturated", ("x",)),)),
]
PROGRAMS = [Program(p.id, HEAD + p.text, p.said, p.problem) for p in PROGRAMS]


@pytest.fixture(scope="module")
def runs(server_of: Callable[[str], ForkServer]) -> Runs:
    return Runs(server_of("tensorflow"), PROGRAMS)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.id)
def test_program_is_told_what_happened(program: Program, runs: Runs) -> None:
    assert faults_of(program, runs.of(program)) == []

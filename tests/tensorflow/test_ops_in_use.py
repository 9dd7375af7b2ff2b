"""The table of ops against functions as people write them: what it says of the ops that ran, and what a tape says."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import tensorflow as tf
from tensorflow.python.framework import op_callbacks

from gradwhy.backends.tensorflow.ops import FLOWS
from gradwhy.flow import Barrier, Passage
from op_calls import f
from op_truth import Input, told


@cache
def numbers(*shape: int) -> Any:
    return f(*shape)


DIFFERENTIABLE: dict[str, Callable[[Any], Any]] = {
    "abs": tf.abs,
    "acos": tf.acos,
    "add_n": lambda x: tf.add_n([x, x]),
    "argsort then gather": lambda x: tf.gather(x, tf.argsort(x[:, 0])),
    "atan2": lambda x: tf.atan2(x, 2.0),
    "avg_pool": lambda x: tf.nn.avg_pool2d(x[None, :, :, None], 2, 1, "SAME"),
    "batch_normalization": lambda x: tf.nn.batch_normalization(x, *tf.nn.moments(x, [0]), None, None, 1e-3),
    "boolean_mask": lambda x: tf.boolean_mask(x, x > 0.0),
    "broadcast_to": lambda x: tf.broadcast_to(x, (2, 4, 4)),
    "cast to half": lambda x: tf.cast(x, tf.float16),
    "cholesky": lambda x: tf.linalg.cholesky(x @ tf.transpose(x) + tf.eye(4)),
    "clip_by_norm": lambda x: tf.clip_by_norm(x, 0.5),
    "clip_by_value": lambda x: tf.clip_by_value(x, 0.0, 1.0),
    "complex and back": lambda x: tf.math.real(tf.complex(x, x) * tf.complex(1.0, 2.0)),
    "concat": lambda x: tf.concat([x, x], 0),
    "conv2d": lambda x: tf.nn.conv2d(x[None, :, :, None], numbers(2, 2, 1, 3), 1, "SAME"),
    "cross_entropy": lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits([0, 1, 2, 3], x),
    "cumsum": lambda x: tf.cumsum(x, axis=1),
    "depthwise_conv2d": lambda x: tf.nn.depthwise_conv2d(
        x[None, :, :, None], numbers(2, 2, 1, 2), [1, 1, 1, 1], "SAME"
    ),
    "det": lambda x: tf.linalg.det(x + tf.eye(4)),
    "dropout": lambda x: tf.nn.dropout(x, 0.2, seed=3),
    "dynamic_partition": lambda x: tf.dynamic_partition(x, [0, 1, 0, 1], 2)[1],
    "dynamic_stitch": lambda x: tf.dynamic_stitch([[0, 1, 2, 3]], [x]),
    "einsum": lambda x: tf.einsum("ij,jk->ik", x, x),
    "elu": tf.nn.elu,
    "embedding_lookup": lambda x: tf.nn.embedding_lookup(x, [1, 2]),
    "exp": tf.exp,
    "expand_dims": lambda x: tf.expand_dims(x, 1),
    "fft": lambda x: tf.abs(tf.signal.rfft(x)),
    "floormod": lambda x: tf.math.floormod(x, 0.4),
    "gather": lambda x: tf.gather(x, [2, 0]),
    "gather_nd": lambda x: tf.gather_nd(x, [[0, 1]]),
    "gelu": tf.nn.gelu,
    "huber": lambda x: tf.keras.losses.huber(x * 0.0, x),
    "identity": tf.identity,
    "image resize": lambda x: tf.image.resize(x[:, :, None], (8, 8)),
    "inv": lambda x: tf.linalg.inv(x + tf.eye(4)),
    "l2_normalize": lambda x: tf.nn.l2_normalize(x, 1),
    "layer": lambda x: tf.keras.layers.Dense(2, kernel_initializer="ones")(x),
    "leaky_relu": tf.nn.leaky_relu,
    "log_softmax": tf.nn.log_softmax,
    "lstm": lambda x: tf.keras.layers.LSTM(2, kernel_initializer="ones")(x[None]),
    "matmul": lambda x: x @ x,
    "max_pool": lambda x: tf.nn.max_pool2d(x[None, :, :, None], 2, 1, "SAME"),
    "maximum": lambda x: tf.maximum(x, 0.2),
    "norm": tf.norm,
    "pad": lambda x: tf.pad(x, [[1, 1], [0, 0]], "REFLECT"),
    "pow": lambda x: x**3,
    "reduce_logsumexp": tf.reduce_logsumexp,
    "reduce_max": tf.reduce_max,
    "reduce_prod": tf.reduce_prod,
    "reduce_std": lambda x: tf.math.reduce_std(x),
    "relu": tf.nn.relu,
    "reshape": lambda x: tf.reshape(x, (2, 8)),
    "reverse": lambda x: tf.reverse(x, [0]),
    "roll": lambda x: tf.roll(x, 1, 0),
    "scatter_nd": lambda x: tf.scatter_nd([[1], [0], [2], [3]], x, (5, 4)),
    "segment_sum": lambda x: tf.math.segment_sum(x, [0, 0, 1, 1]),
    "sigmoid": tf.sigmoid,
    "slogdet": lambda x: tf.linalg.slogdet(x + tf.eye(4) * 3.0)[1],
    "softplus": tf.nn.softplus,
    "sort": lambda x: tf.sort(x),
    "split": lambda x: tf.split(x, [1, 3])[1],
    "stack": lambda x: tf.stack([x, x]),
    "strided_slice": lambda x: x[::2, 1:],
    "svd": lambda x: tf.linalg.svd(x + tf.eye(4), compute_uv=False),
    "tensor_scatter_nd_update": lambda x: tf.tensor_scatter_nd_update(x, [[0]], tf.zeros((1, 4))),
    "tile": lambda x: tf.tile(x, [2, 1]),
    "top_k": lambda x: tf.math.top_k(x, 2).values,
    "transpose": tf.transpose,
    "unstack": lambda x: tf.unstack(x)[1],
    "where": lambda x: tf.where(x > 0.3, x, 0.0),
}

DEAD_ENDS: dict[str, Callable[[Any], Any]] = {
    "argmax": lambda x: tf.cast(tf.argmax(x, 1), tf.float32),
    "batch mean of fused_batch_norm": lambda x: tf.compat.v1.nn.fused_batch_norm(
        x[None, :, :, None], tf.ones(1), tf.zeros(1)
    )[1],
    "bincount": lambda x: tf.cast(tf.math.bincount(tf.cast(x * 9.0, tf.int32)), tf.float32),
    "bucketize": lambda x: tf.cast(tf.raw_ops.Bucketize(input=x, boundaries=[0.3]), tf.float32),
    "cast there and back": lambda x: tf.cast(tf.cast(x, tf.int32), tf.float32),
    "ceil": tf.math.ceil,
    "comparison": lambda x: tf.cast(x > 0.3, tf.float32),
    "constant value of a pad": lambda x: tf.pad(tf.zeros((2, 2)), [[1, 1], [1, 1]], constant_values=x[0, 0]),
    "floor": tf.floor,
    "histogram": lambda x: tf.cast(tf.histogram_fixed_width(x, [0.0, 1.0]), tf.float32),
    "image transform": lambda x: tf.raw_ops.ImageProjectiveTransformV3(
        images=numbers(1, 4, 4, 1),
        transforms=tf.reshape(x, (-1,))[None, :8],
        output_shape=[4, 4],
        fill_value=0.0,
        interpolation="BILINEAR",
    ),
    "in_top_k": lambda x: tf.cast(tf.math.in_top_k([0, 1, 2, 3], x, 2), tf.float32),
    "indices of top_k": lambda x: tf.cast(tf.math.top_k(x, 2).indices, tf.float32),
    "linspace": lambda x: tf.raw_ops.LinSpace(start=x[0, 0], stop=1.0, num=3),
    "ones_like": tf.ones_like,
    "random.shuffle": tf.random.shuffle,
    "range": lambda x: tf.range(x[0, 0], 3.0),
    "round": tf.round,
    "searchsorted": lambda x: tf.cast(tf.searchsorted(tf.sort(x), x), tf.float32),
    "shape": lambda x: tf.cast(tf.shape(x), tf.float32),
    "sign": tf.sign,
    "stop_gradient": tf.stop_gradient,
    "where's condition": lambda x: tf.where(x > 0.3, 1.0, 0.0),
}


def reaches(function: Callable[[Any], Any]) -> tuple[bool, bool]:
    """Whether the ops that a function runs carry a gradient on by the table, and whether one arrives."""
    x = f(4, 4)
    carrying = {id(x)}
    kept: list[Any] = [x]

    def heard(op_type: Any, inputs: Any, attrs: Any, outputs: Any, op_name: Any = None, graph: Any = None) -> None:
        name = op_type.decode() if isinstance(op_type, bytes) else op_type
        kept.extend((*inputs, *outputs))
        for number, output in enumerate(outputs):
            for position, given in enumerate(inputs):
                seen = Input(position, given.dtype.name, number, output.dtype.name, len(inputs), "")
                if id(given) in carrying and told(name, seen) == FLOWS:
                    carrying.add(id(output))

    with tf.GradientTape() as tape:
        tape.watch(x)
        op_callbacks.add_op_callback(heard)
        try:
            y = function(x)
        finally:
            op_callbacks.remove_op_callback(heard)
        with tape.stop_recording():
            weights = f(*y.shape, dtype=y.dtype)
        target = y * weights
    gradient = tape.gradient(target, x)
    return id(y) in carrying, gradient is not None and bool(tf.reduce_any(gradient != 0.0))


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_common_functions_carry_a_gradient(name: str) -> None:
    assert reaches(DIFFERENTIABLE[name]) == (True, True)


@pytest.mark.parametrize("name", DEAD_ENDS)
def test_dead_ends_carry_none(name: str) -> None:
    assert reaches(DEAD_ENDS[name]) == (False, False)


def test_condition_of_a_branch_carries_none() -> None:
    @tf.function
    def chosen(x: Any) -> Any:
        return tf.cond(x > 0.3, lambda: tf.constant(2.0), lambda: tf.constant(1.0))

    x = tf.Variable(0.5)
    with tf.GradientTape() as tape:
        y = chosen(x)
    assert tape.gradient(y, x) is None
    ran = {op.type for op in chosen.get_concrete_function(x).graph.get_operations()}
    assert ran & {"If", "StatelessIf"}
    for name in ("If", "StatelessIf"):
        assert told(name, Input(0, "bool", 0, "float32", 1, "")) == (Passage.NOTHING, Barrier.CONDITION)


@pytest.mark.parametrize(("is_stateful", "name"), [(True, "PyFunc"), (False, "PyFuncStateless")])
def test_function_of_the_host_carries_none(is_stateful: bool, name: str) -> None:
    @tf.function
    def through(x: Any) -> Any:
        return tf.numpy_function(lambda a: a * 2.0, [x], tf.float32, stateful=is_stateful)

    x = tf.Variable(0.5)
    with tf.GradientTape() as tape:
        y = through(x)
    assert tape.gradient(y, x) is None
    assert name in {op.type for op in through.get_concrete_function(x).graph.get_operations()}
    assert told(name, Input(0, "float32", 0, "float32", 1, "")) == (Passage.CUT, Barrier.HOST)

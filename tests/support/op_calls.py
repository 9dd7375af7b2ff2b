"""Arguments for TensorFlow's raw ops, where they must fit together: a call of its own for each such op."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

Arguments = dict[str, Any]

random_numbers = np.random.default_rng(7)
_FIRST = random_numbers.bit_generator.state


def start_anew() -> None:
    """Draw the numbers from the first one on again, so that an op's do not depend on which others were tried before it."""
    random_numbers.bit_generator.state = _FIRST


def f(*shape: int, low: float = 0.1, high: float = 0.9, dtype: Any = "float32") -> Any:
    """Real numbers between 0.1 and 0.9, where almost everything is defined and nothing is flat."""
    return tf.cast(tf.constant(random_numbers.uniform(low, high, size=shape)), dtype)


def i(value: Any, dtype: str = "int32") -> Any:
    return tf.constant(value, dtype)


def long(value: Any) -> Any:
    return i(value, "int64")


def _square(size: int) -> Any:
    return f(size, size) + tf.eye(size) * 2.0


def _image() -> Any:
    return f(1, 4, 4, 2)


def _volume() -> Any:
    return f(1, 4, 4, 4, 2)


def _sparse(*names: str) -> Arguments:
    """Indices, values and a shape of a sparse matrix, under those names."""
    return dict(zip(names, (long([[0, 0], [1, 2]]), f(2), long([2, 3])), strict=True))


def _lstm(length: Any, *, gates: int = 16) -> Arguments:
    """A block of two steps, a batch of 3, 2 features and 4 cells."""
    held = {name: f(3, 4) for name in ("cs_prev", "h_prev")}
    peephole = {name: f(4) for name in ("wci", "wcf", "wco")}
    return {
        "seq_len_max": length,
        "x": f(2, 3, 2),
        **held,
        "w": f(6, gates),
        **peephole,
        "b": f(gates),
        "use_peephole": True,
    }


def _normalized(**more: Any) -> Arguments:
    return {"x": _image(), "scale": f(2), "offset": f(2), "mean": f(2), "variance": f(2), "is_training": False, **more}


def _normalized_grad(**more: Any) -> Arguments:
    saved = {"reserve_space_1": f(2), "reserve_space_2": f(2)}
    return {"y_backprop": _image(), "x": _image(), "scale": f(2), **saved, "is_training": True, **more}


def _segments(**more: Any) -> Arguments:
    return {"data": f(4, 2), "segment_ids": i([0, 0, 1]), **more}


def _boxes(**more: Any) -> Arguments:
    return {"boxes": f(3, 4), "scores": f(3), "max_output_size": i(2), "iou_threshold": f(), **more}


_POOL = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
_POOL3 = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "VALID"}
_CONV = {"strides": [1, 1, 1, 1], "padding": "SAME"}
_CONV3 = {"strides": [1, 1, 1, 1, 1], "padding": "SAME"}
_SAMPLED = {"seed": i([1, 2])}

CALLS: dict[str, Callable[[], Arguments]] = {
    "AvgPool3DGrad": lambda: {"orig_input_shape": i([1, 4, 4, 4, 2]), "grad": f(1, 2, 2, 2, 2), **_POOL3},
    "AvgPoolGrad": lambda: {"orig_input_shape": i([1, 4, 4, 2]), "grad": f(1, 2, 2, 2), **_POOL},
    "BatchToSpace": lambda: {"input": f(4, 2, 2, 1), "crops": i([[0, 0], [0, 0]]), "block_size": 2},
    "BiasAdd": lambda: {"value": f(2, 3), "bias": f(3)},
    "BiasAddV1": lambda: {"value": f(2, 3), "bias": f(3)},
    "BlockLSTM": lambda: _lstm(long(2)),
    "BlockLSTMV2": lambda: _lstm(long(2)),
    "Bucketize": lambda: {"input": f(3), "boundaries": [0.3, 0.6]},
    "Conv2D": lambda: {"input": _image(), "filter": f(2, 2, 2, 3), **_CONV},
    "Conv2DBackpropFilter": lambda: {
        "input": _image(),
        "filter_sizes": i([2, 2, 2, 3]),
        "out_backprop": f(1, 4, 4, 3),
        **_CONV,
    },
    "Conv2DBackpropInput": lambda: {
        "input_sizes": i([1, 4, 4, 2]),
        "filter": f(2, 2, 2, 3),
        "out_backprop": f(1, 4, 4, 3),
        **_CONV,
    },
    "Conv3D": lambda: {"input": _volume(), "filter": f(2, 2, 2, 2, 3), **_CONV3},
    "Conv3DBackpropFilterV2": lambda: {
        "input": _volume(),
        "filter_sizes": i([2, 2, 2, 2, 3]),
        "out_backprop": f(1, 4, 4, 4, 3),
        **_CONV3,
    },
    "Conv3DBackpropInputV2": lambda: {
        "input_sizes": i([1, 4, 4, 4, 2]),
        "filter": f(2, 2, 2, 2, 3),
        "out_backprop": f(1, 4, 4, 4, 3),
        **_CONV3,
    },
    "CropAndResize": lambda: {
        "image": _image(),
        "boxes": i([[0.1, 0.1, 0.7, 0.7]], "float32"),
        "box_ind": i([0]),
        "crop_size": i([3, 3]),
    },
    "CTCLoss": lambda: {
        "inputs": f(4, 1, 3),
        "labels_indices": long([[0, 0]]),
        "labels_values": i([1]),
        "sequence_length": i([4]),
    },
    "DenseBincount": lambda: {"input": i([0, 1, 1]), "size": i(3), "weights": f(3)},
    "DepthToSpace": lambda: {"input": f(1, 2, 2, 4), "block_size": 2},
    "DepthwiseConv2dNative": lambda: {"input": _image(), "filter": f(2, 2, 2, 1), **_CONV},
    "DepthwiseConv2dNativeBackpropFilter": lambda: {
        "input": _image(),
        "filter_sizes": i([2, 2, 2, 1]),
        "out_backprop": _image(),
        **_CONV,
    },
    "DepthwiseConv2dNativeBackpropInput": lambda: {
        "input_sizes": i([1, 4, 4, 2]),
        "filter": f(2, 2, 2, 1),
        "out_backprop": _image(),
        **_CONV,
    },
    "Dilation2D": lambda: {
        "input": _image(),
        "filter": f(2, 2, 2),
        "strides": [1, 1, 1, 1],
        "rates": [1, 1, 1, 1],
        "padding": "SAME",
    },
    "DynamicPartition": lambda: {"data": f(3), "partitions": i([0, 1, 0]), "num_partitions": 2},
    "Einsum": lambda: {"inputs": [f(2, 3), f(3, 2)], "equation": "ij,jk->ik"},
    "EnsureShape": lambda: {"input": f(3), "shape": [3]},
    "EluGrad": lambda: {"gradients": f(4), "outputs": -f(4)},
    "FakeQuantWithMinMaxVars": lambda: {"inputs": f(6, low=-0.5, high=1.5), "min": f() * 0.0, "max": f() * 0.0 + 1.0},
    "FakeQuantWithMinMaxVarsPerChannel": lambda: {
        "inputs": f(6, 2, low=-0.5, high=1.5),
        "min": f(2) * 0.0,
        "max": f(2) * 0.0 + 1.0,
    },
    "Fill": lambda: {"dims": i([2]), "value": f()},
    "FractionalAvgPool": lambda: {"value": f(1, 6, 6, 1), "pooling_ratio": [1.0, 1.5, 1.5, 1.0]},
    "FractionalMaxPool": lambda: {"value": f(1, 6, 6, 1), "pooling_ratio": [1.0, 1.5, 1.5, 1.0]},
    "FusedBatchNorm": _normalized,
    "FusedBatchNormGrad": _normalized_grad,
    "FusedBatchNormGradV2": _normalized_grad,
    "FusedBatchNormGradV3": lambda: _normalized_grad(reserve_space_3=f(2)),
    "FusedBatchNormV2": _normalized,
    "FusedBatchNormV3": _normalized,
    "Gather": lambda: {"params": f(3), "indices": i([0, 2])},
    "GatherNd": lambda: {"params": f(3), "indices": i([[0], [2]])},
    "IdentityN": lambda: {"input": [f(2), f(3)]},
    "ImageProjectiveTransformV2": lambda: {
        "images": _image(),
        "transforms": i([[1, 0, 0.5, 0, 1, 0.5, 0, 0]], "float32"),
        "output_shape": i([4, 4]),
        "interpolation": "BILINEAR",
    },
    "ImageProjectiveTransformV3": lambda: {
        "images": _image(),
        "transforms": i([[1, 0, 0.5, 0, 1, 0.5, 0, 0]], "float32"),
        "output_shape": i([4, 4]),
        "fill_value": f(),
        "interpolation": "BILINEAR",
    },
    "InvertPermutation": lambda: {"x": i([2, 0, 1])},
    "IRFFT": lambda: {"input": f(5, dtype="complex64"), "fft_length": i([8])},
    "IRFFT2D": lambda: {"input": f(4, 3, dtype="complex64"), "fft_length": i([4, 4])},
    "LeakyReluGrad": lambda: {"gradients": f(4), "features": f(4)},
    "HistogramFixedWidth": lambda: {"values": f(3), "value_range": i([0.0, 1.0], "float32"), "nbins": i(3)},
    "LogMatrixDeterminant": lambda: {"input": _square(3)},
    "LowerBound": lambda: {"sorted_inputs": f(1, 3), "values": f(1, 2)},
    "MatrixDiagPartV2": lambda: {"input": f(3, 3), "k": i(0), "padding_value": f()},
    "MatrixDiagPartV3": lambda: {"input": f(3, 3), "k": i([0, 1]), "padding_value": f()},
    "MatrixDiagV2": lambda: {
        "diagonal": f(3),
        "k": i(0),
        "num_rows": i(-1),
        "num_cols": i(-1),
        "padding_value": f(),
    },
    "MatrixDiagV3": lambda: {
        "diagonal": f(3),
        "k": i(0),
        "num_rows": i(-1),
        "num_cols": i(-1),
        "padding_value": f(),
    },
    "MatrixSetDiag": lambda: {"input": f(3, 3), "diagonal": f(3)},
    "MatrixSetDiagV2": lambda: {"input": f(3, 3), "diagonal": f(3), "k": i(0)},
    "MatrixSetDiagV3": lambda: {"input": f(3, 3), "diagonal": f(3), "k": i(0)},
    "MatrixSquareRoot": lambda: {"input": _square(3)},
    "MatrixSolveLs": lambda: {"matrix": _square(3), "rhs": f(3, 1), "l2_regularizer": i(0.1, "float64")},
    "MaxPool3DGrad": lambda: {
        "orig_input": (x := _volume()),
        "orig_output": tf.raw_ops.MaxPool3D(input=x, **_POOL3),
        "grad": f(1, 2, 2, 2, 2),
        **_POOL3,
    },
    "MaxPool3DGradGrad": lambda: {
        "orig_input": (x := _volume()),
        "orig_output": tf.raw_ops.MaxPool3D(input=x, **_POOL3),
        "grad": _volume(),
        **_POOL3,
    },
    "MaxPoolGrad": lambda: {
        "orig_input": (x := _image()),
        "orig_output": tf.raw_ops.MaxPool(input=x, **_POOL),
        "grad": f(1, 2, 2, 2),
        **_POOL,
    },
    "MaxPoolGradGrad": lambda: {
        "orig_input": (x := _image()),
        "orig_output": tf.raw_ops.MaxPool(input=x, **_POOL),
        "grad": _image(),
        **_POOL,
    },
    "MaxPoolGradV2": lambda: {
        "orig_input": (x := _image()),
        "orig_output": tf.raw_ops.MaxPool(input=x, **_POOL),
        "grad": f(1, 2, 2, 2),
        "ksize": i([1, 2, 2, 1]),
        "strides": i([1, 2, 2, 1]),
        "padding": "VALID",
    },
    "MaxPoolV2": lambda: {
        "input": _image(),
        "ksize": i([1, 2, 2, 1]),
        "strides": i([1, 2, 2, 1]),
        "padding": "VALID",
    },
    "MirrorPad": lambda: {"input": f(3), "paddings": i([[1, 1]]), "mode": "REFLECT"},
    "Multinomial": lambda: {"logits": f(1, 3), "num_samples": i(2)},
    "NonMaxSuppressionV3": lambda: _boxes(score_threshold=f()),
    "NonMaxSuppressionV4": lambda: _boxes(score_threshold=f()),
    "NonMaxSuppressionV5": lambda: _boxes(score_threshold=f(), soft_nms_sigma=f()),
    "OneHot": lambda: {"indices": i([0, 2]), "depth": i(3), "on_value": f(), "off_value": f(), "axis": -1},
    "PadV2": lambda: {"input": f(3), "paddings": i([[1, 1]]), "constant_values": f()},
    "QuantizeAndDequantizeV3": lambda: {
        "input": f(4),
        "input_min": f() * 0.0,
        "input_max": f() * 0.0 + 1.0,
        "num_bits": i(8),
        "range_given": True,
    },
    "QuantizeAndDequantizeV2": lambda: {
        "input": f(4),
        "input_min": f() * 0.0,
        "input_max": f() * 0.0 + 1.0,
        "range_given": True,
    },
    "QuantizeAndDequantizeV4": lambda: {
        "input": f(6, low=-0.5, high=1.5),
        "input_min": f() * 0.0 - 0.2,
        "input_max": f() * 0.0 + 1.0,
        "range_given": True,
    },
    "RaggedBincount": lambda: {"splits": long([0, 2, 3]), "values": i([0, 1, 1]), "size": i(3), "weights": f(3)},
    "RaggedFillEmptyRows": lambda: {
        "value_rowids": long([0, 2]),
        "values": f(2),
        "nrows": long(3),
        "default_value": f(),
    },
    "RandomPoissonV2": lambda: {"shape": i([2]), "rate": f(3)},
    "RandomShuffle": lambda: {"value": f(4)},
    "RandomUniformInt": lambda: {"shape": i([2]), "minval": i(0), "maxval": i(9)},
    "RaggedTensorToTensor": lambda: {
        "shape": long([2, 2]),
        "values": f(3),
        "default_value": f(),
        "row_partition_tensors": [long([0, 2, 3])],
        "row_partition_types": ["ROW_SPLITS"],
    },
    "ReadVariableOp": lambda: {"resource": tf.Variable([0.1, 0.2]), "dtype": "float32"},
    "ReluGrad": lambda: {"gradients": f(4), "features": f(4)},
    "Relu6Grad": lambda: {"gradients": f(4), "features": f(4)},
    "ResourceGather": lambda: {"resource": tf.Variable([0.1, 0.2, 0.3]), "indices": i([0, 2]), "dtype": "float32"},
    "ResourceGatherNd": lambda: {
        "resource": tf.Variable([0.1, 0.2, 0.3]),
        "indices": i([[0], [2]]),
        "dtype": "float32",
    },
    "RFFT": lambda: {"input": f(8), "fft_length": i([8])},
    "RFFT2D": lambda: {"input": f(4, 4), "fft_length": i([4, 4])},
    "ScaleAndTranslate": lambda: {"images": _image(), "size": i([4, 4]), "scale": f(2), "translation": f(2)},
    "ScatterNd": lambda: {"indices": i([[0], [2]]), "updates": f(2), "shape": i([4])},
    "SegmentMax": lambda: {"data": f(3), "segment_ids": i([0, 0, 1])},
    "SegmentMean": lambda: {"data": f(3), "segment_ids": i([0, 0, 1])},
    "SegmentMin": lambda: {"data": f(3), "segment_ids": i([0, 0, 1])},
    "SegmentProd": lambda: {"data": f(3), "segment_ids": i([0, 0, 1])},
    "SegmentSum": lambda: {"data": f(3), "segment_ids": i([0, 0, 1])},
    "Select": lambda: {"condition": i([True, False], "bool"), "x": f(2), "y": f(2)},
    "SeluGrad": lambda: {"gradients": f(4), "outputs": -f(4)},
    "Slice": lambda: {"input": f(4), "begin": i([1]), "size": i([2])},
    "SoftmaxCrossEntropyWithLogits": lambda: {"features": f(2, 3), "labels": f(2, 3)},
    "SpaceToBatch": lambda: {"input": f(1, 4, 4, 1), "paddings": i([[0, 0], [0, 0]]), "block_size": 2},
    "SparseAdd": lambda: {
        **_sparse("a_indices", "a_values", "a_shape"),
        **_sparse("b_indices", "b_values", "b_shape"),
        "thresh": f() * 0.0,
    },
    "SparseDenseCwiseAdd": lambda: {**_sparse("sp_indices", "sp_values", "sp_shape"), "dense": f(2, 3)},
    "SparseDenseCwiseDiv": lambda: {**_sparse("sp_indices", "sp_values", "sp_shape"), "dense": f(2, 3)},
    "SparseDenseCwiseMul": lambda: {**_sparse("sp_indices", "sp_values", "sp_shape"), "dense": f(2, 3)},
    "SparseFillEmptyRows": lambda: {
        **dict(zip(("indices", "values", "dense_shape"), (long([[0, 0], [2, 1]]), f(2), long([3, 3])), strict=True)),
        "default_value": f(),
    },
    "SparseReduceSum": lambda: {
        **_sparse("input_indices", "input_values", "input_shape"),
        "reduction_axes": i([0]),
    },
    "SparseReorder": lambda: _sparse("input_indices", "input_values", "input_shape"),
    "SparseSegmentMean": lambda: _segments(indices=i([0, 1, 3])),
    "SparseSegmentMeanWithNumSegments": lambda: _segments(indices=i([0, 1, 3]), num_segments=i(2)),
    "SparseSegmentSqrtN": lambda: _segments(indices=i([0, 1, 3])),
    "SparseSegmentSqrtNWithNumSegments": lambda: _segments(indices=i([0, 1, 3]), num_segments=i(2)),
    "SparseSegmentSum": lambda: _segments(indices=i([0, 1, 3])),
    "SparseSegmentSumWithNumSegments": lambda: _segments(indices=i([0, 1, 3]), num_segments=i(2)),
    "SparseSlice": lambda: {
        **_sparse("indices", "values", "shape"),
        "start": long([0, 0]),
        "size": long([2, 2]),
    },
    "SparseSoftmax": lambda: {
        "sp_indices": long([[0, 0], [0, 1], [1, 2]]),
        "sp_values": f(3),
        "sp_shape": long([2, 3]),
    },
    "SparseSoftmaxCrossEntropyWithLogits": lambda: {"features": f(2, 3), "labels": i([0, 2])},
    "SparseSparseMaximum": lambda: {
        **_sparse("a_indices", "a_values", "a_shape"),
        **_sparse("b_indices", "b_values", "b_shape"),
    },
    "SparseSparseMinimum": lambda: {
        **_sparse("a_indices", "a_values", "a_shape"),
        **_sparse("b_indices", "b_values", "b_shape"),
    },
    "SparseTensorDenseAdd": lambda: {**_sparse("a_indices", "a_values", "a_shape"), "b": f(2, 3)},
    "SparseTensorDenseMatMul": lambda: {**_sparse("a_indices", "a_values", "a_shape"), "b": f(3, 2)},
    "SparseToDense": lambda: {
        "sparse_indices": i([[0], [2]]),
        "output_shape": i([3]),
        "sparse_values": f(2),
        "default_value": f(),
    },
    "Split": lambda: {"axis": i(0), "value": f(4), "num_split": 2},
    "SplitV": lambda: {"value": f(4), "size_splits": i([1, 3]), "axis": i(0), "num_split": 2},
    "StatefulRandomBinomial": lambda: {
        "resource": tf.Variable([1, 2, 3], dtype="int64"),
        "algorithm": long(1),
        "shape": i([2]),
        "counts": f(),
        "probs": f(),
        "dtype": "float32",
    },
    "StatelessMultinomial": lambda: {"logits": f(1, 3), "num_samples": i(2), **_SAMPLED},
    "StatelessParameterizedTruncatedNormal": lambda: {
        "shape": i([3]),
        **_SAMPLED,
        "means": f(),
        "stddevs": f(),
        "minvals": -f() - 2.0,
        "maxvals": f() + 2.0,
    },
    "StatelessRandomBinomial": lambda: {"shape": i([2]), **_SAMPLED, "counts": f(), "probs": f(), "dtype": "float32"},
    "StatelessRandomGammaV2": lambda: {"shape": i([2]), **_SAMPLED, "alpha": f(2)},
    "StatelessRandomGammaV3": lambda: {
        "shape": i([2]),
        "key": i([1], "uint64"),
        "counter": i([1, 2], "uint64"),
        "alg": i(1),
        "alpha": f(2),
    },
    "StatelessRandomPoisson": lambda: {"shape": i([3]), **_SAMPLED, "lam": f(3), "dtype": "float32"},
    "StridedSlice": lambda: {"input": f(4), "begin": i([0]), "end": i([2]), "strides": i([1])},
    "StridedSliceGrad": lambda: {
        "shape": i([4]),
        "begin": i([0]),
        "end": i([2]),
        "strides": i([1]),
        "dy": f(2),
    },
    "TensorScatterUpdate": lambda: {"tensor": f(4), "indices": i([[1]]), "updates": f(1)},
    "TensorStridedSliceUpdate": lambda: {
        "input": f(4),
        "begin": i([0]),
        "end": i([2]),
        "strides": i([1]),
        "value": f(2),
    },
    "TridiagonalMatMul": lambda: {"superdiag": f(1, 3), "maindiag": f(1, 3), "subdiag": f(1, 3), "rhs": f(3, 2)},
    "TridiagonalSolve": lambda: {"diagonals": f(3, 3) + 1.0, "rhs": f(3, 1)},
    "Unpack": lambda: {"value": f(2, 3), "num": 2},
    "UpperBound": lambda: {"sorted_inputs": f(1, 3), "values": f(1, 2)},
    "VariableShape": lambda: {"input": tf.Variable([0.1, 0.2])},
}
"""The ops whose arguments must fit together."""

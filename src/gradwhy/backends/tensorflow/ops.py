"""What each op's inputs carry: from the running TensorFlow's own gradient registry, and what it does not say by hand."""

from __future__ import annotations

from typing import Any

from gradwhy.flow import Barrier, Passage

Carried = tuple[Passage, Barrier | None]

FLOWS: Carried = (Passage.FLOWS, None)

_INDEX, _SHAPE, _CONDITION = Barrier.INDEX, Barrier.SHAPE, Barrier.CONDITION

BY_INPUT: dict[str, dict[int, Barrier]] = {
    "GatherV2": {1: _INDEX, 2: _SHAPE},
    "Gather": {1: _INDEX},
    "GatherNd": {1: _INDEX},
    "ResourceGather": {1: _INDEX},
    "ResourceGatherNd": {1: _INDEX},
    "ScatterNd": {0: _INDEX, 2: _SHAPE},
    "TensorScatterUpdate": {1: _INDEX},
    "TensorScatterAdd": {1: _INDEX},
    "TensorScatterSub": {1: _INDEX},
    "TensorScatterMin": {1: _INDEX},
    "TensorScatterMax": {1: _INDEX},
    "Select": {0: _CONDITION},
    "SelectV2": {0: _CONDITION},
    "If": {0: _CONDITION},
    "StatelessIf": {0: _CONDITION},
    "OneHot": {0: _INDEX, 1: _SHAPE},
    "SparseTensorDenseMatMul": {0: _INDEX, 2: _SHAPE},
    "SparseToDense": {0: _INDEX, 1: _SHAPE},
    "SegmentSum": {1: _INDEX},
    "SegmentMean": {1: _INDEX},
    "SegmentMax": {1: _INDEX},
    "SegmentMin": {1: _INDEX},
    "UnsortedSegmentSum": {1: _INDEX, 2: _SHAPE},
    "UnsortedSegmentMax": {1: _INDEX, 2: _SHAPE},
    "UnsortedSegmentMin": {1: _INDEX, 2: _SHAPE},
    "UnsortedSegmentProd": {1: _INDEX, 2: _SHAPE},
    "SparseSegmentSum": {1: _INDEX, 2: _INDEX},
    "SparseSegmentMean": {1: _INDEX, 2: _INDEX},
    "DynamicPartition": {1: _INDEX},
    "Reshape": {1: _SHAPE},
    "BroadcastTo": {1: _SHAPE},
    "Fill": {0: _SHAPE},
    "Tile": {1: _SHAPE},
    "ExpandDims": {1: _SHAPE},
    "Transpose": {1: _SHAPE},
    "Pad": {1: _SHAPE},
    "PadV2": {1: _SHAPE},
    "MirrorPad": {1: _SHAPE},
    "Slice": {1: _INDEX, 2: _SHAPE},
    "StridedSlice": {1: _INDEX, 2: _INDEX, 3: _SHAPE},
    "ResizeBilinear": {1: _SHAPE},
    "ResizeNearestNeighbor": {1: _SHAPE},
    "ResizeBicubic": {1: _SHAPE},
    "ResizeArea": {1: _SHAPE},
    "TopKV2": {1: _SHAPE},
    "TopK": {1: _SHAPE},
    "Sum": {1: _SHAPE},
    "Mean": {1: _SHAPE},
    "Max": {1: _SHAPE},
    "Min": {1: _SHAPE},
    "Prod": {1: _SHAPE},
    "Cumsum": {1: _SHAPE},
    "Cumprod": {1: _SHAPE},
    "ConcatV2": {},
    "SparseSoftmaxCrossEntropyWithLogits": {1: _INDEX},
    "DenseBincount": {0: _INDEX, 1: _SHAPE},
    "RaggedBincount": {1: _INDEX, 2: _SHAPE},
    "CropAndResize": {2: _INDEX, 3: _SHAPE},
}
"""Inputs that carry no derivative because of what they are, by op and position."""

BY_OP: dict[str, Barrier] = {
    **dict.fromkeys(
        ("Equal", "NotEqual", "Greater", "GreaterEqual", "Less", "LessEqual", "ApproximateEqual"), Barrier.CONDITION
    ),
    **dict.fromkeys(("LogicalAnd", "LogicalOr", "LogicalNot", "All", "Any"), Barrier.CONDITION),
    **dict.fromkeys(("IsNan", "IsInf", "IsFinite"), Barrier.CONDITION),
    **dict.fromkeys(
        ("ArgMax", "ArgMin", "Where", "Bucketize", "SearchSorted", "LowerBound", "UpperBound"), Barrier.INDEX
    ),
    **dict.fromkeys(("UniqueV2", "Unique", "UniqueWithCounts", "InvertPermutation"), Barrier.INDEX),
    **dict.fromkeys(("NonMaxSuppressionV3", "NonMaxSuppressionV4", "NonMaxSuppressionV5"), Barrier.INDEX),
    **dict.fromkeys(
        ("Multinomial", "StatelessMultinomial", "RandomShuffle", "StatelessRandomPoisson", "RandomPoissonV2"),
        Barrier.SAMPLE,
    ),
    **dict.fromkeys(("StatelessRandomBinomial", "StatefulRandomBinomial", "RandomUniformInt"), Barrier.SAMPLE),
    **dict.fromkeys(
        ("Round", "Rint", "Floor", "Ceil", "Sign", "FloorDiv", "TruncateDiv", "BitwiseAnd"), Barrier.NOT_DIFFERENTIABLE
    ),
    **dict.fromkeys(("ZerosLike", "OnesLike", "Shape", "ShapeN", "Size", "Rank", "VariableShape"), Barrier.SHAPE),
    **dict.fromkeys(("StopGradient", "PreventGradient"), Barrier.STOPPED),
    **dict.fromkeys(("PyFunc", "PyFuncStateless"), Barrier.HOST),
}
"""Ops none of whose inputs gets a derivative, with the reason; some register a gradient that gives None or zeros."""

DEAD_INPUTS: dict[str, frozenset[int]] = {
    "Range": frozenset({0, 1, 2}),
    "LinSpace": frozenset({0, 1, 2}),
    "Histogram": frozenset({0}),
}
"""Float inputs for which a registered gradient gives None."""

_CAPTURED = ("resource", "variant", "")


def is_float(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat", "complex", "half", "double"))


def carries(op: str, position: int, *, given: str, made: str, has_gradient: bool | None) -> Carried:
    """What input number `position` of `op` carries of a gradient.

    `given` and `made` are the dtypes of the input and of the output in question. `has_gradient`: the registry has a function
    for the op (True), declares that there is none (None), or does not know the op (False).
    """
    by_input = BY_INPUT.get(op, {}).get(position)
    if by_input is not None:
        return Passage.NOTHING, by_input
    if op in BY_OP:
        barrier = BY_OP[op]
        nothing = barrier in (_INDEX, _SHAPE, _CONDITION, Barrier.SAMPLE)
        return (Passage.NOTHING if nothing else Passage.CUT), barrier
    if given not in _CAPTURED and not is_float(given):
        return Passage.CUT, Barrier.INTEGER
    if position in DEAD_INPUTS.get(op, ()):
        return Passage.CUT, Barrier.NOT_DIFFERENTIABLE
    if made not in _CAPTURED and not is_float(made):
        # An integer output of a float op: the indices of a top-k, a cast.
        return (Passage.CUT, Barrier.NOT_DIFFERENTIABLE) if op == "Cast" else (Passage.NOTHING, Barrier.INDEX)
    if has_gradient is False:
        return Passage.CUT, Barrier.NOT_REGISTERED
    if has_gradient is None:
        return Passage.CUT, Barrier.NOT_DIFFERENTIABLE
    return FLOWS


class Registry:
    """The running TensorFlow's gradient registry, as the one question that is asked of it."""

    def __init__(self, ops_module: Any) -> None:
        self._ops = ops_module

    def has_gradient(self, op: str) -> bool | None:
        """True: a function is registered; None: declared not differentiable; False: not known."""
        try:
            return True if self._ops._gradient_registry.lookup(op) is not None else None
        except LookupError:
            return False

"""What each op's inputs carry: from the running TensorFlow's own gradient registry, and what it does not say by hand."""

from __future__ import annotations

from typing import Any

from gradwhy.flow import Barrier, Passage

Carried = tuple[Passage, Barrier | None]

FLOWS: Carried = (Passage.FLOWS, None)

_INDEX, _SHAPE, _CONDITION = Barrier.INDEX, Barrier.SHAPE, Barrier.CONDITION

BY_INPUT: dict[str, dict[int, Barrier]] = {
    "GatherV2": {1: _INDEX},
    "Gather": {1: _INDEX},
    "GatherNd": {1: _INDEX},
    "ResourceGather": {1: _INDEX},
    "ResourceGatherNd": {1: _INDEX},
    "ScatterNd": {0: _INDEX},
    "TensorScatterUpdate": {1: _INDEX},
    "TensorScatterAdd": {1: _INDEX},
    "TensorScatterSub": {1: _INDEX},
    "TensorScatterMin": {1: _INDEX},
    "TensorScatterMax": {1: _INDEX},
    "Select": {0: _CONDITION},
    "SelectV2": {0: _CONDITION},
    "If": {0: _CONDITION},
    "StatelessIf": {0: _CONDITION},
    "OneHot": {0: _INDEX},
    "SparseTensorDenseMatMul": {0: _INDEX},
    "SparseToDense": {0: _INDEX},
    "SegmentSum": {1: _INDEX},
    "SegmentMean": {1: _INDEX},
    "SegmentMax": {1: _INDEX},
    "SegmentMin": {1: _INDEX},
    "SegmentProd": {1: _INDEX},
    "UnsortedSegmentSum": {1: _INDEX},
    "UnsortedSegmentMax": {1: _INDEX},
    "UnsortedSegmentMin": {1: _INDEX},
    "UnsortedSegmentProd": {1: _INDEX},
    "SparseSegmentSum": {1: _INDEX, 2: _INDEX},
    "SparseSegmentMean": {1: _INDEX, 2: _INDEX},
    "SparseSegmentSqrtN": {1: _INDEX, 2: _INDEX},
    "DynamicPartition": {1: _INDEX},
    "Slice": {1: _INDEX},
    "StridedSlice": {1: _INDEX, 2: _INDEX},
    "SparseSoftmaxCrossEntropyWithLogits": {1: _INDEX},
    "DenseBincount": {0: _INDEX},
    "RaggedBincount": {1: _INDEX},
    "CropAndResize": {2: _INDEX},
}
"""Inputs that carry no derivative because of what they are, by op and position. Any other input that can only hold whole
numbers or booleans where the output holds real ones says how to compute: a size, an axis, a seed. `Registry` knows those."""

BY_OP: dict[str, Barrier] = {
    **dict.fromkeys(
        ("Equal", "NotEqual", "Greater", "GreaterEqual", "Less", "LessEqual", "ApproximateEqual"), Barrier.CONDITION
    ),
    **dict.fromkeys(("LogicalAnd", "LogicalOr", "LogicalNot", "All", "Any"), Barrier.CONDITION),
    **dict.fromkeys(("IsNan", "IsInf", "IsFinite"), Barrier.CONDITION),
    **dict.fromkeys(("ArgMax", "ArgMin", "Where", "Bucketize", "LowerBound", "UpperBound"), Barrier.INDEX),
    "InvertPermutation": Barrier.INDEX,
    **dict.fromkeys(("NonMaxSuppressionV3", "NonMaxSuppressionV4", "NonMaxSuppressionV5"), Barrier.INDEX),
    **dict.fromkeys(
        ("Multinomial", "StatelessMultinomial", "StatelessRandomPoisson", "RandomPoissonV2"), Barrier.SAMPLE
    ),
    **dict.fromkeys(("StatelessRandomBinomial", "StatefulRandomBinomial", "RandomUniformInt"), Barrier.SAMPLE),
    **dict.fromkeys(
        ("Round", "Rint", "Floor", "Ceil", "Sign", "FloorDiv", "TruncateDiv", "HistogramFixedWidth"),
        Barrier.NOT_DIFFERENTIABLE,
    ),
    **dict.fromkeys(("ZerosLike", "OnesLike", "Shape", "ShapeN", "Size", "Rank", "VariableShape"), Barrier.SHAPE),
    **dict.fromkeys(("StopGradient", "PreventGradient"), Barrier.STOPPED),
    **dict.fromkeys(("PyFunc", "PyFuncStateless"), Barrier.HOST),
}
"""Ops none of whose inputs gets a derivative, with the reason; some register a gradient that gives None or zeros."""

DEAD_INPUTS: dict[str, frozenset[int]] = {
    "Betainc": frozenset({0, 1}),
    **dict.fromkeys(("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"), frozenset({3, 4})),
    **dict.fromkeys(("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"), frozenset({3, 4, 5})),
    "ImageProjectiveTransformV2": frozenset({1}),
    "ImageProjectiveTransformV3": frozenset({1, 3}),
    **dict.fromkeys(("MatrixDiagPartV2", "MatrixDiagPartV3"), frozenset({2})),
    **dict.fromkeys(("MatrixDiagV2", "MatrixDiagV3"), frozenset({4})),
    "MatrixSolveLs": frozenset({2}),
    "NextAfter": frozenset({1}),
    "PadV2": frozenset({2}),
    "Polygamma": frozenset({0}),
    **dict.fromkeys(
        ("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3", "QuantizeAndDequantizeV4"), frozenset({1, 2})
    ),
    "ScaleAndTranslate": frozenset({2, 3}),
    "SparseAdd": frozenset({6}),
    "Zeta": frozenset({0}),
}
"""Float inputs for which a registered gradient gives None or zeros, seen in 2.21."""

DEAD_OUTPUTS: dict[str, frozenset[int]] = {
    **dict.fromkeys(("BlockLSTM", "BlockLSTMV2"), frozenset({0, 2, 3, 4, 5})),
    "CTCLoss": frozenset({1}),
    **dict.fromkeys(("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"), frozenset({1, 2, 3, 4, 5})),
    **dict.fromkeys(("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"), frozenset({3, 4})),
    "LogMatrixDeterminant": frozenset({0}),
}
"""Float outputs whose gradient a registered function throws away, so that zeros arrive in silence, seen in 2.21."""

PAIRED = frozenset({"IdentityN"})
"""Ops whose every output is made from no other input than the one of its number."""

_CAPTURED = ("resource", "variant", "")
_WHOLE = frozenset({3, 4, 5, 6, 9, 10, 17, 22, 23})
"""TensorFlow's numbers for its whole-number dtypes and for booleans."""


def is_float(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat", "complex", "half", "double"))


def carries(
    op: str,
    position: int,
    *,
    given: str,
    made: str,
    has_gradient: bool | None,
    is_whole: bool = False,
    output: int = 0,
) -> Carried:
    """What input number `position` of `op` carries of a gradient to its output number `output`.

    `given` and `made` are the dtypes of the input and of that output. `has_gradient`: the registry has a function
    for the op (True), declares that there is none (None), or does not know the op (False). `is_whole`: the op takes nothing but
    whole numbers or booleans there.
    """
    by_input = BY_INPUT.get(op, {}).get(position)
    if by_input is not None:
        return Passage.NOTHING, by_input
    if op in BY_OP:
        barrier = BY_OP[op]
        nothing = barrier in (_INDEX, _SHAPE, _CONDITION, Barrier.SAMPLE)
        return (Passage.NOTHING if nothing else Passage.CUT), barrier
    if is_whole and is_float(made):
        return Passage.NOTHING, _SHAPE
    if given not in _CAPTURED and not is_float(given):
        return Passage.CUT, Barrier.INTEGER
    if position in DEAD_INPUTS.get(op, ()) or output in DEAD_OUTPUTS.get(op, ()):
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
    """What the running TensorFlow itself says of its ops."""

    def __init__(self, ops_module: Any, op_defs: Any) -> None:
        self._ops, self._op_defs = ops_module, op_defs

    def has_gradient(self, op: str) -> bool | None:
        """True: a function is registered; None: declared not differentiable; False: not known."""
        try:
            return True if self._ops._gradient_registry.lookup(op) is not None else None
        except LookupError:
            return False

    def is_whole(self, op: str, position: int, *, count: int) -> bool:
        """Whether input number `position` of the `count` inputs of `op` can hold nothing but whole numbers or booleans."""
        definition = self._op_defs.get(op)
        if definition is None:
            return False
        arguments = definition.input_arg
        several = [number for number, argument in enumerate(arguments) if _is_list(argument)]
        if len(several) > 1:
            # Where the one list ends and the next begins is not said by the count.
            return False
        if several and position >= several[0]:
            position = max(several[0], position - (count - len(arguments)))
        return position < len(arguments) and _allowed(definition, arguments[position]) <= _WHOLE

    def makes_whole(self, op: str, index: int) -> bool:
        """Whether output number `index` of `op` can hold nothing but whole numbers or booleans: the indices of a top-k."""
        definition = self._op_defs.get(op)
        if definition is None or any(map(_is_list, definition.output_arg)) or index >= len(definition.output_arg):
            return False
        return _allowed(definition, definition.output_arg[index]) <= _WHOLE


def _is_list(argument: Any) -> bool:
    return bool(argument.number_attr or argument.type_list_attr)


def _allowed(definition: Any, argument: Any) -> frozenset[int]:
    """The numbers of the dtypes that an argument may have; 0 stands for any."""
    if argument.type:
        return frozenset({argument.type})
    (attribute,) = (a for a in definition.attr if a.name == (argument.type_attr or argument.type_list_attr))
    return frozenset(attribute.allowed_values.list.type) or frozenset({0})

"""The table of ops against the running TensorFlow: every op that it names, and every registered gradient, is differentiated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tensorflow.python.framework import op_def_registry, ops

from gradwhy.backends.tensorflow.ops import (
    BY_INPUT,
    BY_OP,
    DEAD_INPUTS,
    DEAD_OUTPUTS,
    FLOWS,
    PAIRED,
    Carried,
)
from gradwhy.flow import Barrier, Passage
from op_truth import REGISTRY, Input, inputs_of, told

REGISTERED = sorted(
    name
    for name in ops._gradient_registry.list()
    if ops._gradient_registry.lookup(name) is not None and op_def_registry.get(name) is not None
)
BODIES = frozenset({"If", "StatelessIf", "PyFunc", "PyFuncStateless"})
"""Ops that run a function of the user's: they are made by their public doors."""
LISTED = sorted({*BY_INPUT, *BY_OP, *DEAD_INPUTS, *DEAD_OUTPUTS} - BODIES)

WAITS_OR_ABORTS = frozenset(
    {
        "AllToAll",
        "CollectivePermute",
        "CrossReplicaSum",
        "Enter",
        "LoopCond",
        "NcclAllReduce",
        "NcclBroadcast",
        "NcclReduce",
        "RefEnter",
    }
)
"""Ops of distributed programs and of TensorFlow 1 loops, which end the process or wait for others where called alone."""

OTHERS_WITHOUT_A_CALL = frozenset(
    # No kernel for a processor, or none that eager TensorFlow may call.
    {"AccumulateNV2", "BatchNormWithGlobalNormalization", "CTCLossV2", "CudnnRNN", "CudnnRNNV2", "CudnnRNNV3"}
    | {"QuantizeAndDequantize", "TPUEmbeddingActivations", "TopK", "Print", "DebugGradientRefIdentity"}
    | {"RefExit", "RefIdentity", "RefMerge", "RefNextIteration", "RefSwitch"}
    # No function for them in `tf.raw_ops`.
    | {"CopyToMesh", "CopyToMeshGrad", "Relayout", "RelayoutLike", "XlaClusterOutput", "XlaEinsum", "XlaSharding"}
    | {"XlaSpmdFullToShardShape", "XlaSpmdShardToFullShape", "_EagerConst"}
    # They run a body.
    | {"Case", "EagerPyFunc", "If", "StatelessCase", "StatelessIf", "StatelessWhile", "While"}
    # They read a variant or a resource that only another op can make.
    | {"CSRSparseMatrixToDense", "CSRSparseMatrixToSparseTensor", "CompositeTensorVariantFromComponents"}
    | {"CompositeTensorVariantToComponents", "OptionalFromValue", "OptionalGetValue", "RaggedTensorFromVariant"}
    | {"SparseMatrixAdd", "SparseMatrixMatMul", "SparseMatrixMul", "SparseMatrixSoftmax", "SparseMatrixSparseMatMul"}
    | {"SparseMatrixTranspose", "SparseTensorToCSRSparseMatrix"}
    | {
        f"TensorArray{way}{v}"
        for way in ("Concat", "Gather", "Read", "Scatter", "Split", "Write")
        for v in ("", "V2", "V3")
    }
    | {f"TensorList{way}" for way in ("Concat", "ConcatV2", "Gather", "GetItem", "PopBack", "PushBack", "Resize")}
    | {f"TensorList{way}" for way in ("ScatterIntoExistingList", "ScatterV2", "SetItem", "Stack")}
)

FAILS = frozenset(
    {
        "DebugGradientIdentity",
        "Exit",
        "Merge",
        "QuantizeAndDequantizeV4Grad",
        "SparseDenseCwiseAdd",
        "SparseSparseMaximum",
        "SparseSparseMinimum",
        "Switch",
    }
)
"""Ops whose registered function raises in eager TensorFlow 2.21: the question ends with an error that names it."""

FLAT: dict[str, set[tuple[int, int]]] = {
    **{f"FusedBatchNormGrad{v}": {(2, 1), (1, 2), (2, 2)} for v in ("", "V2", "V3")},
    "LeakyReluGrad": {(1, 0)},
    "MaxPool3DGrad": {(0, 0), (1, 0)},
    "MaxPool3DGradGrad": {(0, 0), (1, 0)},
    "MaxPoolGrad": {(0, 0), (1, 0)},
    "MaxPoolGradGrad": {(0, 0), (1, 0)},
    "MaxPoolGradV2": {(0, 0), (1, 0)},
    "Relu6Grad": {(1, 0)},
    "ReluGrad": {(1, 0)},
    "SoftmaxCrossEntropyWithLogits": {(1, 1)},
}
"""Inputs and outputs between which the derivative is zero by mathematics: what is linear has no second derivative. The last one
is a shortcut of TensorFlow's: what it hands to its own backward pass knows of the logits only."""


def disagreements(name: str) -> Iterator[str]:
    """Where the table and the tape differ."""
    for given in inputs_of(name):
        if given.made == "variant" or (given.position, given.output) in FLAT.get(name, ()):
            continue
        if name in PAIRED and given.position != given.output:
            continue
        said = told(name, given)
        if (said[0] is Passage.FLOWS) != (given.answer == "flows"):
            yield f"{name}: input {given.position} to output {given.output} is {said}, the tape says {given.answer}"


@pytest.mark.parametrize("table", [BY_INPUT, BY_OP, DEAD_INPUTS, DEAD_OUTPUTS], ids=["input", "op", "dead", "outputs"])
def test_every_op_of_the_table_is_one_of_tensorflows(table: dict[str, Any]) -> None:
    assert table
    assert [name for name in table if op_def_registry.get(name) is None] == []


def test_an_op_that_does_not_exist_would_be_seen() -> None:
    assert op_def_registry.get("SearchSorted") is None and op_def_registry.get("Histogram") is None


@pytest.mark.parametrize("name", LISTED)
def test_no_listed_input_gets_a_gradient(name: str) -> None:
    found = inputs_of(name)
    positions, outputs = {given.position for given in found}, {given.output for given in found}
    dead = set(BY_INPUT.get(name, ())) | DEAD_INPUTS.get(name, frozenset())
    assert found
    # The first two generations of an op read fewer reserves than the third.
    assert dead <= positions or name in ("FusedBatchNormGrad", "FusedBatchNormGradV2")
    assert DEAD_OUTPUTS.get(name, frozenset()) & outputs == DEAD_OUTPUTS.get(name, frozenset()) & set(
        range(len(outputs))
    )
    lists_all = name in BY_OP
    reached = [g for g in found if (lists_all or g.position in dead) and g.answer == "flows"]
    assert reached == []
    assert [g for g in found if g.output in DEAD_OUTPUTS.get(name, ()) and g.answer == "flows"] == []
    assert list(disagreements(name)) == []


@pytest.mark.parametrize("name", sorted(set(REGISTERED) - WAITS_OR_ABORTS - OTHERS_WITHOUT_A_CALL - FAILS))
def test_table_agrees_with_the_tape_on_every_registered_gradient(name: str) -> None:
    assert inputs_of(name)
    assert list(disagreements(name)) == []


def test_list_of_ops_without_a_call_does_not_grow_silently() -> None:
    without = {name for name in REGISTERED if name not in WAITS_OR_ABORTS and not inputs_of(name)}
    assert without == OTHERS_WITHOUT_A_CALL
    assert set(REGISTERED) >= WAITS_OR_ABORTS


@pytest.mark.parametrize("name", sorted(FAILS))
def test_gradients_that_are_said_to_fail_do(name: str) -> None:
    answers = {given.answer for given in inputs_of(name) if given.answer != "whole"}
    assert answers == {"error"}


@pytest.mark.parametrize("name", sorted(FLAT))
def test_what_is_said_to_be_flat_is(name: str) -> None:
    answers = {(given.position, given.output): given.answer for given in inputs_of(name)}
    assert {pair: answers[pair] for pair in FLAT[name]} == dict.fromkeys(FLAT[name], "zeros")


@pytest.mark.parametrize("name", sorted(PAIRED))
def test_output_of_a_paired_op_is_made_from_its_own_input_only(name: str) -> None:
    answers = {(given.position, given.output): given.answer for given in inputs_of(name)}
    assert len(answers) >= 4
    assert {pair for pair, answer in answers.items() if answer == "flows"} == {(n, n) for n in range(2)}


# --- why


INDEX, SHAPE = (Passage.NOTHING, Barrier.INDEX), (Passage.NOTHING, Barrier.SHAPE)
WHOLE, DEAD = (Passage.CUT, Barrier.INTEGER), (Passage.CUT, Barrier.NOT_DIFFERENTIABLE)


@pytest.mark.parametrize(
    ("name", "position", "given", "made", "output", "count", "expected"),
    [
        ("ConcatV2", 2, "int32", "float32", 0, 3, SHAPE),
        ("ConcatV2", 1, "int32", "int32", 0, 3, WHOLE),
        ("Split", 0, "int32", "float32", 0, 2, SHAPE),
        ("SplitV", 1, "int32", "float32", 0, 3, SHAPE),
        ("SplitV", 2, "int32", "float32", 0, 3, SHAPE),
        ("Roll", 1, "int32", "float32", 0, 3, SHAPE),
        ("Reshape", 1, "int32", "float32", 0, 2, SHAPE),
        ("Transpose", 1, "int32", "float32", 0, 2, SHAPE),
        ("TopKV2", 0, "float32", "int32", 1, 2, INDEX),
        ("TopKV2", 1, "int32", "float32", 0, 2, SHAPE),
        ("GatherV2", 1, "int32", "float32", 0, 3, INDEX),
        ("GatherV2", 2, "int32", "float32", 0, 3, SHAPE),
        ("ResizeBilinear", 0, "uint8", "float32", 0, 2, WHOLE),
        ("ResizeBilinear", 1, "int32", "float32", 0, 2, SHAPE),
        ("MaxPoolWithArgmax", 0, "float32", "int64", 1, 1, INDEX),
        ("Cast", 0, "float32", "int32", 0, 1, DEAD),
        ("Cast", 0, "int32", "float32", 0, 1, WHOLE),
        ("Cast", 0, "float32", "float16", 0, 1, FLOWS),
        ("RandomShuffle", 0, "float32", "float32", 0, 1, DEAD),
        ("Unique", 0, "float32", "float32", 0, 1, (Passage.CUT, Barrier.NOT_REGISTERED)),
        ("Unique", 0, "float32", "int32", 1, 1, INDEX),
        ("LinSpace", 0, "float32", "float32", 0, 3, DEAD),
        ("LinSpace", 2, "int32", "float32", 0, 3, SHAPE),
        ("Range", 1, "int32", "int32", 0, 3, WHOLE),
        ("FusedBatchNormV3", 0, "float32", "float32", 0, 5, FLOWS),
        ("FusedBatchNormV3", 0, "float32", "float32", 1, 5, DEAD),
        ("ImageProjectiveTransformV3", 1, "float32", "float32", 0, 4, DEAD),
        ("PreventGradient", 0, "float32", "float32", 0, 1, (Passage.CUT, Barrier.STOPPED)),
        ("ReadVariableOp", 0, "", "float32", 0, 1, FLOWS),
    ],
)
def test_the_reason_is_the_inputs_own(
    name: str, position: int, given: str, made: str, output: int, count: int, expected: Carried
) -> None:
    assert told(name, Input(position, given, output, made, count, "")) == expected


def test_outputs_that_are_whole_numbers_by_definition_are_known() -> None:
    known = {"TopKV2": {1}, "Unique": {1}, "UniqueV2": {1}, "UniqueWithCounts": {1, 2}, "MaxPoolWithArgmax": {1}}
    for name, outputs in known.items():
        assert {index for index in range(4) if REGISTRY.makes_whole(name, index)} == outputs
    assert not REGISTRY.makes_whole("Cast", 0) and not REGISTRY.makes_whole("Unpack", 1)

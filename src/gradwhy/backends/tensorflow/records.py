"""What is kept of an op: a small record, hung on the tensors that the op made.

A record goes soon after the last of its tensors, unless a record of a living tensor was made from it.
"""

from __future__ import annotations

import weakref
from typing import Any

from gradwhy.backends.tensorflow.frames import RawFrames

OP, INPUTS, FRAMES, SCOPES, TIME, EXTRA, MINE, DTYPE = range(8)
"""The fields of a record. It is a list, because a class would cost twice as much and history is cut off in place.

MINE says whether the op ran right under the user's line, with no library but TensorFlow's own in between. DTYPE is
TensorFlow's number for the dtype of the first output, 0 where it is not known.
"""

Record = list[Any]

RESOURCE = 20
"""TensorFlow's number for the dtype of a variable's handle."""
LEAF = "leaf"
"""The op of a record that stands for a value whose making was not seen."""
VARIABLE = "variable"
STATE_READS = frozenset(
    {
        "IteratorGetNext",
        "IteratorGetNextSync",
        "LookupTableExportV2",
        "LookupTableFindV2",
        "QueueDequeueManyV2",
        "QueueDequeueUpToV2",
        "QueueDequeueV2",
        "StackPopV2",
    }
)
"""What takes values out of an object that is no variable: a queue, a table, a data set's iterator."""
STATE_WRITES = frozenset(
    {
        "LookupTableImportV2",
        "LookupTableInsertV2",
        "MakeIterator",
        "QueueEnqueueManyV2",
        "QueueEnqueueV2",
        "StackPushV2",
    }
)
READS = frozenset({"ReadVariableOp", "ResourceGather", "ResourceGatherNd"}) | STATE_READS
WRITES = STATE_WRITES | frozenset(
    {
        "AssignVariableOp",
        "AssignAddVariableOp",
        "AssignSubVariableOp",
        "ResourceScatterUpdate",
        "ResourceScatterAdd",
        "ResourceScatterSub",
        "ResourceScatterMul",
        "ResourceScatterNdUpdate",
        "ResourceScatterNdAdd",
        "ResourceScatterNdSub",
        "ResourceStridedSliceAssign",
    }
)
_MOST_LEAVES = 48
_MOST_SUMMED = 200_000
SUMMED_UP = "summed up"
"""The EXTRA of a record whose history was cut down to the values it began with and the first op on each."""
WRITTEN = "written"
"""The EXTRA of a record that stands for what a variable holds after a write."""
BACKWARD = "backward"
"""The EXTRA of a record of an op that computes a gradient."""
BODY = "body"
"""The EXTRA of a `py_function` whose inputs are what its body made."""
DROPPED = "dropped"
"""The op of a record that stands for history given up."""


NUMBER: Record = [LEAF, (), (), (), 0, None, True, 0]
"""The one record of all numbers that stand in the program's text."""


class Made(weakref.ref):  # type: ignore[type-arg]
    """A tensor seen, by weak reference, and the record of what made it: its output number `index`.

    What few tensors need has a subclass of its own, because setting an attribute costs as much as looking a tensor up.
    """

    __slots__ = ("record",)

    record: Record
    index = 0
    written: tuple[Any, ...] = ()
    read: Record | None = None


class MadeBeside(Made):
    """An output that is not the first of its op."""

    __slots__ = ("index",)


class MadeVariable(Made):
    """A variable's handle, or that of another object with a state. `written` holds what the user's code wrote into it since it
    was made, the last one last; `read` is the record of the op that read it last."""

    __slots__ = ("read", "written")


class ThreadState:
    """What is open on one thread. `body`: what the body of the `py_function` that has just run was given, and made."""

    __slots__ = ("bases", "body", "is_backward", "is_muted", "is_ours", "layers", "outer", "scopes")

    def __init__(self) -> None:
        self.scopes: tuple[int, ...] = ()
        self.bases: tuple[tuple[int, ...], ...] = ()
        self.layers: tuple[weakref.ref[Any], ...] = ()
        self.outer: RawFrames | None = None
        """The user's frames behind the innermost call of a layer; None outside of all layers."""
        self.is_ours = False
        self.is_muted = False
        """Nothing is recorded: a gradient is computed that no other tape can ask about, or an optimizer works."""
        self.is_backward = False
        self.body: tuple[list[Record], tuple[Any, ...]] | None = None


def dtype_number(tensor: Any) -> int:
    """TensorFlow's number for the dtype of an eager tensor, 0 for anything else."""
    number = getattr(tensor, "_datatype_enum", None)
    return int(number()) if number is not None else 0


def handle_type(handle: Any) -> tuple[int, tuple[int, ...]] | None:
    """The dtype number and shape of what a variable's handle points to, None for anything else."""
    known = getattr(handle, "_handle_data", None)
    if known is None or not known.shape_and_type:
        return None
    held = known.shape_and_type[0]
    return int(held.dtype), tuple(int(d.size) for d in held.shape.dim)


def sum_up(record: Record) -> None:
    """Cut the history of `record` down to its beginnings: each with the first op that read it, and nothing in between.

    Every record is passed through at most once, so that a value carried from step to step costs no more than it did to make.
    """
    first_ops: dict[int, tuple[Any, Record]] = {}
    seen = {id(record)}
    todo = [record]
    is_whole = True
    while todo:
        at = todo.pop()
        for made in at[INPUTS]:
            before = made.record
            if before is NUMBER or (isinstance(made, Made) and before[OP] in (VARIABLE, LEAF) and made() is None):
                # A dead beginning can be nobody's source.
                continue
            if not before[INPUTS] or before[OP] is VARIABLE or before[OP] is LEAF:
                first_ops.setdefault(id(made), (made, at))
            elif before[EXTRA] is SUMMED_UP:
                for begun in before[INPUTS]:
                    # A variable read in every step is one beginning, not one for each step.
                    read = begun.record[INPUTS] if isinstance(begun, Written) else ()
                    first_ops.setdefault(id(read[0] if read else begun), (begun, begun.record))
            elif id(before) not in seen:
                seen.add(id(before))
                todo.append(before)
        if len(first_ops) > _MOST_LEAVES or len(seen) > _MOST_SUMMED:
            is_whole = False
            break
    kept: list[Any] = []
    for made, at in first_ops.values():
        if at is record or made.record is at:
            kept.append(made)
        else:
            kept.append(Written([at[OP], (made,), *at[FRAMES:]]))
    if not is_whole:
        kept.append(Written([DROPPED, (), (), (), record[TIME], None, True, 0]))
    record[INPUTS] = tuple(kept)
    record[EXTRA] = SUMMED_UP


class Written:
    """A value as a variable holds it after a write: it has a record, and no tensor of its own."""

    __slots__ = ("index", "record", "written")

    def __init__(self, record: Record) -> None:
        self.record, self.index, self.written = record, 0, ()


class GraphRecord:
    """What was open while the ops of one graph were made: scopes, time, layers, and whether a gradient was being built.

    `constants` are the exits, or records, from which the host values in the graph came.
    """

    __slots__ = ("__weakref__", "base", "constants", "ops")

    def __init__(self, base: tuple[int, ...]) -> None:
        self.base = base
        self.ops: dict[str, tuple[tuple[int, ...], int, tuple[Any, ...], bool]] = {}
        self.constants: dict[str, tuple[Any, ...]] = {}


NUMBER_MADE: Any = Written(NUMBER)
"""What is known of a number that stands in the program's text."""

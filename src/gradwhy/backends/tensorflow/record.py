"""One small record an op: what it was, which records its inputs came from, where it ran, and in which scopes.

A record hangs on the tensors that the op made, by weak reference. It goes soon after the last of them, unless a record of
a living tensor was made from it. No tensor is kept alive.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from types import FrameType
from typing import Any

from gradwhy.backends.tensorflow.frames import RawFrames, argument, walk, writing_frame

OP, INPUTS, FRAMES, SCOPES, TIME, EXTRA, MINE, DTYPE = range(8)
"""The fields of a record. It is a list, because a class would cost twice as much and history is cut off in place.

MINE says whether the op ran right under the user's line, with no library but TensorFlow's own in between. DTYPE is
TensorFlow's number for the dtype of the first output, 0 where it is not known.
"""

Record = list[Any]

_RESOURCE = 20
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
_STATE_WRITES = frozenset(
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
WRITES = _STATE_WRITES | frozenset(
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
_HISTORY = 2
"""How many questions a value's full history outlives; older history becomes a summary."""
_LONGEST_AGE = 20_000
"""As many ops without a question count as one, so that a program that asks none has a bounded history, too."""
_SWEEP = 4096
"""After how many ops, at least, the records of dead tensors are let go."""
_MOST_RECENT = 512
_MOST_LEAVES = 48
_MOST_SUMMED = 200_000
SUMMED_UP = "summed up"
"""The EXTRA of a record whose history was cut down to the values it began with and the first op on each."""
WRITTEN = "written"
"""The EXTRA of a record that stands for what a variable holds after a write."""
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


class Recorder:
    """The records of one run."""

    def __init__(self) -> None:
        self.made: dict[int, Made] = {}
        self.clock = count(1)
        self._threads = threading.local()
        self.sweep_at = _SWEEP
        self.asked_at = 0
        self.recent: deque[Record] = deque(maxlen=_MOST_RECENT)
        """What ran last: by its text, a value that left and died at once is found here."""
        self.has_exits = False
        """Whether any value has left the framework, so that a Python number may have been computed from one."""
        self.carried: deque[dict[int, Record]] = deque([{}])
        """For each of the last questions, the records older than its ops that they were made from."""
        self.custom_none: dict[str, set[int]] = {}
        self.graphs: weakref.WeakKeyDictionary[Any, GraphRecord] = weakref.WeakKeyDictionary()

    @property
    def state(self) -> ThreadState:
        """What is open on the running thread."""
        try:
            return self._threads.state  # type: ignore[no-any-return]
        except AttributeError:
            state = self._threads.state = ThreadState()
            return state

    def keep(self, tensor: Any, record: Record, index: int = 0) -> Made:
        """Hang `record` on `tensor`, its output number `index`."""
        made = (MadeBeside if index else Made)(tensor)
        made.record = record
        if index:
            made.index = index
        self.made[id(tensor)] = made
        return made

    def leaf(self, tensor: Any, frames: RawFrames = ()) -> Made:
        """`tensor` as a value whose making was not seen."""
        number = dtype_number(tensor)
        record: Record = [LEAF, (), frames, self.state.scopes, next(self.clock), None, True, number]
        if number != _RESOURCE:
            return self.keep(tensor, record)
        record[OP] = VARIABLE
        made = MadeVariable(tensor)
        made.record, made.written, made.read = record, (), None
        self.made[id(tensor)] = made
        return made

    def number(self, tensor: Any) -> Made:
        """`tensor` as a number that stands in the program's text, of which there is no more to know."""
        self.made[id(tensor)] = made = Made(tensor)
        made.record = NUMBER
        return made

    def seen(self, tensor: Any) -> Made | None:
        """What is known of `tensor`, None where it was never met."""
        made = self.made.get(id(tensor))
        # A callback at every tensor's death would cost more than to look whether its id belongs to another one by now.
        return made if made is not None and made() is tensor else None

    def sweep(self, time: int) -> None:
        """Let go of what is known of dead tensors."""
        known = self.made
        for key, made in list(known.items()):
            if made() is None and known.get(key) is made:
                del known[key]
        self.sweep_at = time + max(_SWEEP, len(known))
        if time - self.asked_at > _LONGEST_AGE:
            self.question_answered()

    def of(self, tensor: Any) -> Made:
        """What is known of `tensor`."""
        made = self.seen(tensor)
        if made is None:
            return self.leaf(tensor)
        if made.record is NUMBER:
            # Whoever asks for it by itself, as a source or a watched value, needs a record of its own.
            made.record = [LEAF, (), (), (), next(self.clock), None, True, dtype_number(tensor)]
        return made

    @contextmanager
    def silence(self) -> Iterator[None]:
        """A stretch in which nothing that runs is the program's."""
        state = self.state
        was = state.is_ours, state.is_muted
        state.is_ours = state.is_muted = True
        try:
            yield
        finally:
            state.is_ours, state.is_muted = was

    def keep_gradients(self, gradients: Sequence[Any], given: Sequence[Any], frame: FrameType | None) -> None:
        """Record gradients whose ops were not: one op each, made from the target and the sources."""
        inputs = tuple(m for t in given if (m := self.seen(t)) is not None)
        frames, mine = walk(frame)
        for gradient in gradients:
            tensor = getattr(gradient, "values", gradient) if hasattr(gradient, "indices") else gradient
            if tensor is not None and hasattr(tensor, "_numpy_internal") and self.seen(tensor) is None:
                scopes, time = self.state.scopes, next(self.clock)
                self.keep(tensor, ["gradient", inputs, frames, scopes, time, BACKWARD, mine, dtype_number(tensor)])

    def on_op(
        self, state: ThreadState, op_type: str | bytes, inputs: Sequence[Any], outputs: Any, op_name: Any, graph: Any
    ) -> None:
        """TensorFlow ran an op, or put one into a graph that it builds. This is the hot path."""
        if graph is not None:
            if not state.is_ours:
                self.on_graph_op(op_name, graph, outputs)
            return
        if state.is_muted:
            if op_type in WRITES and not state.is_ours:
                self.on_muted_write(inputs)
            return
        frame = sys._getframe(2)
        known, asked_at = self.made, self.asked_at
        found = []
        for position, tensor in enumerate(inputs):
            made = known.get(id(tensor))
            if made is None or made() is not tensor:
                made = self.unseen(tensor, position, len(inputs), frame)
            elif made.record[TIME] < asked_at and made.record[INPUTS]:
                self.carried[-1][id(made.record)] = made.record
            found.append(made)
        if op_type in WRITES:
            self.on_write(op_type, found, frame)
            return
        frames, mine = walk(frame, state.outer)
        number = outputs[0]._datatype_enum() if outputs else 0
        time = next(self.clock)
        if time > self.sweep_at:
            self.sweep(time)
        record: Record = [op_type, tuple(found), frames, state.scopes, time, None, mine, number]
        self.recent.append(record)
        kind = Made
        if op_type in READS:
            record[EXTRA] = state.layers
            variable = found[0]
            if isinstance(variable, MadeVariable):
                variable.read = record
            written = variable.written
            if written:
                record[INPUTS] = (*found, *written)
                self.carried[-1].update((id(w.record), w.record) for w in written if w.record[TIME] < asked_at)
        elif state.is_backward:
            record[EXTRA] = BACKWARD
        elif op_type == "VarHandleOp":
            self.on_variable()
            record[OP] = VARIABLE
            kind = MadeVariable
            record[EXTRA] = state.layers
        elif number == _RESOURCE:
            kind = MadeVariable
        elif op_type == "EagerPyFunc" and state.body is not None:
            self.on_py_function(record, found)
        if outputs:
            output = outputs[0]
            known[id(output)] = made = kind(output)
            made.record = record
            if kind is MadeVariable:
                made.written, made.read = (), None
            if len(outputs) > 1:
                for index in range(1, len(outputs)):
                    self.keep(outputs[index], record, index)

    def on_old(self, record: Record) -> None:
        """A value was read that is older than the last questions: only what it began with is kept of its history."""
        if record[OP] is VARIABLE or record[EXTRA] is WRITTEN:
            # That it was written, or became a variable, is what matters of it.
            record = record[INPUTS][-1].record
        if record[INPUTS] and record[OP] is not VARIABLE and record[EXTRA] is not SUMMED_UP:
            sum_up(record)

    def on_muted_write(self, inputs: Sequence[Any]) -> None:
        """An optimizer wrote a variable: what the user had written there is gone."""
        variable = self.seen(inputs[0])
        if variable is not None and variable.written:
            variable.written = ()

    def on_variable(self) -> None:
        """A variable is made: a moment at which Keras may have come in. The backend takes this over."""

    def unseen(self, tensor: Any, position: int, many: int, frame: FrameType) -> Made:
        """An input without a record: TensorFlow's fast path read a variable or converted a Python value itself."""
        given = argument(frame, position, many)
        kind = type(given)
        if (kind is float and not self.has_exits) or kind is int or kind is bool or kind is str:
            # Nobody holds a tensor that TensorFlow made of a number for this one op.
            return _NUMBER_MADE  # type: ignore[no-any-return]
        if given is None or given is tensor:
            return self.leaf(tensor)
        handle = getattr(given, "handle", None) if hasattr(type(given), "handle") else None
        if handle is None and hasattr(type(given), "_value") and hasattr(given, "_value"):
            handle = getattr(given._value, "handle", None)
        if handle is not None:
            variable = self.of(handle)
            frames, mine = walk(frame)
            inputs = (variable, *variable.written)
            scopes, time = self.state.scopes, next(self.clock)
            number = dtype_number(tensor)
            record: Record = ["ReadVariableOp", inputs, frames, scopes, time, self.state.layers, mine, number]
            if isinstance(variable, MadeVariable):
                variable.read = record
            return self.keep(tensor, record)
        return self.entered(tensor, given, frame)

    def entered(self, tensor: Any, given: Any, frame: FrameType) -> Made:
        """`tensor` was made from the host value `given`. The host doors take this over."""
        return self.leaf(tensor)

    def on_write(self, op_type: str | bytes, found: list[Made], frame: FrameType) -> None:
        """A variable was written: at its making, by the user's code, or by an optimizer or a layer's bookkeeping."""
        if op_type in _STATE_WRITES:
            self.on_state_write(op_type, found, frame)
            return
        variable, values = found[0], found[1:]
        if variable.record[OP] == VARIABLE and not variable.record[INPUTS]:
            # The first write gives a variable its initial value.
            variable.record[INPUTS] = tuple(values) or (variable,)
            return
        if not values or not isinstance(variable, MadeVariable):
            return
        writer = writing_frame(frame)
        if writer is None:
            # What an optimizer or a layer's own bookkeeping writes ends the history of what was there.
            variable.written = ()
            return
        frames, mine = walk(frame)
        number = values[-1].record[DTYPE]
        written = Written([op_type, (values[-1],), frames, self.state.scopes, next(self.clock), WRITTEN, mine, number])
        is_whole = op_type == "AssignVariableOp"
        variable.written = (written,) if is_whole else (*variable.written[-3:], written)

    def on_state_write(self, op_type: str | bytes, found: list[Made], frame: FrameType) -> None:
        """Values were put into a queue or a table, or a data set behind an iterator."""
        is_iterator = op_type == "MakeIterator"
        holder, values = (found[-1], found[:1]) if is_iterator else (found[0], found[1:])
        if not isinstance(holder, MadeVariable):
            return
        frames, mine = walk(frame)
        extra, scopes = None if is_iterator else WRITTEN, self.state.scopes
        kept = () if is_iterator else holder.written[-3:]
        number = values[-1].record[DTYPE] if values else 0
        holder.written = (
            *kept,
            *(Written([op_type, (v,), frames, scopes, next(self.clock), extra, mine, number]) for v in values),
        )

    def on_py_function(self, record: Record, found: list[Made]) -> None:
        """A `py_function` has run; its body's ops were recorded before it, on tensors of their own."""
        inside, made = self.state.body  # type: ignore[misc]
        self.state.body = None
        for inner, given in zip(inside, found, strict=False):
            inner[INPUTS] = (given,)
        if made and all(m is not None for m in made):
            record[INPUTS], record[EXTRA] = tuple(made), BODY

    def on_graph_op(self, op_name: str, graph: Any, outputs: Any) -> None:
        """An op was put into a graph: its structure stays readable there, so only what was open is kept."""
        entry = self.graphs.get(graph)
        if entry is None:
            bases = self.state.bases
            entry = self.graphs[graph] = GraphRecord(bases[-1] if bases else self.state.scopes)
        entry.ops[op_name] = (self.state.scopes, next(self.clock), self.state.layers, self.state.is_backward)

    def question_answered(self) -> None:
        """Move on one question: of history older than the last ones, no more than a summary is kept."""
        self.asked_at = next(self.clock)
        self.carried.append({})
        if len(self.carried) > _HISTORY + 1:
            for record in self.carried.popleft().values():
                self.on_old(record)


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
    """What was open while the ops of one graph were made: scopes, time, layers, and whether a gradient was being built."""

    __slots__ = ("__weakref__", "base", "ops")

    def __init__(self, base: tuple[int, ...]) -> None:
        self.base = base
        self.ops: dict[str, tuple[tuple[int, ...], int, tuple[Any, ...], bool]] = {}


_NUMBER_MADE: Any = Written(NUMBER)

BACKWARD = "backward"

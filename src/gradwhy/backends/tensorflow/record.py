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
from gradwhy.backends.tensorflow.records import (
    BACKWARD,
    BODY,
    DTYPE,
    EXTRA,
    INPUTS,
    LEAF,
    NUMBER,
    NUMBER_MADE,
    OP,
    READS,
    RESOURCE,
    STATE_WRITES,
    SUMMED_UP,
    TIME,
    VARIABLE,
    WRITES,
    WRITTEN,
    GraphRecord,
    Made,
    MadeBeside,
    MadeVariable,
    Record,
    ThreadState,
    Written,
    dtype_number,
    sum_up,
)
from gradwhy.flow import Span

_HISTORY = 2
"""How many questions a value's full history outlives; older history becomes a summary."""
_LONGEST_AGE = 20_000
"""As many ops without a question count as one, so that a program that asks none has a bounded history, too."""
_SWEEP = 4096
"""After how many ops, at least, the records of dead tensors are let go."""
_MOST_RECENT = 512


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
        if number != RESOURCE:
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
        elif number == RESOURCE:
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
            return NUMBER_MADE  # type: ignore[no-any-return]
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

    def left_around(self, span: Span | None) -> list[Any]:
        """What left the framework where the values around the function at `span` were made. The host doors take this over."""
        return []

    def on_write(self, op_type: str | bytes, found: list[Made], frame: FrameType) -> None:
        """A variable was written: at its making, by the user's code, or by an optimizer or a layer's bookkeeping."""
        if op_type in STATE_WRITES:
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

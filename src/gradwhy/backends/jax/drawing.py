"""The flow graph of one question, drawn from the records behind its targets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import jax

from gradwhy.backends.jax import inlining, ops
from gradwhy.backends.jax.record import Frames, OpRecord, Recorder, Stretch, ValueRecord
from gradwhy.flow import (
    FlowGraph,
    Input,
    Op,
    Passage,
    Place,
    Scope,
    ScopeRole,
    Unrecorded,
    Value,
    ValueKind,
    Watch,
)
from gradwhy.source import positions


@dataclass(frozen=True, slots=True)
class Draft:
    """An op before it has its number: `time` and `order` say when it ran.

    `places` is set instead of `frames` where the op was read from the source and not seen to run.
    """

    time: int
    order: int
    name: str
    inputs: tuple[tuple[int, ops.Edge], ...]
    outputs: tuple[int, ...]
    frames: Frames
    scopes: tuple[int, ...]
    primitive: str = ""
    places: tuple[Place, ...] = ()
    is_observed: bool = True


@dataclass(frozen=True, slots=True)
class Turn:
    """What the values of this run say about a draft's edges from `values`; `frames` is where, if not at the op."""

    order: int
    values: frozenset[int]
    edge: ops.Edge
    frames: Frames = ()


class Drawing:
    """Values and ops, drawn backward from what is asked for.

    `stretch` and `tag` are the question's own. `order` is 2 once the backward pass of another question was met, `constants`
    are the values that entered the recording from outside, each with where it did. Beyond the values in `beginnings` nothing is drawn: they are what is asked
    about, and a source's own history is no matter of the question.
    """

    def __init__(
        self,
        recorder: Recorder,
        stretch: Stretch,
        tag: Any,
        beginnings: Iterable[ValueRecord],
        *,
        is_forward: bool = False,
    ) -> None:
        self.stretch = stretch
        self.order = 1
        self.drafts: list[Draft] = []
        self.constants: dict[int, tuple[ValueRecord, Frames]] = {}
        self._order = count()
        self.is_complete = True
        self._recorder = recorder
        self._tag = tag
        self._is_forward = is_forward
        self._values: dict[int, Value] = {}
        self._numbers: dict[object, int] = {}
        self._kept: list[object] = []
        self._current: OpRecord | None = None
        self._beginnings = frozenset(id(b) for b in beginnings)
        self._stretches: dict[int, Stretch] = {stretch.number: stretch}
        self._places: dict[tuple[int, int], Place | None] = {}

    @property
    def is_forward(self) -> bool:
        return self._is_forward

    def number(self, record: ValueRecord) -> int:
        """The number of a recorded value; its ancestry is drawn with it."""
        todo = [record]
        while todo:
            current = todo[-1]
            missing = [i for i in self._ancestors(current) if self._key(i) not in self._numbers]
            if missing:
                todo.extend(missing)
                continue
            todo.pop()
            if self._key(current) not in self._numbers:
                self._draw(current)
        return self._numbers[self._key(record)]

    def new_value(self, aval: Any, unrecorded: Unrecorded | None = None, kind: ValueKind = ValueKind.TENSOR) -> int:
        number = len(self._values) + 1
        shape = tuple(d if isinstance(d, int) else None for d in getattr(aval, "shape", ()))
        self._values[number] = Value(number, kind, str(getattr(aval, "dtype", "")), shape, unrecorded)
        return number

    def constant(self, value: Any, frames: Frames) -> int | None:
        """The number of an array that stands in the body of a compiled function; None for a plain number."""
        if not getattr(value, "shape", ()) and not isinstance(value, jax.Array):
            return None
        record = self._recorder.of(value) or self._recorder.begin(value)
        if self._current is not None and self.stretch in self._current.open and id(record) not in self._beginnings:
            self.constants.setdefault(id(record), (record, frames))
        current, number = self._current, self.number(record)
        self._current = current
        return number

    def new_op(
        self,
        name: str,
        inputs: Sequence[tuple[int, ops.Edge]],
        outputs: Sequence[int],
        frames: Frames,
        primitive: str = "",
    ) -> None:
        record = self._current
        assert record is not None
        scopes = tuple(s.number for s in record.open)
        self._stretches.update((s.number, s) for s in record.open)
        self.drafts.append(
            Draft(record.time, next(self._order), name, tuple(inputs), tuple(outputs), frames, scopes, primitive)
        )

    def add(self, name: str, edge: tuple[int, ops.Edge], output: int, time: int, *, frames: Frames) -> None:
        """Draw a step that the recording saw, and that no primitive stands for."""
        scopes = (self.stretch.number,)
        self.drafts.append(Draft(time, next(self._order), name, (edge,), (output,), frames, scopes))

    def infer(self, name: str, edge: tuple[int, ops.Edge], output: int, place: Place) -> None:
        """Draw a step that the source tells of: it ran before the recording began."""
        time = self.stretch.start - 1
        self.drafts.append(
            Draft(time, next(self._order), name, (edge,), (output,), (), (), places=(place,), is_observed=False)
        )

    def graph(self, watched: Iterable[int], turns: Iterable[Turn] = ()) -> FlowGraph:
        """The graph as it stands, with the question's recording watching the values `watched`."""
        changed = {turn.order: turn for turn in turns}
        ordered = sorted(self.drafts, key=lambda d: (d.time, d.order))
        drawn = tuple(self._op(number, draft, changed.get(draft.order)) for number, draft in enumerate(ordered, 1))
        return FlowGraph(tuple(self._values.values()), drawn, self._scopes(tuple(watched)), self.is_complete)

    def places(self, frames: Frames) -> tuple[Place, ...]:
        found = []
        for code, lasti in frames:
            key = id(code), lasti
            if key not in self._places:
                self._places[key] = positions.place_of(code, lasti)
                self._kept.append(code)
            place = self._places[key]
            if place is not None:
                found.append(place)
        return tuple(found)

    def _op(self, number: int, draft: Draft, turn: Turn | None) -> Op:
        inputs = []
        for value, (passage, barrier) in draft.inputs:
            span = None
            if turn is not None and value in turn.values and passage is Passage.FLOWS:
                passage, barrier = turn.edge
                span = next((place.span for place in self.places(turn.frames)), None)
            inputs.append(Input(value, passage, barrier, draft.is_observed, span))
        return Op(
            id=number,
            name=draft.name,
            time=draft.time,
            inputs=tuple(inputs),
            outputs=draft.outputs,
            places=draft.places or self.places(draft.frames),
            scopes=draft.scopes,
        )

    def _scopes(self, watched: tuple[int, ...]) -> tuple[Scope, ...]:
        found = []
        for stretch in self._stretches.values():
            places = self.places(stretch.frames[:1])
            found.append(
                Scope(
                    id=stretch.number,
                    kind=stretch.kind,
                    role=ScopeRole.RECORDS,
                    start=stretch.start,
                    end=stretch.end,
                    span=places[0].span if places else None,
                    watches=tuple(Watch(w, stretch.start) for w in watched) if stretch is self.stretch else (),
                    holds_leaves=False,
                )
            )
        return tuple(found)

    def _key(self, record: ValueRecord) -> object:
        return (id(record.maker), record.index) if self._is_made(record) else id(record)

    def _is_made(self, record: ValueRecord) -> bool:
        return record.maker is not None and id(record) not in self._beginnings

    def _ancestors(self, record: ValueRecord) -> list[ValueRecord]:
        if not self._is_made(record):
            return []
        return [i for i in record.maker.inputs if i is not None]  # type: ignore[union-attr]

    def _draw(self, record: ValueRecord) -> None:
        if not self._is_made(record):
            self._kept.append(record)
            self._numbers[id(record)] = self.new_value(record.aval)
            return
        op = record.maker
        assert op is not None
        self._kept.append(op)
        self._current = op
        if op.passing is not None:
            self.order = 2
        for read in op.inputs:
            self._note_constant(read, op)
        inputs = [(None if i is None else self._numbers[self._key(i)], i.aval if i else None) for i in op.inputs]
        before = len(self.drafts)
        outputs = self._drawn(op, inputs)
        for index, number in enumerate(outputs):
            self._numbers[id(op), index] = number
        if record.is_dropped:
            self._give_up(outputs, before)

    def _note_constant(self, read: ValueRecord | None, op: OpRecord) -> None:
        """Keep what an op of the recording read of the outside."""
        if read is None or self.stretch not in op.open or id(read) in self._beginnings:
            return
        is_outside = not read.tags if read.maker is None else self.stretch not in read.maker.open
        if is_outside:
            self.constants.setdefault(id(read), (read, op.frames))

    def _drawn(self, op: OpRecord, inputs: list[tuple[int | None, Any]]) -> tuple[int, ...]:
        name = op.primitive.name
        before = len(self.drafts)
        outputs = inlining.draw(self, name, op.params, inputs, op.outputs, op.frames)
        tagged = [n for i, (n, _) in zip(op.inputs, inputs, strict=True) if i is not None and self._tag in i.tags and n]
        if not tagged or self._tag is None:
            return outputs
        lost = tuple(self._tag not in tags for tags in op.tags)
        reached = self.reached(tagged, self.drafts[before:])
        if not any(is_lost and n in reached for is_lost, n in zip(lost, outputs, strict=True)):
            return outputs
        # JAX kept no derivative although every op that we see has one: the op as a whole is where it was dropped.
        del self.drafts[before:]
        return inlining.draw_whole(self, name, op.params, inputs, op.outputs, op.frames, is_dropped=lost)

    def reached(self, start: Iterable[int], drafts: Sequence[Draft] | None = None, *, flowing: bool = True) -> set[int]:
        """The values to which a path leads from `start` through `drafts`, or all; only what flows, if `flowing`."""
        reached, found = set(start), -1
        # What an op reads is drawn before it, but for what a loop carries.
        while len(reached) != found:
            found = len(reached)
            for draft in self.drafts if drafts is None else drafts:
                if any(v in reached and (edge[0] is Passage.FLOWS or not flowing) for v, edge in draft.inputs):
                    reached.update(draft.outputs)
        return reached

    def _give_up(self, outputs: tuple[int, ...], since: int) -> None:
        del self.drafts[since:]
        for number in outputs:
            value = self._values[number]
            self._values[number] = Value(number, value.kind, value.dtype, value.shape, Unrecorded.DROPPED)

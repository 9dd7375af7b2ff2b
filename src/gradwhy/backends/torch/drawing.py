"""The flow graph of one question, drawn from the records behind its targets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gradwhy.backends.torch import gradient_functions, lineage, ops
from gradwhy.backends.torch.grad_mode import Pause
from gradwhy.backends.torch.look import Look
from gradwhy.backends.torch.trail import Call, Edge, Frames, Record
from gradwhy.backends.torch.turns import Turns
from gradwhy.flow import (
    Barrier,
    FlowGraph,
    Input,
    Op,
    Passage,
    Place,
    Scope,
    ScopeRole,
    Span,
    Unrecorded,
    Value,
    ValueKind,
    Watch,
)
from gradwhy.source.positions import place_of, span_of

AUTOGRAD = 0
"""The number of the scope that spans the run: autograd records whatever reads a value that asks for a gradient."""


class Drawing:
    """Values, ops and scopes, drawn backward from the targets.

    `shapes` and `tensor_ids` tell the shape and the id of the tensors that are still alive, by the id of their record.
    """

    def __init__(
        self,
        targets: Iterable[Record],
        sources: Iterable[Record],
        shapes: dict[int, tuple[int, ...]],
        tensor_ids: dict[int, int],
    ) -> None:
        self._targets = tuple(targets)
        self._shapes = shapes
        self._tensor_ids = tensor_ids
        self._numbers: dict[int, int] = {}
        self._records: list[Record] = []
        self._calls: dict[int, tuple[Call, list[Record]]] = {}
        self._pauses: dict[int, tuple[int, Pause]] = {}
        self._places: dict[tuple[int, int], Place | None] = {}
        self._own = lineage.own(self._targets)
        self._follow((*self._targets, *sources))

    def number(self, record: Record) -> int:
        """The number of a value that was drawn."""
        return self._numbers[id(record)]

    def graph(self, look: Look | None) -> FlowGraph:
        """What was drawn; `look` tells what happened to the gradients on their way."""
        calls = sorted(self._calls.values(), key=lambda made: made[0].time)
        turns = Turns(look, [call for call, _ in calls], self._tensor_ids)
        drawn = tuple(self._op(number, call, made, turns) for number, (call, made) in enumerate(calls))
        values = tuple(self._value(record) for record in self._records)
        return FlowGraph(values, drawn, self._scopes())

    def places(self, frames: Frames) -> tuple[Place, ...]:
        """The places of frames; each is resolved once."""
        return tuple(place for frame in frames if (place := self._place(frame)) is not None)

    def _place(self, frame: tuple[Any, int]) -> Place | None:
        key = (id(frame[0]), frame[1])
        if key not in self._places:
            self._places[key] = place_of(*frame)
        return self._places[key]

    def _span(self, frames: Frames) -> Span | None:
        place = self._place(frames[0]) if frames else None
        return place.span if place is not None else None

    # What is drawn

    def _follow(self, records: Iterable[Record]) -> None:
        todo = list(records)
        while todo:
            record = todo.pop()
            if id(record) in self._numbers or len(self._records) >= lineage.MOST_VISITED:
                continue
            self._numbers[id(record)] = len(self._records)
            self._records.append(record)
            call = record.call
            inputs = lineage.edges(record, self._own)
            came = [exit for _, exit, _ in lineage.exits(call)] if call is not None else []
            if call is None or not (inputs or came):
                continue
            _, made = self._calls.setdefault(id(call), (call, []))
            made.append(record)
            todo.extend(edge[1] for edge in inputs)
            todo.extend(came)

    def _value(self, record: Record) -> Value:
        kind = ValueKind.TENSOR
        if record.dtype is None:
            kind = ValueKind.TENSOR if record.unrecorded is Unrecorded.DROPPED else ValueKind.HOST
        elif record.is_parameter or record.watched is not None:
            kind = ValueKind.VARIABLE
        dtype = "" if record.dtype is None else str(record.dtype).removeprefix("torch.")
        return Value(self.number(record), kind, dtype, self._shapes.get(id(record)), record.unrecorded)

    def _op(self, number: int, call: Call, made: list[Record], turns: Turns) -> Op:
        inputs = [self._input(call, edge, made, turns) for edge in call.inputs if id(edge[1]) in self._numbers]
        for _, exit, is_observed in lineage.exits(call):
            inputs.append(Input(self.number(exit), Passage.CUT, Barrier.HOST, is_observed))
        return Op(
            id=number,
            name=ops.shown_name(call),
            time=call.time,
            inputs=tuple(inputs),
            outputs=tuple(self.number(record) for record in made),
            places=self.places(call.frames),
            scopes=self._scopes_of(call),
            is_recorded=call.is_recorded,
            is_boundary=call.func == ops.GRADIENT,
            is_user_code=call.is_direct,
        )

    def _input(self, call: Call, edge: Edge, made: list[Record], turns: Turns) -> Input:
        value = edge[1]
        passage, barrier = ops.rule(call, edge, made)
        span = None
        if barrier is Barrier.WRITE and value.call is not None:
            span = self._span(value.call.frames)
        if passage is Passage.FLOWS:
            turned = turns.at(call, value)
            if turned is not None:
                passage, barrier = Passage.CUT, turned
        if barrier is Barrier.CUSTOM and call.backward is not None and isinstance(edge[0], int):
            span = gradient_functions.none_span(call.backward, edge[0])
        return Input(self.number(value), passage, barrier, True, span)

    # Scopes

    def _scopes_of(self, call: Call) -> tuple[int, ...]:
        pause = call.pause
        if pause is None:
            return (AUTOGRAD,)
        number, _ = self._pauses.setdefault(id(pause), (len(self._pauses) + 1, pause))
        return (AUTOGRAD, number)

    def _scopes(self) -> tuple[Scope, ...]:
        watches = tuple(
            Watch(self.number(record), record.watched[0], self._span(record.watched[1]))
            for record in self._records
            if record.watched is not None and record.requires_grad
        )
        autograd = Scope(AUTOGRAD, "autograd", ScopeRole.RECORDS, 0, None, None, watches=watches, holds_leaves=False)
        return (autograd, *(self._pause(number, pause) for number, pause in self._pauses.values()))

    def _pause(self, number: int, pause: Pause) -> Scope:
        span = self._span(pause.frames)
        if pause.decorated is not None:
            span = span_of(pause.decorated, -1)
        return Scope(
            number,
            pause.kind,
            ScopeRole.PAUSES,
            pause.start,
            pause.end,
            span,
            end_span=self._span(pause.end_frames),
        )

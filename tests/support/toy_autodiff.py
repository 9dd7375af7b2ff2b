"""A framework of its own in a hundred lines: numbers, a tape, reverse mode; and the backend that records it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from gradwhy.backends.contract import Answer
from gradwhy.flow import (
    Asked,
    Barrier,
    FlowGraph,
    Input,
    Op,
    Passage,
    Place,
    Question,
    Scope,
    ScopeRole,
    Source,
    Span,
    Status,
    Unrecorded,
    Value,
    ValueKind,
    Watch,
)
from gradwhy.session import Session


@dataclass(eq=False)
class Number:
    """A number: its value, and how it was made, for the way back; `parents` only while a tape recorded."""

    id: int
    value: float
    parents: tuple[tuple[Number, float], ...] = ()
    is_recorded: bool = False


@dataclass
class Toy:
    """One program in the framework. Every op stands on a line of its own, in the order in which they run."""

    session: Session = field(default_factory=lambda: Session("toy.py"))
    values: list[Value] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    scope: Scope | None = None
    time: int = 0

    def variable(self, value: float) -> Number:
        return self._made(value, ValueKind.VARIABLE)

    def foreign(self, value: float) -> Number:
        """A number whose history nobody saw."""
        return self._made(value, unrecorded=Unrecorded.NOT_SEEN)

    def multiply(self, a: Number, b: Number) -> Number:
        return self._op("Multiply", a.value * b.value, ((a, b.value), (b, a.value)))

    def stop(self, a: Number) -> Number:
        return self._op("Stop", a.value, ((a, 0.0),), Barrier.STOPPED)

    def assign(self, variable: Number, a: Number) -> None:
        variable.value = a.value
        self._note("Assign", (a,), variable, Barrier.WRITE)

    def open(self, *watched: Number) -> None:
        self.time += 1
        watches = tuple(Watch(w.id, self.time) for w in watched)
        self.scope = Scope(1, "Tape", ScopeRole.RECORDS, self.time, None, self._span(), watches=watches)
        for number in watched:
            number.is_recorded = True

    def gradient(self, target: Number, **sources: Number) -> dict[str, float | None]:
        """The gradient for each source, None where no way leads back; the session hears of it."""
        assert self.scope is not None
        self.time += 1
        self.scope = replace(self.scope, end=self.time)
        found: dict[int, float] = {}
        _backward(target, 1.0, found)
        gradients = {name: found.get(s.id) for name, s in sources.items()}
        statuses = tuple(Status.NONE if g is None else Status.OK for g in gradients.values())
        asked = tuple(
            Asked(Source(name), source.id, status)
            for (name, source), status in zip(sources.items(), statuses, strict=True)
        )
        place = Place(self._span(), "<module>")
        question = Question(
            "tape.gradient", "toy", (place,), self.time + 1, "loss", (target.id,), asked, recording=self.scope.id
        )
        graph = FlowGraph(tuple(self.values), tuple(self.ops), (self.scope,))
        answer = Answer("tape.gradient", "toy", place, statuses, lambda wants: (question, graph if wants else None))
        self.session.answered(answer)
        return gradients

    def _span(self) -> Span:
        return Span("toy.py", self.time)

    def _made(self, value: float, kind: ValueKind = ValueKind.TENSOR, unrecorded: Unrecorded | None = None) -> Number:
        number = Number(len(self.values), value)
        self.values.append(Value(number.id, kind, "float32", (), unrecorded))
        return number

    def _op(
        self, name: str, value: float, parents: tuple[tuple[Number, float], ...], barrier: Barrier | None = None
    ) -> Number:
        made = self._made(value)
        self._note(name, tuple(p for p, _ in parents), made, barrier)
        if self.scope is not None and barrier is None and any(p.is_recorded for p, _ in parents):
            made.parents, made.is_recorded = parents, True
        return made

    def _note(self, name: str, read: tuple[Number, ...], made: Number, barrier: Barrier | None) -> None:
        self.time += 1
        passage = Passage.FLOWS if barrier is None else Passage.CUT
        inputs = tuple(Input(n.id, passage, barrier) for n in read)
        scopes = (self.scope.id,) if self.scope is not None else ()
        place = Place(self._span(), "<module>")
        self.ops.append(Op(len(self.ops), name, self.time, inputs, (made.id,), (place,), scopes))


def _backward(number: Number, gradient: float, found: dict[int, float]) -> None:
    if number.is_recorded:
        found[number.id] = found.get(number.id, 0.0) + gradient
    for parent, derivative in number.parents:
        _backward(parent, gradient * derivative, found)

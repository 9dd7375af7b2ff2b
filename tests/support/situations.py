"""Programs of a framework that only records, and the situations in which their fixes are computed.

A program calls `f(...)` to make values from values, opens a recording with `with tape() as t:`, and asks with
`ask(target, source, ...)`. Every value is the text of the calls that made it, so that two programs that compute the same
are seen to.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from gradwhy.fix.situation import Situation
from gradwhy.flow import (
    Asked,
    Finding,
    FlowGraph,
    Input,
    Op,
    Place,
    Question,
    Scope,
    ScopeRole,
    Severity,
    Source,
    Span,
    Status,
    Text,
    Value,
    ValueKind,
)
from gradwhy.source import files
from gradwhy.source.locate import statement_at
from gradwhy.source.positions import places_of, user_frames

FILE = "/program/situation.py"


@dataclass(frozen=True)
class Made:
    """A value: its number in the graph, and the text of what made it."""

    number: int
    text: str


@dataclass
class Recorded:
    """What a program did."""

    ops: list[Op] = field(default_factory=list)
    scopes: list[Scope] = field(default_factory=list)
    open: list[int] = field(default_factory=list)
    asked: list[tuple[Made, tuple[Made, ...], tuple[Place, ...]]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    values: int = 0
    time: int = 0

    def tick(self) -> int:
        self.time += 1
        return self.time

    def new(self, text: str) -> Made:
        self.values += 1
        return Made(self.values, text)


def run(text: str) -> Recorded:
    """Run a program; its text is what the tests of its fixes read, too."""
    files.supply(FILE, text.encode())
    done = Recorded()

    def places() -> tuple[Place, ...]:
        return places_of(user_frames(sys._getframe(2)))

    def f(*given: Made) -> Made:
        made = done.new(f"f({', '.join(one.text for one in given)})")
        held = places()
        own = tuple(place for place in held if place.span.file == FILE)
        inputs = tuple(Input(one.number) for one in given)
        done.ops.append(Op(len(done.ops), "f", done.tick(), inputs, (made.number,), own, tuple(done.open)))
        return made

    @contextlib.contextmanager
    def scope(role: ScopeRole, kind: str, held: tuple[Place, ...]) -> Iterator[Any]:
        number, start = len(done.scopes), done.tick()
        line = next(place.span.line for place in held if place.span.file == FILE)
        done.scopes.append(Scope(number, kind, role, start, None, Span(FILE, line), name="t"))
        done.open.append(number)
        yield
        done.open.remove(number)
        done.scopes[number] = Scope(number, kind, role, start, done.tick(), Span(FILE, line), name="t")

    def ask(target: Made, *sources: Made) -> None:
        done.asked.append((target, sources, tuple(p for p in places() if p.span.file == FILE)))

    names = {
        "f": f,
        "v": done.new,
        "say": lambda value: done.said.append(value.text),
        "tape": lambda: scope(ScopeRole.RECORDS, "tape", places()),
        "pause": lambda: scope(ScopeRole.PAUSES, "pause", places()),
        "ask": ask,
    }
    exec(compile(text, FILE, "exec"), names)
    return done


def situation(text: str, cause: str) -> Situation:
    """The situation of the last question that a program asks, about all its sources."""
    done = run(text)
    target, sources, places = done.asked[-1]
    asked = tuple(Asked(Source(f"source{one.number}"), one.number, Status.NONE) for one in sources)
    records = [scope for scope in done.scopes if scope.role is ScopeRole.RECORDS]
    question = Question(
        "ask",
        "toy",
        places,
        done.tick(),
        "target",
        (target.number,),
        asked,
        recording=records[-1].id if records else None,
    )
    values = tuple(Value(number, ValueKind.TENSOR, "float32", ()) for number in range(1, done.values + 1))
    graph = FlowGraph(values, tuple(done.ops), tuple(done.scopes))
    return situation_of(text, question, graph=graph, cause=cause)


def carrying_lines(text: str) -> dict[int, bool]:
    """The statements, by their first line, that carry the first source to the last target, and whether each was recorded."""
    held = situation(text, "outside-tape")
    scope = held.question.recording
    found: dict[int, bool] = {}
    for op in held.ops_between():
        statement = statement_at(op.places[0].span)
        assert statement is not None
        found[statement.lineno] = scope in op.scopes
    return found


def span_in(text: str, part: str, *, is_last: bool = False) -> Span:
    """Where `part` stands on one line of a program of ASCII, the first time or the last."""
    at = text.rindex(part) if is_last else text.index(part)
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    return Span(FILE, line, column, line, column + len(part))


def situation_of(
    text: str | bytes,
    question: Question,
    place: Span | None = None,
    *,
    graph: FlowGraph | None = None,
    cause: str = "cause",
) -> Situation:
    """The situation in which a program of that text gets a finding about all sources of the question."""
    content = text if isinstance(text, bytes) else text.encode()
    files.supply(FILE, content)
    finding = Finding(
        id=0,
        question=0,
        cause=cause,
        severity=Severity.ERROR,
        symptom=Status.NONE,
        sources=tuple(asked.source for asked in question.asked),
        target=question.target,
        times=1,
        place=place,
        headline=Text("headline/none"),
        graph=graph or FlowGraph(),
    )
    return Situation(finding, question, lambda file: content if file == FILE else None)

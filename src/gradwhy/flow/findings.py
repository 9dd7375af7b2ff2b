"""What gradwhy says: findings, their texts as keys, and fixes."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from gradwhy.flow.graph import FlowGraph, Passage
from gradwhy.flow.questions import Source, Status
from gradwhy.flow.spans import Span


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Applicability(StrEnum):
    SAFE = "safe"
    UNSAFE = "unsafe"
    MANUAL = "manual"


@dataclass(frozen=True, slots=True)
class Text:
    """A text by its key, so that it can be shown in any language; `text` is what was shown last.

    A key reads `CAUSE/SECTION/NAME` for a cause's own text (`outside-tape/labels/cut`) and `SECTION/NAME` for a common one.
    """

    key: str
    values: dict[str, str | int | float] = field(default_factory=dict)
    text: str = ""


@dataclass(frozen=True, slots=True)
class Label:
    span: Span
    text: Text


@dataclass(frozen=True, slots=True)
class Cut:
    """A passage where the gradient stops, vanishes or turns NaN."""

    cause: str
    span: Span | None
    op: str
    observed: bool = True


@dataclass(frozen=True, slots=True)
class Step:
    """One value on the way from the source to the target: what made it, where, and whether a gradient passes."""

    op: str
    span: Span | None
    name: str | None = None
    passage: Passage = Passage.FLOWS


@dataclass(frozen=True, slots=True)
class Edit:
    file: str
    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class ProvedSource:
    status: Status
    shape: tuple[int, ...] | None = None
    norm: float | None = None
    first_values: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Proof:
    sources: dict[str, ProvedSource]
    target_unchanged: bool | None
    """None where two plain runs differ already."""


@dataclass(frozen=True, slots=True)
class Fix:
    title: Text
    applicability: Applicability
    edits: tuple[Edit, ...] = ()
    diff: str = ""
    proof: Proof | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """What we say about sources of one question that share their cuts."""

    id: int
    question: int
    cause: str
    severity: Severity
    symptom: Status
    sources: tuple[Source, ...]
    target: str
    times: int
    place: Span | None
    headline: Text
    labels: tuple[Label, ...] = ()
    notes: tuple[Text, ...] = ()
    help: Text | None = None
    example: str = ""
    """Lines of code in the user's names: advice, which changes the target and is never applied."""
    cuts: tuple[Cut, ...] = ()
    path: tuple[Step, ...] = ()
    also_cut: tuple[Cut, ...] = ()
    fixes: tuple[Fix, ...] = ()
    graph: FlowGraph | None = None


@dataclass(frozen=True, slots=True)
class AskedSource:
    """A source as a report shows it: the first answer it got, and how often it got which."""

    name: str
    aliases: tuple[str, ...]
    class_name: str = field(metadata={"json": "class"})
    shape: tuple[int | None, ...] | None
    status: Status
    outcomes: dict[str, int]
    first_wrong: int | None = None
    """The repetition of the question, from 1, at which the source first went without."""


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    id: int
    kind: str
    framework: str
    span: Span | None
    target: str
    times: int
    sources: tuple[AskedSource, ...]


@dataclass(frozen=True, slots=True)
class QuotedFile:
    """The lines of a file that a report quotes, by line number, and the hash of the whole file."""

    sha256: str
    lines: dict[str, str]


@dataclass(frozen=True, slots=True)
class Process:
    rank: int | None
    pid: int


@dataclass(frozen=True, slots=True)
class Report:
    """One observed run. `gradwhy` is our version, `frameworks` those the program imported."""

    gradwhy: str
    python: str
    program: str
    schema: int = 1
    frameworks: dict[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    exit_status: int | None = None
    """None while the program has not ended."""
    language: str = "en"
    questions: tuple[AskedQuestion, ...] = ()
    findings: tuple[Finding, ...] = ()
    files: dict[str, QuotedFile] = field(default_factory=dict)
    process: Process | None = None
    warnings: tuple[str, ...] = ()
    """What of ours failed while the program ran."""

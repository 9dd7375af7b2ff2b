"""From one question and its flow graph to findings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from gradwhy.causes.discover import causes
from gradwhy.diagnose.examples import worked_example
from gradwhy.diagnose.lost import Claim, Lost, call_site, span_of
from gradwhy.diagnose.paths import Passed, Path, Region, cheapest, others
from gradwhy.diagnose.recording import Recording
from gradwhy.diagnose.wording import step_words, text
from gradwhy.flow import (
    Barrier,
    Cut,
    Finding,
    FlowGraph,
    Label,
    Passage,
    Question,
    Severity,
    Source,
    Span,
    Status,
    Step,
    Text,
    Unrecorded,
    ValueKind,
)

_SHOWN_NAMES = 3
_WITH_EXAMPLES = frozenset({"non-differentiable-op"})

BARRIER_CAUSES: dict[Barrier, str] = {
    Barrier.NOT_DIFFERENTIABLE: "non-differentiable-op",
    Barrier.INTEGER: "integer-dtype",
    Barrier.INDEX: "non-differentiable-op",
    Barrier.SHAPE: "non-differentiable-op",
    Barrier.CONDITION: "non-differentiable-op",
    Barrier.SAMPLE: "non-differentiable-op",
    Barrier.STOPPED: "detached",
    Barrier.HOST: "left-framework",
    Barrier.NEW_OBJECT: "rewrapped",
    Barrier.WRITE: "state-write",
    Barrier.CUSTOM: "custom-gradient",
    Barrier.NOT_REGISTERED: "no-gradient-registered",
    Barrier.FLAT: "saturated",
    Barrier.NOT_FINITE: "numeric",
    Barrier.UNRECORDED: "unknown",
    Barrier.BEFORE: "outside-tape",
    Barrier.AFTER: "after-tape",
    Barrier.PAUSED: "paused",
    Barrier.UNWATCHED: "not-watched",
    Barrier.OTHER_RECORDING: "wrong-tape",
}
"""The cause that a cut belongs to if nothing else is known of it, for the list of all cuts of a path."""


@dataclass(frozen=True, slots=True)
class _Judged:
    lost: Lost
    cause: str
    claim: Claim
    cuts: tuple[Cut, ...]


def explain(question: Question, graph: FlowGraph, number: int, first_id: int = 0) -> list[Finding]:
    """What there is to say about the sources of `question` that got no usable gradient, one finding a set of cuts.

    `number` is the question's id in the report, `first_id` the first finding's.
    """
    recording = Recording(graph, question)
    missing = [a for a in question.asked if a.status is not Status.OK]
    wanted = frozenset(a.value for a in missing if a.value is not None)
    paths = cheapest(recording, wanted) if wanted else {}
    ends = dead_ends(recording)
    groups: dict[object, list[_Judged]] = defaultdict(list)
    for asked in missing:
        path = paths.get(asked.value) if asked.value is not None else None
        if question.is_own and path is not None and not path.regions:
            continue
        judged = _judge(Lost(recording, asked, path, ends))
        spans = tuple((c.cause, c.span) for c in judged.cuts)
        groups[judged.cause, asked.status, judged.claim.place, spans, judged.claim.severity].append(judged)
    return [_finding(members, number, first_id + i) for i, members in enumerate(groups.values())]


def dead_ends(recording: Recording) -> frozenset[Unrecorded]:
    """Why part of the targets' ancestry has no history: the reasons, empty where all of it is known."""
    reasons: set[Unrecorded] = set()
    seen: set[int] = set()
    todo = list(recording.question.targets)
    while todo:
        number = todo.pop()
        if number in seen:
            continue
        seen.add(number)
        value = recording.values.get(number)
        if value is not None and value.unrecorded is not None:
            reasons.add(value.unrecorded)
        for op in recording.makers.get(number, ()):
            todo.extend(e.value for e in op.inputs if recording.is_passable(op, e))
    if not recording.graph.is_complete:
        reasons.add(Unrecorded.DROPPED)
    return frozenset(reasons)


def judge(lost: Lost) -> tuple[str, Claim]:
    """The cause of a lost source: the first, in their order, that says it is its own."""
    for cause in causes():
        claim = cause.recognise(lost)
        if claim is not None:
            return cause.slug, claim
    raise LookupError("no cause claims this source, not even `unknown`")


def _judge(lost: Lost) -> _Judged:
    slug, claim = judge(lost)
    return _Judged(lost, slug, claim, tuple(_cuts(slug, claim, lost)))


def _cuts(slug: str, claim: Claim, lost: Lost) -> Iterable[Cut]:
    """The cuts of the path: the claimed one first, the call through which it ran, then those nearer to the target."""
    if not lost.regions:
        yield Cut(slug, claim.place, lost.question.failure.op or "" if lost.question.failure else "", True)
        yield from (Cut(slug, span, "", True) for span in claim.also)
        return
    first, *rest = lost.regions
    yield _cut(slug, first)
    yield from (Cut(slug, span, first.first.op.name, True) for span in claim.also)
    outer = call_site(first.first, lost)
    if outer and first.barrier in (Barrier.BEFORE, Barrier.AFTER):
        yield Cut(slug, outer, step_words(first.first.op, outer), True)
    for region in rest[:2]:
        yield _cut(BARRIER_CAUSES[region.barrier], region)


def _cut(cause: str, region: Region) -> Cut:
    first = region.first
    return Cut(cause, span_of(first), first.op.name, all(p.edge.is_observed for p in region.steps))


def _finding(members: list[_Judged], number: int, finding_id: int) -> Finding:
    first = members[0]
    lost, claim, question = first.lost, first.claim, first.lost.question
    sources = tuple(m.lost.asked.source for m in members)
    also = _also_cut(lost) if lost.path is not None else ()
    notes = claim.notes + ((text("notes/also-cut", count=len(also)),) if also else ())
    fill = _Fill(sources, question.target)
    return Finding(
        id=finding_id,
        question=number,
        cause=first.cause,
        severity=severity(question, [m.lost for m in members], claim),
        symptom=lost.symptom,
        sources=sources,
        target=question.target,
        times=1,
        place=claim.place,
        headline=fill(headline(lost.symptom, sources)),
        labels=tuple(Label(label.span, fill(label.text)) for label in _distinct(claim.labels)),
        notes=tuple(fill(n) for n in notes),
        help=fill(claim.help),
        example=worked_example(claim.place, question.framework) if first.cause in _WITH_EXAMPLES else "",
        cuts=first.cuts,
        path=path_steps(lost),
        also_cut=also,
        graph=lost.recording.graph,
    )


def headline(symptom: Status, sources: tuple[Source, ...]) -> Text:
    return text(f"headline/{symptom.value}" if len(sources) == 1 else f"headline/{symptom.value}-many")


@dataclass(frozen=True, slots=True)
class _Fill:
    """Fills in what only the grouped finding knows: which sources it covers."""

    sources: tuple[Source, ...]
    target: str

    def __call__(self, said: Text) -> Text:
        names = [s.name for s in self.sources]
        shown = ", ".join(f"`{n}`" for n in names[:_SHOWN_NAMES])
        common: dict[str, str | int | float] = {
            "sources": shown,
            "source": names[0],
            "count": len(names),
            "more": max(0, len(names) - _SHOWN_NAMES),
            "target": self.target,
        }
        return replace(said, values=common | said.values)


def severity(question: Question, losses: list[Lost], claim: Claim) -> Severity:
    """The severity of design section 8, as far as it is known when the question is answered."""
    if claim.severity is not None:
        return claim.severity
    symptoms = {lost.symptom for lost in losses}
    if Status.ERROR in symptoms:
        return Severity.ERROR
    if question.is_filtered:
        return Severity.NOTE
    if Status.NAN in symptoms:
        return Severity.ERROR
    if symptoms & {Status.ZERO, Status.UNHELD}:
        return Severity.WARNING
    # What neither an optimizer nor the program's own filter passes over is read as a gradient.
    if all(a.status is Status.NONE for a in question.asked) or not question.is_applied:
        return Severity.ERROR
    return Severity.WARNING


def _distinct(labels: tuple[Label, ...]) -> tuple[Label, ...]:
    """One label a span, the first one said."""
    seen: dict[Span, Label] = {}
    for label in labels:
        seen.setdefault(label.span, label)
    return tuple(seen.values())


def _also_cut(lost: Lost) -> tuple[Cut, ...]:
    assert lost.path is not None and lost.asked.value is not None
    if not lost.path.regions:
        return ()
    main = {span_of(r.first) for r in lost.path.regions}
    found: dict[Span | None, Cut] = {}
    for other in others(lost.recording, lost.asked.value, lost.path):
        region = other.regions[0]
        if span_of(region.first) not in main:
            found.setdefault(span_of(region.first), _cut(BARRIER_CAUSES[region.barrier], region))
    return tuple(found.values())


def path_steps(lost: Lost) -> tuple[Step, ...]:
    """The path as it is shown: the source, then one step for each run of ops under one of the user's expressions."""
    if lost.path is None:
        return ()
    steps = [Step(lost.asked.source.class_name or "source", lost.asked.definition, lost.asked.source.name)]
    cut_steps = _cut_steps(lost.path)
    for index, passed in enumerate(lost.path.steps):
        span = span_of(passed)
        if index == 0 and _is_mere_read(lost, passed):
            cut_steps = {1 if i == 0 else i for i in cut_steps}
            continue
        words = step_words(passed.op, span)
        passage = Passage.CUT if index in cut_steps else Passage.FLOWS
        last = steps[-1]
        is_same = len(steps) > 1 and last.span == span and last.op == words
        if is_same:
            if passage is Passage.CUT:
                steps[-1] = replace(last, passage=passage)
        else:
            steps.append(Step(words, span, None, passage))
    steps[-1] = replace(steps[-1], name=lost.question.target if len(steps) > 1 else steps[-1].name)
    return tuple(steps)


def _is_mere_read(lost: Lost, passed: Passed) -> bool:
    """Whether the first op of a path only reads a variable for the op after it, in the same expression."""
    assert lost.path is not None
    steps, value = lost.path.steps, lost.recording.values.get(passed.edge.value)
    is_variable = value is not None and value.kind is ValueKind.VARIABLE
    return is_variable and len(steps) > 1 and span_of(steps[1]) == span_of(passed) is not None


def _cut_steps(path: Path) -> set[int]:
    """The positions at which the path is cut: the first edge of each region."""
    firsts = {id(region.first) for region in path.regions}
    return {i for i, passed in enumerate(path.steps) if id(passed) in firsts}

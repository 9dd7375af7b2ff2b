"""What most causes say: where the cut is, what happens there, and what to do."""

from __future__ import annotations

from gradwhy.diagnose.lost import Claim, Lost, call_site, span_of
from gradwhy.diagnose.paths import Passed, Region
from gradwhy.diagnose.wording import name_span, op_words, text
from gradwhy.flow import Barrier, Label, Severity, Span, Text
from gradwhy.source import statements

_MOST_FURTHER = 3


def at_cut(
    lost: Lost,
    slug: str,
    *,
    label: str = "cut",
    help: str = "default",
    notes: tuple[Text, ...] = (),
    labels: tuple[Label, ...] = (),
    place: Span | None = None,
    severity: Severity | None = None,
    also: tuple[Span, ...] = (),
    **values: str | int | None,
) -> Claim:
    """A claim at the cut nearest to the source, which must exist."""
    region = lost.region
    assert region is not None
    place = place or span_of(region.first)
    known = cut_values(lost, region) | values
    said = (Label(place, text(f"{slug}/labels/{label}", **known)),) if place else ()
    return Claim(
        place=place,
        labels=said + labels + surroundings(lost, region),
        help=text(f"{slug}/help/{help}", **known),
        notes=notes,
        severity=severity,
        also=also,
    )


def elsewhere(
    lost: Lost,
    slug: str,
    place: Span | None,
    *,
    label: str = "cut",
    help: str = "default",
    labels: tuple[Label, ...] = (),
    notes: tuple[Text, ...] = (),
    severity: Severity | None = None,
    also: tuple[Span, ...] = (),
    **values: str | int | None,
) -> Claim:
    """A claim about the source itself, at `place`, where no path or no cut of a path says more."""
    known = plain_values(lost, place) | values
    said = (Label(place, text(f"{slug}/labels/{label}", **known)),) if place else ()
    target = target_label(lost)
    near = (target,) if target and target.span != place else ()
    return Claim(place, said + labels + near, text(f"{slug}/help/{help}", **known), notes, severity, also)


def plain_values(lost: Lost, place: Span | None) -> dict[str, str | int | None]:
    """The values that every text about a lost source may use; the sources' names are filled in when they are grouped."""
    value = lost.recording.values.get(lost.asked.value) if lost.asked.value is not None else None
    scope = lost.recording.scope
    return {
        "source": lost.asked.source.name,
        "name": lost.asked.source.name,
        "target": lost.question.target,
        "line": place.line if place else None,
        "dtype": (value.dtype if value else "") or lost.asked.dtype or None,
        "recording": (scope.name or scope.kind) if scope else lost.question.kind,
        "scope": scope.kind if scope else None,
        "opens": scope.span.line if scope and scope.span else None,
        "closes": scope.end_span.line if scope and scope.end_span else None,
        "stand_in": lost.asked.stand_in,
        "op": lost.question.failure.op if lost.question.failure else None,
    }


def cut_values(lost: Lost, region: Region) -> dict[str, str | int | None]:
    """The values that a text about a cut may use."""
    first = region.first
    place = span_of(first)
    known = plain_values(lost, place)
    scope = lost.recording.scopes.get(region.scope) if region.scope is not None else None
    value = lost.recording.values.get(first.edge.value)
    made = lost.recording.values.get(first.op.outputs[0]) if first.op.outputs else None
    is_integer = region.barrier is Barrier.INTEGER and value is not None and value.is_differentiable
    dtype_of = made if is_integer else value
    return known | {
        "op": op_words(first.op, place),
        "scope": scope.kind if scope else known["scope"],
        "function": first.op.places[0].function if first.op.places else None,
        "dtype": dtype_of.dtype if dtype_of else None,
        "name": value_name(first) or known["source"],
    }


def value_name(passed: Passed) -> str | None:
    """What the user calls the value that an op reads: the one name in its statement, where there is but one."""
    span = span_of(passed)
    read = statements.names_read(span) if span else ()
    return read[0] if len(read) == 1 else None


def surroundings(lost: Lost, region: Region) -> tuple[Label, ...]:
    """The labels that put a cut in its place: where the recording starts, where the value enters, the target."""
    found: list[Label] = []
    scope = lost.recording.scope
    if region.barrier in (Barrier.BEFORE, Barrier.AFTER, Barrier.OTHER_RECORDING) and scope and scope.span:
        key = "labels/recorded-block" if region.barrier is Barrier.AFTER else "labels/recording-starts"
        found.append(Label(scope.span, text(key)))
    if region.barrier is Barrier.PAUSED and region.scope is not None:
        paused = lost.recording.scopes[region.scope]
        if paused.span:
            found.append(Label(paused.span, text("labels/paused-from", scope=paused.kind)))
    outer = call_site(region.first, lost)
    if outer and region.barrier in (Barrier.BEFORE, Barrier.AFTER):
        found.append(Label(outer, text("labels/called-here")))
    entry = entry_label(lost, region)
    if entry:
        found.append(entry)
    for further in lost.regions[1:_MOST_FURTHER]:
        at = span_of(further.first)
        if at:
            found.append(Label(at, text("labels/cut-again")))
    target = target_label(lost)
    if target:
        found.append(target)
    return tuple(found)


def entry_label(lost: Lost, region: Region) -> Label | None:
    """The name under which the cut value enters the recording as a constant, where the user gave it one."""
    if lost.path is None or region.barrier not in (Barrier.BEFORE, Barrier.PAUSED, Barrier.HOST):
        return None
    steps = lost.path.steps
    after = steps.index(region.last) + 1
    made_at = span_of(region.last)
    if after >= len(steps) or made_at is None:
        return None
    read_at = span_of(steps[after])
    names = statements.assigned_names(made_at)
    if read_at is None or len(names) != 1:
        return None
    span = name_span(read_at, names[0])
    return Label(span, text("labels/enters", name=names[0])) if span else None


def target_label(lost: Lost) -> Label | None:
    span = lost.question.target_span
    return Label(span, text("labels/target", target=lost.question.target)) if span else None

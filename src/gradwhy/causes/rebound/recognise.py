"""The name now means another object than the one that was used."""

from __future__ import annotations

from gradwhy.diagnose.claims import elsewhere
from gradwhy.diagnose.lost import Claim, Lost
from gradwhy.flow import Barrier, SourceFact, Span, ValueKind
from gradwhy.source import statements

GOES_BEFORE = ("unknown", "unused", "not-watched")

_OTHERS_KINDS = frozenset({"repeated", "replaced", "misspelt", "parametrized", "stale", "leaked", "to-host", "nondiff"})
"""Stand-ins that other causes tell of."""


def recognise(lost: Lost) -> Claim | None:
    """A claim where the target was seen to use another object where this one was expected."""
    if lost.has(SourceFact.SYMBOLIC):
        place = lost.asked.definition or lost.question.span
        return elsewhere(lost, "rebound", place, label="symbolic", help="symbolic")
    if lost.path is None and lost.asked.stand_in is not None and lost.asked.stand_in_kind not in _OTHERS_KINDS:
        place = lost.asked.stand_in_span or lost.question.span
        kind = lost.asked.stand_in_kind
        label = "derived" if kind == "derived" else "used"
        return elsewhere(lost, "rebound", place, label=label, help=kind or "default")
    remade = _remade(lost)
    if remade is not None:
        return elsewhere(lost, "rebound", remade, help="in-place")
    return None


def _remade(lost: Lost) -> Span | None:
    """The statement that gave the source's name to what it computed from it, such as `w = w - rate * gradient`.

    Only where a variable stood behind the name before: that one was watched, and what came of it is not.
    """
    region, value = lost.region, lost.asked.value
    if value is None or (region is not None and region.barrier is not Barrier.UNWATCHED):
        return None
    for maker in lost.recording.makers.get(value, ()):
        span = maker.places[0].span if maker.places else None
        name = lost.asked.source.name
        if span is None or name not in statements.assigned_names(span) or name not in statements.statement_reads(span):
            continue
        if _comes_from_variable(lost, value):
            return span
    return None


def _comes_from_variable(lost: Lost, value: int) -> bool:
    seen, todo = {value}, [value]
    while todo:
        for maker in lost.recording.makers.get(todo.pop(), ()):
            for edge in maker.inputs:
                before = lost.recording.values.get(edge.value)
                if before is not None and before.kind is ValueKind.VARIABLE:
                    return True
                if edge.value not in seen:
                    seen.add(edge.value)
                    todo.append(edge.value)
    return False

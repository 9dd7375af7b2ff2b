"""A plain value that no recording watches, or that it watches too late."""

from __future__ import annotations

from gradwhy.diagnose.claims import at_cut, elsewhere
from gradwhy.diagnose.lost import Claim, Lost
from gradwhy.diagnose.wording import text
from gradwhy.flow import Barrier, Label, ScopeRole, SourceFact

GOES_BEFORE = ("unknown",)


def recognise(lost: Lost) -> Claim | None:
    """A claim where the path is cut at the source itself, because it was not watched when it was used."""
    failure = lost.question.failure
    if failure is not None and failure.kind == "not-watchable":
        return elsewhere(lost, "not-watched", lost.question.span, label="not-watchable", help="watch-value")
    if failure is not None and failure.kind == "not-a-tensor":
        return elsewhere(lost, "not-watched", lost.question.span, label="not-a-tensor", help="tensor-first")
    if lost.has(SourceFact.NOT_ASKED):
        notes = (text("not-watched/notes/auto"),)
        return elsewhere(lost, "not-watched", lost.question.span, label="made", help="argnums", notes=notes)
    region = lost.region
    if region is None or region.barrier is not Barrier.UNWATCHED:
        return None
    if lost.has(SourceFact.FROZEN) or lost.has(SourceFact.STATISTIC) or lost.has(SourceFact.INTEGER):
        return None
    late = _late_watch(lost)
    if late is not None:
        return at_cut(lost, "not-watched", label="used-first", labels=late, help="early")
    if lost.asked.stand_in_kind == "misspelt":
        return at_cut(lost, "not-watched", help="spelling", place=lost.asked.stand_in_span, label="misspelt")
    scope = lost.recording.scope
    if scope is not None and scope.span is None and lost.asked.definition is not None:
        # What is recorded is decided where the value is made, not where a block opens.
        return at_cut(lost, "not-watched", help="watch", place=lost.asked.definition, label="made")
    if _is_watched_elsewhere(lost):
        return at_cut(lost, "not-watched", help="watch-outer")
    return at_cut(lost, "not-watched", help="watch")


def _late_watch(lost: Lost) -> tuple[Label, ...] | None:
    scope = lost.recording.scope
    spans = [w.span for w in scope.watches if w.value == lost.asked.value and w.span] if scope else []
    return (Label(spans[0], text("not-watched/labels/late")),) if spans else None


def _is_watched_elsewhere(lost: Lost) -> bool:
    return any(
        s.role is ScopeRole.RECORDS
        and s is not lost.recording.scope
        and any(w.value == lost.asked.value for w in s.watches)
        for s in lost.recording.graph.scopes
    )

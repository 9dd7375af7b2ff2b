"""The value travelled through an assignment."""

from __future__ import annotations

from gradwhy.diagnose.claims import at_cut, elsewhere, value_name
from gradwhy.diagnose.lost import Claim, Lost, span_of
from gradwhy.diagnose.wording import text
from gradwhy.flow import Barrier
from gradwhy.source import statements

GOES_BEFORE = ("unknown", "unused")


def recognise(lost: Lost) -> Claim | None:
    """A claim where a write cuts the path nearest to the source, or where what was read is older than the write."""
    asked, failure = lost.asked, lost.question.failure
    if failure is not None and failure.kind == "leaked":
        kept, read = failure.span or lost.question.span, asked.last_use
        also = (read,) if read is not None and read != kept else ()
        return elsewhere(lost, "state-write", kept, label="leaked", help="leaked", also=also)
    if lost.path is None and asked.stand_in_kind == "leaked":
        return elsewhere(lost, "state-write", asked.stand_in_span, label="kept", help="leaked")
    if lost.path is None and asked.stand_in_kind == "stale":
        notes = (text("state-write/notes/stale", name=asked.stand_in),)
        place, name = asked.stand_in_span, asked.stand_in
        return elsewhere(lost, "state-write", place, label="read", help="functional", notes=notes, name=name)
    region = lost.region
    if region is None or region.barrier is not Barrier.WRITE:
        return None
    place = span_of(region.first)
    written = statements.written_name(place) if place is not None else None
    return at_cut(lost, "state-write", name=written or value_name(region.first) or asked.source.name)

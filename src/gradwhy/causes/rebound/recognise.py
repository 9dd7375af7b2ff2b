"""The name now means another object than the one that was used."""

from __future__ import annotations

from gradwhy.diagnose.claims import elsewhere
from gradwhy.diagnose.lost import Claim, Lost
from gradwhy.flow import SourceFact

GOES_BEFORE = ("unknown", "unused")


def recognise(lost: Lost) -> Claim | None:
    """A claim where the target was seen to use another object where this one was expected."""
    if lost.has(SourceFact.SYMBOLIC):
        place = lost.asked.definition or lost.question.span
        return elsewhere(lost, "rebound", place, label="symbolic", help="symbolic")
    if lost.path is None and lost.asked.stand_in is not None and lost.asked.stand_in_kind != "repeated":
        place = lost.asked.stand_in_span or lost.question.span
        return elsewhere(lost, "rebound", place, label="used", help=lost.asked.stand_in_kind or "default")
    return None

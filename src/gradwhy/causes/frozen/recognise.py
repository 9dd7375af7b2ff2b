"""The source is marked as not trainable, or is no trainable weight by its nature."""

from __future__ import annotations

from gradwhy.diagnose.claims import elsewhere
from gradwhy.diagnose.lost import Claim, Lost
from gradwhy.flow import Barrier, Severity, SourceFact, Status

GOES_BEFORE = ("unknown", "unused", "rebound", "paused")


def recognise(lost: Lost) -> Claim | None:
    """A claim where the source is frozen and nothing nearer to the source cuts the path."""
    region = lost.region
    # What is frozen is often used where recording is paused, too: each would do.
    if region is not None and region.barrier not in (Barrier.UNWATCHED, Barrier.PAUSED):
        return None
    if lost.has(SourceFact.STATISTIC):
        place = lost.question.span
        return elsewhere(lost, "frozen", place, label="statistic", help="statistic", severity=Severity.NOTE)
    if lost.has(SourceFact.FROZEN):
        place = lost.asked.definition or lost.question.span
        # What a refused question is about was not meant to be frozen.
        severity = None if lost.symptom is Status.ERROR else Severity.NOTE
        return elsewhere(lost, "frozen", place, help="trainable", severity=severity)
    return None

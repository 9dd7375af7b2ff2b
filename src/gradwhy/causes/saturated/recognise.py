"""The gradient exists and is exactly zero at the values of this run."""

from __future__ import annotations

from gradwhy.diagnose.claims import at_cut, elsewhere
from gradwhy.diagnose.lost import Claim, Lost
from gradwhy.flow import Barrier, Severity, Status

GOES_BEFORE = ("unknown",)


def recognise(lost: Lost) -> Claim | None:
    """A claim where a zero came back along a whole path; a note where the op that made it zero is not known."""
    if lost.symptom is not Status.ZERO or lost.path is None:
        return None
    region = lost.region
    if region is None:
        return elsewhere(lost, "saturated", lost.question.span, label="whole-path", severity=Severity.NOTE)
    return at_cut(lost, "saturated") if region.barrier is Barrier.FLAT else None

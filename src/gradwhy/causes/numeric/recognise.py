"""The gradient is NaN or infinite."""

from __future__ import annotations

from gradwhy.diagnose.claims import at_cut, elsewhere
from gradwhy.diagnose.lost import Claim, Lost
from gradwhy.flow import Barrier, Status

GOES_BEFORE = ("unknown", "unused", "saturated")


def recognise(lost: Lost) -> Claim | None:
    """A claim where NaN came back, at the op that made it where that is known."""
    if lost.symptom is not Status.NAN:
        return None
    region = next((r for r in lost.regions if r.barrier is Barrier.NOT_FINITE), None)
    if region is None:
        return elsewhere(lost, "numeric", lost.question.span, label="whole-path")
    return at_cut(lost, "numeric")

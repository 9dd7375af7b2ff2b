"""The target, or an op on the path, ran after the recording ended."""

from __future__ import annotations

from gradwhy.diagnose.claims import at_cut
from gradwhy.diagnose.lost import Claim, Lost
from gradwhy.flow import Barrier

GOES_BEFORE = ("unknown",)


def recognise(lost: Lost) -> Claim | None:
    """A claim where the op nearest to the source that was not held ran after the recording."""
    region = lost.region
    if region is None or region.barrier is not Barrier.AFTER:
        return None
    return at_cut(lost, "after-tape", help="second-order" if lost.question.order > 1 else "extend")

"""A user-defined gradient gives None or zeros for an input, or drops it."""

from __future__ import annotations

from gradwhy.diagnose.claims import at_cut
from gradwhy.diagnose.lost import Claim, Lost
from gradwhy.flow import Barrier, Status

GOES_BEFORE = ("unknown",)


def recognise(lost: Lost) -> Claim | None:
    """A claim where a user-defined gradient is what cuts the path nearest to the source."""
    region = lost.region
    if region is None or region.barrier is not Barrier.CUSTOM:
        return None
    label = "zero" if lost.symptom is Status.ZERO else "none"
    return at_cut(lost, "custom-gradient", label=label)

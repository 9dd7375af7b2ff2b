"""The op ran where the recording was paused."""

from __future__ import annotations

from gradwhy.diagnose.claims import at_cut
from gradwhy.diagnose.lost import Claim, Lost
from gradwhy.flow import Barrier

GOES_BEFORE = ("unknown",)


def recognise(lost: Lost) -> Claim | None:
    """A claim where the value nearest to the source is cut in this way."""
    region = lost.region
    if region is None or region.barrier is not Barrier.PAUSED:
        return None
    scope = lost.recording.scopes.get(region.scope) if region.scope is not None else None
    also = (scope.span,) if scope is not None and scope.span is not None else ()
    return at_cut(lost, "paused", also=also)

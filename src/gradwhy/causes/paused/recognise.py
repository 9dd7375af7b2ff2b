"""The op ran where the recording was paused."""

from __future__ import annotations

from gradwhy.diagnose.claims import at_cut, elsewhere
from gradwhy.diagnose.lost import Claim, Lost
from gradwhy.flow import Barrier

GOES_BEFORE = ("unknown", "unused", "rebound", "not-watched")


def recognise(lost: Lost) -> Claim | None:
    """A claim where the value nearest to the source is cut in this way, or recording was found to be off in the end."""
    failure, region = lost.question.failure, lost.region
    if failure is not None and failure.kind == "switched-off":
        place = failure.span or lost.question.span
        return elsewhere(
            lost, "paused", place, label="switched-off", help="switch", scope="torch.set_grad_enabled(False)"
        )
    if region is None or region.barrier is not Barrier.PAUSED:
        return None
    scope = lost.recording.scopes.get(region.scope) if region.scope is not None else None
    also = (scope.span,) if scope is not None and scope.span is not None else ()
    return at_cut(lost, "paused", also=also)

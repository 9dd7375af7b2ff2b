"""An op ran before the recording began."""

from __future__ import annotations

from gradwhy.diagnose.claims import at_cut
from gradwhy.diagnose.lost import Claim, Lost, call_site, span_of
from gradwhy.diagnose.paths import Region
from gradwhy.flow import Barrier, ScopeRole
from gradwhy.source.locate import in_same_function

GOES_BEFORE = ("unknown",)

_SET_UP = frozenset({"__init__", "build", "setUp", "setup", "__post_init__"})


def recognise(lost: Lost) -> Claim | None:
    """A claim where the ops nearest to the source ran before the question's recording, and no earlier one held them."""
    region = lost.region
    if region is None or region.barrier is not Barrier.BEFORE or ran_in_other_recording(lost, region):
        return None
    outer = call_site(region.first, lost)
    function = region.first.op.places[0].function if region.first.op.places else ""
    if function in _SET_UP:
        return at_cut(lost, "outside-tape", help="init")
    if outer is not None:
        return at_cut(lost, "outside-tape", help="call", line=outer.line)
    if _ran_elsewhere(lost, region):
        return at_cut(lost, "outside-tape", help="other-function")
    return at_cut(lost, "outside-tape", help="move", line=_last_line(region))


def _ran_elsewhere(lost: Lost, region: Region) -> bool:
    """Whether the op ran in a function that neither holds the recording nor was called where that one stands."""
    scope, place = lost.recording.scope, span_of(region.first)
    if scope is None or scope.span is None or place is None:
        return False
    return region.first.op.places[0].function != "<module>" and not in_same_function(place, scope.span)


def ran_in_other_recording(lost: Lost, region: Region) -> bool:
    """Whether another recording, closed before the question's own began, held the first op of the region."""
    own = lost.recording.scope
    scopes = (lost.recording.scopes.get(number) for number in region.first.op.scopes)
    return own is not None and any(
        s is not None and s.role is ScopeRole.RECORDS and s.id != own.id and s.end is not None and s.end <= own.start
        for s in scopes
    )


def _last_line(region: Region) -> int | None:
    span = span_of(region.first)
    return span.line if span else None

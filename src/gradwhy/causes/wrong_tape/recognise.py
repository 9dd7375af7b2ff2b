"""Another recording than the asked one held the op, or the asked one was used up."""

from __future__ import annotations

from gradwhy.causes.outside_tape.recognise import ran_in_other_recording
from gradwhy.diagnose.claims import at_cut, elsewhere
from gradwhy.diagnose.lost import Claim, Lost
from gradwhy.diagnose.wording import text
from gradwhy.flow import Barrier, Label, Scope, ScopeRole

GOES_BEFORE = ("unknown", "unused", "not-watched", "outside-tape", "after-tape", "frozen")


def recognise(lost: Lost) -> Claim | None:
    """A claim where the recording was used up before or never began, or an op was held by another recording than the asked one."""
    failure = lost.question.failure
    if failure is not None and failure.kind == "used-up":
        first = lost.question.earlier
        labels = (Label(first, text("wrong-tape/labels/first-question")),) if first else ()
        return elsewhere(lost, "wrong-tape", lost.question.span, labels=labels, help="persistent")
    if failure is not None and failure.kind == "never-recording":
        return elsewhere(lost, "wrong-tape", lost.question.span, label="never", help="enter")
    region = lost.region
    if region is None:
        return None
    holder = _other_holder(lost)
    if holder is not None:
        asked = lost.question.span
        labels = (Label(asked, text("wrong-tape/labels/asked-other", name=holder.name)),) if asked else ()
        also = (asked,) if asked else ()
        return at_cut(lost, "wrong-tape", label="held", help="ask", labels=labels, also=also, name=holder.name)
    if region.barrier is Barrier.OTHER_RECORDING:
        return at_cut(lost, "wrong-tape")
    if region.barrier is Barrier.BEFORE and ran_in_other_recording(lost, region):
        return at_cut(lost, "wrong-tape", label="earlier", help="recompute")
    return None


def _other_holder(lost: Lost) -> Scope | None:
    """The one other recording that held the whole path, where the asked one, open at another time, held nothing of it."""
    own, path = lost.recording.scope, lost.path
    if own is None or own.end is None or path is None or not path.steps:
        return None
    common = set.intersection(*(set(passed.op.scopes) for passed in path.steps))
    if any(own.id in passed.op.scopes for passed in path.steps):
        return None
    found = [
        scope
        for number in common
        if (scope := lost.recording.scopes.get(number)) is not None and scope.role is ScopeRole.RECORDS
        if scope.name not in ("", own.name)
        and scope.end is not None
        and (scope.end <= own.start or scope.start >= own.end)
    ]
    return found[0] if len(found) == 1 else None

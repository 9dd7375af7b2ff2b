"""Another recording than the asked one held the op, or the asked one was used up."""

from __future__ import annotations

from gradwhy.causes.outside_tape.recognise import ran_in_other_recording
from gradwhy.diagnose.claims import at_cut, elsewhere
from gradwhy.diagnose.lost import Claim, Lost
from gradwhy.diagnose.wording import text
from gradwhy.flow import Barrier, Label

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
    if region.barrier is Barrier.OTHER_RECORDING:
        return at_cut(lost, "wrong-tape")
    if region.barrier is Barrier.BEFORE and ran_in_other_recording(lost, region):
        return at_cut(lost, "wrong-tape", label="earlier", help="recompute")
    return None

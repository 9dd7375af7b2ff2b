"""A gradient was to be kept at a tensor that is a result."""

from __future__ import annotations

from gradwhy.diagnose.claims import elsewhere
from gradwhy.diagnose.lost import Claim, Lost
from gradwhy.diagnose.wording import op_words, text
from gradwhy.flow import Op, SourceFact

GOES_BEFORE = ("unknown", "unused", "not-watched", "rebound", "frozen")


def recognise(lost: Lost) -> Claim | None:
    """A claim where `.grad` was read of a result, or an optimizer was given one, and nothing else cuts its path."""
    if not lost.has(SourceFact.NOT_LEAF) or lost.region is not None:
        return None
    maker, asked = _maker(lost), lost.asked
    if asked.stand_in_kind == "parametrized":
        notes = (text("non-leaf/notes/each-access"),)
        return elsewhere(lost, "non-leaf", lost.question.span, label="read", help="original", notes=notes)
    told = "optimizer" if lost.question.failure is not None else "flows"
    notes = (text(f"non-leaf/notes/{told}"),)
    if maker is None or not maker.places:
        return elsewhere(lost, "non-leaf", lost.question.span, label="read", notes=notes)
    place = maker.places[0].span
    is_leafs_name = lost.has(SourceFact.STANDS_FOR_LEAF) or lost.question.failure is not None
    help = "leaf-last" if is_leafs_name else "retain-grad"
    return elsewhere(lost, "non-leaf", place, help=help, notes=notes, op=op_words(maker, place))


def _maker(lost: Lost) -> Op | None:
    """The op that made the source."""
    value = lost.asked.value
    return next(iter(lost.recording.makers.get(value, ())), None) if value is not None else None

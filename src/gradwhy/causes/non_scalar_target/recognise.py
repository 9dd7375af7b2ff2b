"""A gradient was asked of something that is not a single number."""

from __future__ import annotations

from gradwhy.diagnose.claims import elsewhere
from gradwhy.diagnose.lost import Claim, Lost
from gradwhy.diagnose.wording import text
from gradwhy.flow import Label

GOES_BEFORE = ("unknown", "unused", "not-watched", "frozen", "rebound", "non-leaf")


def recognise(lost: Lost) -> Claim | None:
    """A claim where the framework refused the target for its shape."""
    failure = lost.question.failure
    if failure is None or failure.kind != "non-scalar-target":
        return None
    made, asked = lost.question.target_span, lost.question.span
    if failure.op == "returns-more":
        labels = (Label(made, text("non-scalar-target/labels/returns-more")),) if made and made != asked else ()
        return elsewhere(lost, "non-scalar-target", asked, label="asked", help="has-aux", labels=labels)
    if made is None or made == asked or asked is None:
        return elsewhere(lost, "non-scalar-target", asked, label="asked")
    labels = (Label(asked, text("non-scalar-target/labels/asked")),)
    return elsewhere(lost, "non-scalar-target", made, labels=labels, also=(asked,))

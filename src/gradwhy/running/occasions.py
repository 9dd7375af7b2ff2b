"""One asking of a question, told so that it is found again when the changed program runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gradwhy.flow import Finding, Numbers, Question, Status


@dataclass(frozen=True, slots=True)
class Occasion:
    """A question by the function that asks it, which no edit of the lines around it changes.

    `ordinal` counts the questions of that kind in the function, from 0, in the order in which they were first asked,
    `repetition` how often this one was asked, from 1.
    """

    kind: str
    file: str
    function: str
    ordinal: int
    repetition: int


@dataclass(frozen=True, slots=True)
class Told:
    """A finding, the question as it was asked then, and the numbers of its answer, where they were kept."""

    finding: Finding
    question: Question
    occasion: Occasion
    statuses: tuple[Status, ...]
    target: Numbers | None = None
    gradients: tuple[Numbers | None, ...] = ()


def occasion_of(question: Question, earlier: Iterable[Question], times: int) -> Occasion:
    """Where a question stands among those first asked `earlier`, one for each place in the code."""
    home = _home(question)
    ordinal = sum(_home(other) == home for other in earlier)
    return Occasion(*home, ordinal, times)


def _home(question: Question) -> tuple[str, str, str]:
    place = question.places[0] if question.places else None
    return (question.kind, place.span.file, place.function) if place is not None else (question.kind, "", "")

"""A finding in the making: one source that lost its gradient, with all that was observed about it."""

from __future__ import annotations

from dataclasses import dataclass

from gradwhy.diagnose.paths import Passed, Path, Region
from gradwhy.diagnose.recording import Recording
from gradwhy.flow import Asked, Label, Question, Severity, SourceFact, Span, Status, Text, Unrecorded
from gradwhy.source.locate import in_same_function


@dataclass(frozen=True, slots=True)
class Lost:
    """One source without its gradient. `path` is the cheapest one, None where no path was recorded.

    `dead_ends` are the reasons why some of the target's ancestry has no history; empty where all of it is known.
    """

    recording: Recording
    asked: Asked
    path: Path | None
    dead_ends: frozenset[Unrecorded]

    @property
    def question(self) -> Question:
        return self.recording.question

    @property
    def symptom(self) -> Status:
        return self.asked.status

    @property
    def regions(self) -> tuple[Region, ...]:
        return self.path.regions if self.path else ()

    @property
    def region(self) -> Region | None:
        """The cut nearest to the source; None where there is no path, or no cut on it."""
        return self.regions[0] if self.regions else None

    @property
    def is_complete(self) -> bool:
        """Whether the target's whole ancestry is known, so that what is not in it takes no part."""
        return not self.dead_ends

    def has(self, fact: SourceFact) -> bool:
        return fact in self.asked.facts


@dataclass(frozen=True, slots=True)
class Claim:
    """What a cause says about a lost source that is its own.

    `severity` is set only where the table of severities does not decide, such as for a source frozen on purpose. `also` are
    further places that belong to the same cut: the other end of what is not joined, the switch that is off.
    """

    place: Span | None
    labels: tuple[Label, ...]
    help: Text
    notes: tuple[Text, ...] = ()
    severity: Severity | None = None
    also: tuple[Span, ...] = ()


def span_of(passed: Passed) -> Span | None:
    """Where an edge of a path stands in the user's code."""
    return passed.edge.span or (passed.op.places[0].span if passed.op.places else None)


def call_site(passed: Passed, lost: Lost) -> Span | None:
    """The call, in the function that holds the recording, through which this op ran; None if it stands there itself."""
    scope = lost.recording.scope
    home = scope.span if scope else lost.question.span
    places = passed.op.places
    if home is None or len(places) < 2:
        return None
    if in_same_function(places[0].span, home):
        return None
    return next((place.span for place in places[1:] if in_same_function(place.span, home)), None)

"""Which cause is told where several fit, and how severe it is."""

from __future__ import annotations

import importlib
from itertools import combinations

import pytest

from gradwhy.causes.discover import causes
from gradwhy.diagnose.explain import severity
from gradwhy.diagnose.lost import Claim, Lost
from gradwhy.diagnose.recording import Recording
from gradwhy.flow import Asked, FlowGraph, Question, Severity, Source, Status, Text
from toy_autodiff import Toy

NONE, ZERO, NAN, ERROR, OK = Status.NONE, Status.ZERO, Status.NAN, Status.ERROR, Status.OK


def cut_twice_in_a_row(toy: Toy) -> int:
    """The source's way is stopped, and what was stopped is then assigned; the line of the stop."""
    x, w, state = toy.variable(2.0), toy.variable(3.0), toy.variable(0.0)
    toy.open(x, w)
    stopped = toy.stop(x)
    line = toy.time
    toy.assign(state, toy.multiply(stopped, w))
    toy.gradient(toy.multiply(state, w), x=x, w=w)
    return line


def cut_on_two_ways(toy: Toy) -> int:
    """One way of the source is stopped, the other one ran before the recording; the line of the stop."""
    x, w = toy.variable(2.0), toy.variable(3.0)
    before = toy.multiply(x, x)
    early = toy.multiply(before, before)
    toy.open(x, w)
    stopped = toy.stop(x)
    line = toy.time
    toy.gradient(toy.multiply(toy.multiply(stopped, w), early), x=x, w=w)
    return line


PROGRAMS = (cut_twice_in_a_row, cut_on_two_ways)


def test_of_two_cuts_in_a_row_the_one_nearer_to_the_source_is_told_and_both_are_listed() -> None:
    toy = Toy()
    line = cut_twice_in_a_row(toy)
    (finding,) = toy.session.report().findings
    assert finding.cause == "detached" and finding.place is not None and finding.place.line == line
    assert [cut.cause for cut in finding.cuts] == ["detached", "state-write"]


def test_another_way_that_is_cut_is_told_in_a_note() -> None:
    toy = Toy()
    cut_on_two_ways(toy)
    (finding,) = toy.session.report().findings
    assert {finding.cause, *(cut.cause for cut in finding.also_cut)} == {"detached", "outside-tape"}
    assert [note.key for note in finding.notes] == ["notes/also-cut"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_of_any_two_causes_that_claim_a_source_one_goes_before_the_other(
    program: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    explaining = importlib.import_module("gradwhy.diagnose.explain")
    seen: list[Lost] = []
    judge = explaining.judge
    monkeypatch.setattr(explaining, "judge", lambda lost: (seen.append(lost), judge(lost))[1])
    program(Toy())  # type: ignore[operator]
    assert seen
    for lost in seen:
        claiming = [cause for cause in causes() if cause.recognise(lost) is not None]
        assert len(claiming) > 1, "`unknown` claims every source"
        for one, other in combinations(claiming, 2):
            assert other.slug in one.goes_before or one.slug in other.goes_before


def test_every_cause_but_unknown_goes_before_unknown() -> None:
    assert [c.slug for c in causes() if "unknown" not in c.goes_before] == ["unknown"]


def judged(*statuses: Status, claimed: Severity | None = None, **facts: bool) -> Severity:
    """The severity of a finding about the first source of a question with these answers."""
    asked = tuple(Asked(Source(f"w{n}"), None, status) for n, status in enumerate(statuses))
    question = Question("tape.gradient", "toy", (), 1, "loss", (), asked, **facts)
    lost = Lost(Recording(FlowGraph(), question), asked[0], None, frozenset())
    return severity(question, [lost], Claim(None, (), Text("unused/help/default"), severity=claimed))


@pytest.mark.parametrize(
    ("severity_told", "expected"),
    [
        (judged(NONE, is_applied=True), Severity.ERROR),
        (judged(NONE, NONE, is_applied=True), Severity.ERROR),
        (judged(NONE, OK, is_applied=True), Severity.WARNING),
        (judged(NONE, OK), Severity.ERROR),
        (judged(ERROR, OK, is_applied=True), Severity.ERROR),
        (judged(NAN, OK, is_applied=True), Severity.ERROR),
        (judged(ZERO, OK), Severity.WARNING),
        (judged(NONE, OK, is_filtered=True), Severity.NOTE),
        (judged(NONE, OK, claimed=Severity.NOTE), Severity.NOTE),
    ],
    ids=[
        "the only source",
        "no source got one",
        "an optimizer passes over it",
        "the author reads the None",
        "the program got an exception",
        "NaN",
        "zeros by a cut",
        "the program drops it",
        "frozen on purpose",
    ],
)
def test_severity_is_that_of_the_designs_table(severity_told: Severity, expected: Severity) -> None:
    assert severity_told is expected

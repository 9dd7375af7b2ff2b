"""The whole way, from what a program asked to what a person reads, with a framework of a hundred lines."""

from __future__ import annotations

import json

from gradwhy.flow import Finding, Report, from_json
from gradwhy.render.json import report_bytes
from gradwhy.texts import localize
from toy_autodiff import Toy


def findings(toy: Toy) -> tuple[Finding, ...]:
    """What is said of the program, by way of its JSON and back, with texts in both languages."""
    report = toy.session.report()
    read = from_json(Report, json.loads(report_bytes(report)))
    assert [f.cause for f in read.findings] == [f.cause for f in report.findings]
    for language in ("en", "zh"):
        for finding in localize(read, language).findings:
            told = [finding.headline, finding.help, *finding.notes, *(label.text for label in finding.labels)]
            assert all(text is None or (text.text and text.key not in text.text) for text in told)
    return localize(read, "en").findings


def test_op_before_the_recording_is_outside_tape() -> None:
    toy = Toy()
    x, w = toy.variable(2.0), toy.variable(3.0)
    before = toy.multiply(x, x)
    cut = toy.time
    toy.open(x, w)
    assert toy.gradient(toy.multiply(before, w), x=x, w=w) == {"x": None, "w": 4.0}
    (finding,) = findings(toy)
    assert finding.cause == "outside-tape" and finding.place is not None and finding.place.line == cut
    assert finding.headline.text == "no gradient reaches `x`"


def test_stopped_value_is_detached() -> None:
    toy = Toy()
    x, w = toy.variable(2.0), toy.variable(3.0)
    toy.open(x, w)
    stopped = toy.stop(x)
    cut = toy.time
    assert toy.gradient(toy.multiply(stopped, w), x=x, w=w)["x"] is None
    (finding,) = findings(toy)
    assert finding.cause == "detached" and finding.place is not None and finding.place.line == cut


def test_source_outside_the_targets_whole_ancestry_is_unused() -> None:
    toy = Toy()
    x, w = toy.variable(2.0), toy.variable(3.0)
    toy.open(x, w)
    toy.gradient(toy.multiply(w, w), x=x, w=w)
    (finding,) = findings(toy)
    assert finding.cause == "unused" and [s.name for s in finding.sources] == ["x"]


def test_value_that_travelled_through_an_assignment_is_a_state_write() -> None:
    toy = Toy()
    x, state = toy.variable(2.0), toy.variable(0.0)
    toy.open(x)
    toy.assign(state, toy.multiply(x, x))
    cut = toy.time
    assert toy.gradient(toy.multiply(state, state), x=x) == {"x": None}
    (finding,) = findings(toy)
    assert finding.cause == "state-write" and finding.place is not None and finding.place.line == cut


def test_nothing_is_said_of_a_source_that_got_its_gradient_though_another_path_is_cut() -> None:
    toy = Toy()
    x = toy.variable(2.0)
    toy.open(x)
    assert toy.gradient(toy.multiply(x, toy.stop(x)), x=x) == {"x": 2.0}
    assert findings(toy) == ()


def test_source_behind_a_value_without_history_is_unknown() -> None:
    toy = Toy()
    x, w = toy.variable(2.0), toy.variable(3.0)
    toy.open(x, w)
    toy.gradient(toy.multiply(toy.foreign(4.0), w), x=x, w=w)
    (finding,) = findings(toy)
    assert finding.cause == "unknown" and finding.notes

"""The judge of the cases refuses what is wrong and passes what is right."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from forkserver import Finished
from gradwhy.flow import Cut, Finding, Report, Severity, Source, Span, Status, Text
from judging import Case, is_same, judge, judge_transparency

CASE = Case(
    id="tf-example",
    framework="tensorflow",
    file=Path("train.py"),
    fixed_file=None,
    symptom="none",
    sources=("model.encoder.kernel",),
    healthy=("model.head.kernel",),
    causes=frozenset(["paused"]),
    lines=frozenset([12, 13]),
    severities=frozenset([Severity.ERROR, Severity.WARNING]),
)
CONTROL = replace(CASE, symptom="ok", sources=(), lines=frozenset(), causes=frozenset(["ok"]))
RIGHT = Finding(
    id=0,
    question=0,
    cause="paused",
    severity=Severity.ERROR,
    symptom=Status.NONE,
    sources=(Source("encoder.kernel", ("model.encoder.kernel",)),),
    target="loss",
    times=1,
    place=Span("train.py", 12, 5, 12, 20),
    headline=Text("symptoms/none"),
)


def faults_of(*findings: Finding, case: Case = CASE) -> list[str]:
    return judge(case, Report(gradwhy="0", python="3", program="train.py", findings=findings))


def kinds_of(*findings: Finding, case: Case = CASE) -> list[str]:
    return [fault.partition(":")[0] for fault in faults_of(*findings, case=case)]


def test_the_right_answer_passes() -> None:
    assert faults_of(RIGHT) == []


def test_silence_is_a_miss() -> None:
    assert faults_of() == ["missed: nothing is said about model.encoder.kernel"]


def test_another_cause_is_wrong() -> None:
    assert kinds_of(replace(RIGHT, cause="detached")) == ["cause"]


def test_a_note_is_too_quiet_for_a_lost_gradient() -> None:
    assert kinds_of(replace(RIGHT, severity=Severity.NOTE)) == ["severity"]


def test_the_most_severe_finding_is_the_answer() -> None:
    assert faults_of(replace(RIGHT, cause="detached", severity=Severity.WARNING), RIGHT) == []
    assert kinds_of(replace(RIGHT, severity=Severity.WARNING), replace(RIGHT, cause="detached")) == ["cause"]


def test_three_findings_of_one_severity_are_too_many() -> None:
    assert faults_of(RIGHT, RIGHT) == []
    assert kinds_of(RIGHT, RIGHT, RIGHT) == ["shotgun"]


def test_another_line_is_wrong() -> None:
    assert kinds_of(replace(RIGHT, place=Span("train.py", 14))) == ["line"]


def test_the_right_line_in_another_file_is_wrong() -> None:
    assert kinds_of(replace(RIGHT, place=Span("model.py", 12))) == ["line"]


def test_a_cut_on_the_right_line_is_enough() -> None:
    assert (
        faults_of(replace(RIGHT, place=Span("train.py", 14), cuts=(Cut("paused", Span("train.py", 13), "MatMul"),)))
        == []
    )


def test_cuts_on_many_lines_are_a_guess() -> None:
    cuts = tuple(Cut("paused", Span("train.py", line), "MatMul") for line in (13, 14, 15, 16))
    assert kinds_of(replace(RIGHT, cuts=cuts)) == ["shotgun"]


def test_a_long_span_is_no_answer() -> None:
    assert kinds_of(replace(RIGHT, place=Span("train.py", 12, 1, 17, 1))) == ["span"]


def test_a_healthy_source_must_not_be_named() -> None:
    head = replace(RIGHT, sources=(Source("model.head.kernel"),))
    assert kinds_of(RIGHT, head) == ["healthy"]
    assert faults_of(RIGHT, replace(head, severity=Severity.NOTE)) == []


def test_a_control_draws_at_most_notes() -> None:
    assert faults_of(case=CONTROL) == []
    assert faults_of(replace(RIGHT, severity=Severity.NOTE), case=CONTROL) == []
    assert kinds_of(replace(RIGHT, severity=Severity.WARNING), case=CONTROL) == ["control"]


@pytest.mark.parametrize(
    ("expected", "reported", "holds"),
    [
        ("dense.kernel", "self.dense.kernel", True),
        ("net[0].weight", "params['net'][0]['weight']", True),
        ("net[0].weight", "net[1].weight", False),
        ("outKernel", "model.out_kernel", True),
        ("kernel", "bias", False),
        ("x", "a.b.c.d.e.f.g.x", False),
    ],
)
def test_names_are_compared_by_their_words(expected: str, reported: str, holds: bool) -> None:
    assert is_same(expected, reported) is holds


PLAIN = Finished(status=1, out="loss 1.0\n", err="Traceback ...\nValueError: no gradients\n", folder=Path())


@pytest.mark.parametrize(
    ("observed", "faults"),
    [
        (PLAIN, 0),
        (replace(PLAIN, err="a finding\n" + PLAIN.err + "1 question\n"), 0),
        (replace(PLAIN, status=0), 1),
        (replace(PLAIN, out="loss 1.1\n"), 1),
        (replace(PLAIN, err="AttributeError: ours\n"), 1),
    ],
)
def test_a_program_that_ran_differently_is_told(observed: Finished, faults: int) -> None:
    assert len(judge_transparency(PLAIN, observed)) == faults

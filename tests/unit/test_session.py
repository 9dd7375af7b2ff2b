"""What a session makes of the questions of a run."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

import gradwhy.diagnose
from gradwhy.backends.contract import Answer
from gradwhy.flow import Asked, Cut, Finding, FlowGraph, Place, Question, Report, Severity, Source, Span, Status, Text
from gradwhy.session import MOST_EXPLAINED, MOST_PATTERNS, Session
from source_texts import given

OK, NONE, ZERO, NAN, ERROR = Status.OK, Status.NONE, Status.ZERO, Status.NAN, Status.ERROR


def question(statuses: Sequence[Status], *, line: int = 5, function: str = "<module>") -> Question:
    asked = tuple(Asked(Source(f"w{index}"), index, status) for index, status in enumerate(statuses))
    place = Place(Span("train.py", line, 1, line, 20), function)
    return Question("tape.gradient", "tensorflow", (place,), 9, "loss", (7,), asked)


class Backend:
    """Asks as a backend does, and counts how often the dear work is done."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.built: list[bool] = []

    def ask(self, *statuses: Status, key: str = "a", line: int = 5, function: str = "<module>") -> None:
        def build(with_graph: bool) -> tuple[Question, FlowGraph | None]:
            self.built.append(with_graph)
            return question(statuses, line=line, function=function), FlowGraph() if with_graph else None

        self.session.answered(Answer("tape.gradient", "tensorflow", key, statuses, build))


def explained(question: Question, graph: FlowGraph, number: int, first_id: int = 0) -> list[Finding]:
    """One finding for each kind of answer that is not a gradient."""
    found: list[Finding] = []
    for status in dict.fromkeys(one.status for one in question.asked if one.status is not OK):
        sources = tuple(one.source for one in question.asked if one.status is status)
        severity = Severity.ERROR if status is NAN else Severity.WARNING
        place = Span("train.py", 3, 5, 3, 9)
        cuts = (Cut("outside-tape", Span("train.py", 2, 1, 2, 4), "MatMul"),)
        headline = Text("headline/none")
        found.append(
            Finding(
                first_id + len(found),
                number,
                "outside-tape",
                severity,
                status,
                sources,
                "loss",
                1,
                place,
                headline,
                cuts=cuts,
            )
        )
    return found


@pytest.fixture(autouse=True)
def diagnosis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradwhy.diagnose, "explain", explained)
    given("".join(f"line {number}\n" for number in range(1, 10)), "train.py")


def session(**listeners: object) -> Session:
    return Session("train.py", ["--fast"], **listeners)  # type: ignore[arg-type]


def test_repeated_question_is_explained_once_and_counted() -> None:
    told: list[Finding] = []
    backend = Backend(session(on_finding=told.append))
    for _ in range(5):
        backend.ask(OK, NONE)
    report = backend.session.report()
    assert backend.built == [True]
    assert len(told) == len(report.findings) == 1
    assert report.findings[0].times == 5
    (asked,) = report.questions
    assert asked.times == 5
    assert [one.outcomes for one in asked.sources] == [{"ok": 5}, {"none": 5}]
    assert [one.first_wrong for one in asked.sources] == [None, 1]


def test_healthy_question_is_named_without_its_graph() -> None:
    backend = Backend(session())
    backend.ask(OK)
    backend.ask(OK)
    assert backend.built == [False]
    assert backend.session.report().questions[0].sources[0].name == "w0"


def test_question_that_goes_wrong_later_says_when() -> None:
    backend = Backend(session())
    backend.ask(OK, OK)
    backend.ask(OK, OK)
    backend.ask(NONE, OK)
    assert backend.built == [False, True]
    one = backend.session.report().questions[0].sources[0]
    assert (one.status, one.outcomes, one.first_wrong) == (OK, {"ok": 2, "none": 1}, 3)


def test_same_key_with_other_sources_is_another_question() -> None:
    backend = Backend(session())
    backend.ask(OK)
    backend.ask(OK, OK)
    assert [len(asked.sources) for asked in backend.session.report().questions] == [1, 2]


def test_source_that_is_lost_later_is_a_finding_of_its_own() -> None:
    backend = Backend(session())
    backend.ask(NONE, OK)
    backend.ask(NONE, NONE)
    backend.ask(OK, NAN)
    first, second, third = backend.session.report().findings
    assert [f.id for f in (first, second, third)] == [0, 1, 2]
    assert [source.name for source in second.sources] == ["w0", "w1"]
    assert third.symptom is NAN


def test_known_loss_beside_another_one_is_not_told_again() -> None:
    backend = Backend(session())
    backend.ask(NONE, OK)
    backend.ask(NONE, NAN)
    assert [finding.symptom for finding in backend.session.report().findings] == [NONE, NAN]
    assert [finding.times for finding in backend.session.report().findings] == [2, 1]


def test_known_losses_in_another_combination_are_nothing_to_explain() -> None:
    backend = Backend(session())
    backend.ask(NONE, OK)
    backend.ask(OK, NONE)
    backend.ask(NONE, NONE)
    assert backend.built == [True, True]
    assert len(backend.session.report().findings) == 2


def test_number_of_explained_answers_is_bounded() -> None:
    backend = Backend(session())
    for index in range(2 * MOST_EXPLAINED):
        backend.ask(*(NONE if i == index else OK for i in range(2 * MOST_EXPLAINED)))
    assert len(backend.built) == MOST_EXPLAINED


def test_outcomes_are_exact_when_answers_are_counted_source_by_source() -> None:
    backend = Backend(session())
    for number in range(3 * MOST_PATTERNS):
        backend.ask(*(NONE if number >> bit & 1 else OK for bit in range(8)))
    sources = backend.session.report().questions[0].sources
    for bit, one in enumerate(sources):
        wrong = sum(number >> bit & 1 for number in range(3 * MOST_PATTERNS))
        assert one.outcomes.get("none", 0) == wrong
        assert one.outcomes["ok"] == 3 * MOST_PATTERNS - wrong


def test_source_that_got_a_gradient_in_another_repetition_is_only_noted() -> None:
    backend = Backend(session())
    backend.ask(NONE)
    assert backend.session.report().findings[0].severity is Severity.WARNING
    backend.ask(OK)
    assert backend.session.report().findings[0].severity is Severity.NOTE


def test_source_that_had_a_gradient_until_it_lost_it_for_good_is_no_note() -> None:
    backend = Backend(session())
    backend.ask(OK)
    backend.ask(NONE)
    assert backend.session.report().findings[0].severity is Severity.WARNING
    backend.ask(OK)
    assert backend.session.report().findings[0].severity is Severity.NOTE


def test_one_source_that_never_got_a_gradient_keeps_the_severity() -> None:
    backend = Backend(session())
    backend.ask(NONE, NONE)
    backend.ask(OK, NONE)
    assert backend.session.report().findings[0].severity is Severity.WARNING


def test_nan_stays_an_error_however_many_gradients_were_fine() -> None:
    backend = Backend(session())
    backend.ask(OK)
    backend.ask(NAN)
    assert backend.session.report().findings[0].severity is Severity.ERROR


def raised(problem: Exception) -> Exception:
    def inner() -> None:
        raise problem

    try:
        inner()
    except type(problem) as caught:
        return caught
    raise AssertionError


FUNCTION = raised.__code__.co_qualname


@pytest.mark.parametrize(
    ("problem", "function", "severity"),
    [
        (ValueError("no gradient"), FUNCTION, Severity.ERROR),
        (ValueError("no gradient"), "elsewhere", Severity.WARNING),
        (FileNotFoundError("checkpoint"), FUNCTION, Severity.WARNING),
    ],
)
def test_exception_that_follows_a_lost_gradient_makes_it_an_error(
    problem: Exception, function: str, severity: Severity
) -> None:
    backend = Backend(session())
    backend.ask(NONE, function=function)
    backend.session.ended(1, raised(problem))
    assert backend.session.report().findings[0].severity is severity


def test_exception_after_a_later_healthy_question_has_another_reason() -> None:
    backend = Backend(session())
    backend.ask(NONE, function=FUNCTION)
    backend.ask(OK, key="b", function=FUNCTION)
    backend.session.ended(1, raised(ValueError("x")))
    assert backend.session.report().findings[0].severity is Severity.WARNING


def test_exception_of_the_question_itself_makes_it_an_error_wherever_it_arrives() -> None:
    backend = Backend(session())
    backend.ask(NONE, function="elsewhere")
    problem = raised(ValueError("No gradients provided for any variable."))
    backend.session.escaped(problem)
    backend.session.ended(1, problem)
    assert backend.session.report().findings[0].severity is Severity.ERROR


def test_exception_raised_from_that_of_the_question_counts_as_it() -> None:
    backend = Backend(session())
    backend.ask(NONE, function="elsewhere")
    problem = raised(ValueError("No gradients"))
    backend.session.escaped(problem)
    outer = RuntimeError("training failed")
    outer.__cause__ = problem
    backend.session.ended(1, outer)
    assert backend.session.report().findings[0].severity is Severity.ERROR


def test_exception_that_the_program_caught_is_no_reason() -> None:
    backend = Backend(session())
    backend.ask(NONE, function="elsewhere")
    backend.session.escaped(raised(ValueError("x")))
    backend.session.ended(0)
    assert backend.session.report().findings[0].severity is Severity.WARNING


def test_report_says_what_ran_and_how_it_ended() -> None:
    backend = Backend(session(language="zh"))
    backend.session.attached("tensorflow", "2.21.0")
    backend.ask(NONE)
    assert backend.session.report().exit_status is None
    report = backend.session.ended(3)
    assert (report.program, report.arguments, report.exit_status) == ("train.py", ("--fast",), 3)
    assert (report.frameworks, report.language) == ({"tensorflow": "2.21.0"}, "zh")
    assert report.process is not None and report.process.pid == os.getpid()


def test_lines_around_every_span_are_quoted() -> None:
    backend = Backend(session())
    backend.ask(NONE)
    (file,) = backend.session.report().files.values()
    assert file.lines == {str(number): f"line {number}" for number in range(1, 6)}
    assert len(file.sha256) == 64


def test_lines_of_a_library_are_not_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = Backend(session())

    def build(_: bool) -> tuple[Question, FlowGraph]:
        return question([NONE]), FlowGraph()

    def in_library(*given: object) -> list[Finding]:
        return [replace(explained(*given)[0], place=Span(os.__file__, 3), cuts=())]  # type: ignore[arg-type]

    monkeypatch.setattr(gradwhy.diagnose, "explain", in_library)
    backend.session.answered(Answer("tape.gradient", "tensorflow", "a", (NONE,), build))
    assert backend.session.report().findings
    assert not backend.session.report().files


@pytest.mark.parametrize(
    ("line", "comment", "is_silent"),
    [
        (3, "# gradwhy: ignore[outside-tape]", True),
        (3, "# gradwhy: ignore", True),
        (3, "#gradwhy:ignore", True),
        (3, "# 静音 gradwhy", False),
        (3, "# gradwhy: ignore[detached]", False),
        (3, "# gradwhy: ignore[detached, outside-tape]", True),
        (2, "# gradwhy: ignore[outside-tape]", True),
        (4, "# gradwhy: ignore", False),
        (3, "# gradwhy: ignored", False),
        (3, "# gradwhy: ignore[outside-tape", False),
        (3, "# noqa  # gradwhy: ignore[detached]  # gradwhy: ignore[outside-tape]", True),
    ],
)
def test_comment_on_the_line_of_the_place_or_a_cut_silences(line: int, comment: str, is_silent: bool) -> None:
    lines = [f"变量 = {number}" for number in range(1, 10)]
    lines[line - 1] += f"  {comment}"
    given("\n".join(lines), "train.py")
    told: list[Finding] = []
    backend = Backend(session(on_finding=told.append))
    backend.ask(NONE)
    assert (not told) is is_silent
    assert len(backend.session.report().findings) == len(told)


@pytest.mark.parametrize(
    ("options", "count"),
    [({"select": ["outside-tape"]}, 1), ({"select": ["detached"]}, 0), ({"ignore": ["outside-tape"]}, 0)],
)
def test_causes_are_selected_and_ignored(options: dict[str, list[str]], count: int) -> None:
    backend = Backend(session(**options))
    backend.ask(NONE)
    assert len(backend.session.report().findings) == count
    assert backend.session.report().questions[0].sources[0].status is NONE


def test_every_finding_brings_the_report_up_to_date() -> None:
    reports: list[Report] = []
    backend = Backend(session(on_change=reports.append))
    backend.ask(OK)
    backend.ask(NONE)
    backend.ask(NONE)
    backend.ask(NONE, key="b")
    backend.session.ended(0)
    assert [len(report.findings) for report in reports] == [1, 2, 2]
    assert reports[-1].exit_status == 0


def test_failure_of_the_diagnosis_is_told_once_and_the_run_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> list[Finding]:
        raise LookupError("no cause claims this")

    monkeypatch.setattr(gradwhy.diagnose, "explain", broken)
    warnings: list[str] = []
    backend = Backend(session(on_warning=warnings.append))
    backend.ask(NONE)
    backend.ask(NONE, key="b")
    assert warnings == ["explaining a question failed: LookupError: no cause claims this"]
    report = backend.session.report()
    assert report.warnings == tuple(warnings)
    assert [asked.sources[0].status for asked in report.questions] == [NONE, NONE]


def test_failure_of_a_listener_does_not_reach_the_program() -> None:
    def broken(_: object) -> None:
        raise OSError("disk full")

    backend = Backend(session(on_finding=broken, on_change=broken, on_warning=broken))
    backend.ask(NONE)
    backend.session.failed("tensorflow.op", ValueError("x"))
    assert "reporting failed: OSError: disk full" in backend.session.report().warnings


def test_stop_of_the_program_passes_through() -> None:
    class Stop(BaseException):
        pass

    def stop(_: object) -> None:
        raise Stop

    backend = Backend(session(on_finding=stop))
    with pytest.raises(Stop):
        backend.ask(NONE)
    assert len(backend.session.report().findings) == 1
    backend.ask(OK, key="b")
    assert len(backend.session.report().questions) == 2


def test_failure_of_the_backend_is_raised_to_its_hook() -> None:
    one = session()

    def build(_: bool) -> tuple[Question, FlowGraph | None]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        one.answered(Answer("tape.gradient", "tensorflow", "a", (NONE,), build))
    Backend(one).ask(NONE, key="b")
    assert len(one.report().questions) == 1


def test_question_of_our_own_work_is_not_counted() -> None:
    one = session()
    inner = Backend(one)

    def build(_: bool) -> tuple[Question, FlowGraph]:
        inner.ask(NONE, key="inner")
        return question([NONE]), FlowGraph()

    one.answered(Answer("tape.gradient", "tensorflow", "a", (NONE,), build))
    assert len(one.report().questions) == 1
    inner.ask(NONE, key="inner")
    assert len(one.report().questions) == 2


def test_threads_lose_no_question() -> None:
    backend = Backend(session())
    start = threading.Barrier(4)

    def work(name: str) -> None:
        start.wait()
        for number in range(200):
            backend.ask(OK if number % 2 else NONE)
            backend.ask(OK, key=name)

    in_threads([lambda name=str(number): work(name) for number in range(4)])
    by_times = sorted(asked.times for asked in backend.session.report().questions)
    assert by_times == [200, 200, 200, 200, 800]
    assert len(backend.session.report().findings) == 1


def in_threads(work: Sequence[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=one) for one in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_listener_that_waits_for_another_thread_does_not_stop_it() -> None:
    done = threading.Event()

    def wait_for_other(_: object) -> None:
        other = threading.Thread(target=lambda: (backend.ask(OK, key="other"), done.set()))
        other.start()
        assert done.wait(20)

    backend = Backend(session(on_finding=wait_for_other))
    backend.ask(NONE)
    assert done.is_set()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_forked_child_leaves_the_report_to_its_parent() -> None:
    reports: list[Report] = []
    one = session(on_change=reports.append)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        Backend(one).ask(NONE)
        os.write(writer, f"{len(reports)} {one.is_own_process}".encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 100) == b"0 False"
    Backend(one).ask(NONE)
    assert len(reports) == 1


@pytest.mark.parametrize(
    ("name", "given_rank", "rank"), [("RANK", "3", 3), ("SLURM_PROCID", "0", 0), ("RANK", "x", None)]
)
def test_rank_is_told(name: str, given_rank: str, rank: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.setenv(name, given_rank)
    process = session().report().process
    assert process is not None and process.rank == rank

"""Real programs that lost a gradient, and controls that did not: the right cause at the right line, or silence."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

import pytest

from forkserver import Finished, ForkServer
from gradwhy.flow import Report, Text, from_json
from gradwhy.texts.catalogs import template
from gradwhy.texts.filling import FillError, fill
from judging import Case, judge, judge_transparency, loud, read_cases

HERE = Path(__file__).parent
CASES = {case.id: case for manifest in sorted(HERE.glob("*/manifest.json")) for case in read_cases(manifest)}
PENDING = tomllib.loads((HERE / "pending.toml").read_text(encoding="utf-8"))
FIXED = ".fixed"
TIMEOUT = 180


@dataclass(frozen=True, slots=True)
class Runs:
    plain: Future[Finished]
    observed: Future[Finished]


class Bank:
    """Runs the selected programs ahead of the tests that ask for them."""

    def __init__(self, server_of: Callable[[str], ForkServer], wanted: dict[str, list[Path]]) -> None:
        self._server_of = server_of
        self._wanted = wanted
        self._runs: dict[Path, Runs] = {}

    def run(self, framework: str, program: Path) -> Runs:
        if program not in self._runs:
            for file in self._wanted[framework]:
                self._runs[file] = Runs(
                    *(
                        self._server_of(framework).submit(f"entries:{how}", file, name=file.name, timeout=TIMEOUT)
                        for how in ("plain", "observed")
                    )
                )
        return self._runs[program]


def program_of(case: Case, name: str) -> Path:
    program = case.fixed_file if name.endswith(FIXED) else case.file
    assert program is not None
    return program


@pytest.fixture(scope="session")
def bank(server_of: Callable[[str], ForkServer], request: pytest.FixtureRequest) -> Bank:
    wanted: dict[str, list[Path]] = {}
    for item in request.session.items:
        if item.path == Path(__file__) and hasattr(item, "callspec"):
            name = item.callspec.params["name"]
            case = CASES[name.removesuffix(FIXED)]
            wanted.setdefault(case.framework, []).append(program_of(case, name))
    return Bank(server_of, wanted)


def parameters(suffix: str = "") -> list[object]:
    return [
        pytest.param(case.framework, case.id + suffix, id=case.id + suffix)
        for case in CASES.values()
        if not suffix or case.fixed_file
    ]


@pytest.mark.parametrize(("framework", "name"), parameters())
def test_case_is_answered(framework: str, name: str, bank: Bank) -> None:
    case, runs = CASES[name], bank.run(framework, CASES[name].file)
    observed = runs.observed.result()
    faults = judge_transparency(runs.plain.result(), observed)
    report = report_of(observed)
    faults += judge(case, report) if isinstance(report, Report) else [report]
    settle(name, faults)
    if isinstance(report, Report):
        assert not [lacking for text in texts_of(report) for lacking in unsaid(text)]


@pytest.mark.parametrize(("framework", "name"), parameters(FIXED))
def test_fixed_program_draws_no_finding(framework: str, name: str, bank: Bank) -> None:
    case = CASES[name.removesuffix(FIXED)]
    runs = bank.run(framework, program_of(case, name))
    observed = runs.observed.result()
    faults = judge_transparency(runs.plain.result(), observed)
    report = report_of(observed)
    faults += [f"fixed: {f.cause} is reported" for f in loud(report)] if isinstance(report, Report) else [report]
    settle(name, faults)


def test_pending_names_cases_only() -> None:
    assert {name.removesuffix(FIXED) for name in PENDING} <= set(CASES)
    assert all(isinstance(reason, str) and reason for reason in PENDING.values())


def report_of(observed: Finished) -> Report | str:
    """The report of a run, or why there is none."""
    try:
        return from_json(Report, json.loads((observed.folder / "report.json").read_text(encoding="utf-8")))
    except (OSError, ValueError) as problem:
        return f"no report: {problem}; {observed.err.strip().splitlines()[-1:]}"


def test_every_word_of_every_finding_can_be_said() -> None:
    """That a text lacks a value shows only where it is said: each case's report is read for it in both languages."""
    assert unsaid(Text("integer-dtype/labels/source")) == [
        "en: integer-dtype/labels/source",
        "zh: integer-dtype/labels/source",
    ]
    assert not unsaid(Text("integer-dtype/labels/source", {"source": "x", "dtype": "int32"}))


def unsaid(text: Text) -> list[str]:
    """The languages in which a text has no words for what it is to say."""
    found = ((language, template(text.key, language)) for language in ("en", "zh"))
    return [f"{language}: {text.key}" for language, words in found if words is None or not _fits(words, text, language)]


def _fits(words: str, text: Text, language: str) -> bool:
    try:
        fill(words, text.values, language)
    except FillError:
        return False
    return True


def texts_of(report: Report) -> list[Text]:
    return [
        text
        for finding in report.findings
        for text in (finding.headline, finding.help, *finding.notes, *(label.text for label in finding.labels))
    ]


def settle(name: str, faults: list[str]) -> None:
    reason = PENDING.get(name)
    if reason is None:
        assert not faults, "\n".join(faults)
    elif faults:
        pytest.xfail(f"{reason}: {'; '.join(faults)}")
    else:
        pytest.fail(f"{name} passes: remove it from pending.toml")

"""Every backend finds the same in the same program: statuses, cause, line, path and barriers."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from forkserver import Finished, ForkServer
from gradwhy.diagnose.paths import Path as FlowPath
from gradwhy.diagnose.paths import cheapest
from gradwhy.diagnose.recording import Recording
from gradwhy.flow import AskedSource, Finding, FlowGraph, Question, Report, Status, from_json, to_json
from judging import LOUD, is_about, is_same, judge_transparency

HERE = Path(__file__).parent
FRAMEWORKS = ("tensorflow", "torch", "jax")
TABLES: dict[str, dict[str, Any]] = tomllib.loads((HERE / "expected.toml").read_text(encoding="utf-8"))
MARK = re.compile(r"# (cut|place)$")
PRINTED = re.compile(r"^(\w+) (None|-?[\d.e+-]+|nan|inf)$", re.MULTILINE)
ANY = "any"


@dataclass(frozen=True, slots=True)
class Expected:
    """What a scenario's program must yield under one framework."""

    sources: dict[str, Status]
    causes: frozenset[str]
    has_path: bool | None
    barriers: list[list[str]] | None
    lines: frozenset[int] | None

    @property
    def lost(self) -> dict[str, Status]:
        return {name: status for name, status in self.sources.items() if status is not Status.OK}


def program_of(scenario: str, framework: str) -> Path:
    return HERE / scenario / f"{framework}.py"


def expected_of(scenario: str, framework: str) -> Expected:
    table = {**TABLES[scenario], **TABLES[scenario].get(framework, {})}
    has_path, barriers = table.get("has_path", ANY), table.get("barriers", ANY)
    lines = program_of(scenario, framework).read_text(encoding="utf-8").splitlines()
    marked = frozenset(number for number, line in enumerate(lines, 1) if MARK.search(line))
    return Expected(
        sources={name: Status(status) for name, status in table["sources"].items()},
        causes=frozenset(table["causes"]),
        has_path=None if has_path == ANY else has_path,
        barriers=None if barriers == ANY else barriers,
        lines=None if table.get("lines") == ANY else marked,
    )


@dataclass(frozen=True, slots=True)
class Runs:
    plain: Future[Finished]
    observed: Future[Finished]


@pytest.fixture(scope="session")
def runs_of(server_of: Callable[[str], ForkServer]) -> Callable[[str, str], Runs]:
    """The plain and the observed run of a scenario's program; those of one framework are started together."""
    started: dict[tuple[str, str], Runs] = {}

    def runs(scenario: str, framework: str) -> Runs:
        if (scenario, framework) not in started:
            server = server_of(framework)
            for name in TABLES:
                program = program_of(name, framework)
                plain, observed = (server.submit(f"entries:{how}", program) for how in ("plain", "keeping_graphs"))
                started[name, framework] = Runs(plain, observed)
        return started[scenario, framework]

    return runs


pytestmark = [pytest.mark.parametrize("framework", FRAMEWORKS), pytest.mark.parametrize("scenario", TABLES)]


def test_program_gets_what_is_claimed(scenario: str, framework: str, runs_of: Callable[[str, str], Runs]) -> None:
    expected, plain = expected_of(scenario, framework), runs_of(scenario, framework).plain.result()
    printed = {name: status_of(text) for name, text in PRINTED.findall(plain.out)}
    for name, status in expected.sources.items():
        assert printed.get(name, Status.ERROR) is status, plain.out + plain.err
    assert (plain.status != 0) == (Status.ERROR in expected.sources.values()), plain.err


def test_program_runs_as_without_gradwhy(scenario: str, framework: str, runs_of: Callable[[str, str], Runs]) -> None:
    runs = runs_of(scenario, framework)
    assert judge_transparency(runs.plain.result(), runs.observed.result()) == []


def test_sources_have_their_statuses(scenario: str, framework: str, runs_of: Callable[[str, str], Runs]) -> None:
    report = report_of(runs_of(scenario, framework))
    for name, status in expected_of(scenario, framework).sources.items():
        seen = {outcome for source in asked(report, name) for outcome in source.outcomes}
        assert status in seen, f"{name} is {seen or 'never asked about'}"
        if status is Status.OK:
            assert seen == {Status.OK}


def test_cause_and_line_are_named(scenario: str, framework: str, runs_of: Callable[[str, str], Runs]) -> None:
    expected, report = expected_of(scenario, framework), report_of(runs_of(scenario, framework))
    for name, status in expected.lost.items():
        findings = findings_about(report, name)
        assert findings, f"nothing is said about {name}"
        for finding in findings:
            assert (finding.cause, finding.symptom) in {(cause, status) for cause in expected.causes}
            if expected.lines is not None:
                assert finding.place is not None and finding.place.line in expected.lines


def test_nothing_is_said_about_a_healthy_source(
    scenario: str, framework: str, runs_of: Callable[[str, str], Runs]
) -> None:
    expected, report = expected_of(scenario, framework), report_of(runs_of(scenario, framework))
    healthy = [name for name, status in expected.sources.items() if status is Status.OK]
    assert [f.cause for name in healthy for f in findings_about(report, name) if f.severity in LOUD] == []
    if not expected.lost:
        assert report.findings == ()


def test_path_and_barriers_are_found(scenario: str, framework: str, runs_of: Callable[[str, str], Runs]) -> None:
    expected = expected_of(scenario, framework)
    for name in expected.lost:
        paths = paths_of(runs_of(scenario, framework), name)
        assert paths, f"no question about {name} was explained"
        for path in paths:
            if expected.has_path is not None:
                assert (path is not None) is expected.has_path
            if expected.barriers is not None:
                assert barriers_of(path) in expected.barriers


def test_report_and_graph_survive_json(scenario: str, framework: str, runs_of: Callable[[str, str], Runs]) -> None:
    runs = runs_of(scenario, framework)
    report = report_of(runs)
    assert from_json(Report, json.loads(json.dumps(to_json(report), allow_nan=False))) == report
    graphs = [graph for _, graph in explained(runs)]
    for finding in report.findings:
        assert finding.graph in graphs
    for graph in graphs:
        assert_is_sound(graph)


# --- reading what came out


def status_of(printed: str) -> Status:
    if printed == "None":
        return Status.NONE
    norm = float(printed)
    if not math.isfinite(norm):
        return Status.NAN
    return Status.OK if norm else Status.ZERO


def report_of(runs: Runs) -> Report:
    observed = runs.observed.result()
    file = observed.folder / "report.json"
    assert file.exists(), observed.err
    report = from_json(Report, json.loads(file.read_text(encoding="utf-8")))
    assert report.warnings == (), observed.err
    return report


def asked(report: Report, name: str) -> list[AskedSource]:
    """The sources of that name of all questions."""
    sources = [source for question in report.questions for source in question.sources]
    return [s for s in sources if any(is_same(name, given) for given in (s.name, *s.aliases))]


def findings_about(report: Report, name: str) -> list[Finding]:
    return [f for f in report.findings if any(is_about(name, source) for source in f.sources)]


def explained(runs: Runs) -> list[tuple[Question, FlowGraph]]:
    """Every question that was explained and its flow graph, read back from JSON."""
    observed = runs.observed.result()
    raw = json.loads((observed.folder / "asked.json").read_text(encoding="utf-8"))
    return [(from_json(Question, question), from_json(FlowGraph, graph)) for question, graph in raw]


def paths_of(runs: Runs, name: str) -> list[FlowPath | None]:
    """For each explained question about the source of that name, the cheapest path."""
    found = []
    for question, graph in explained(runs):
        for one in question.asked:
            if is_about(name, one.source) and one.status is not Status.OK:
                wanted = frozenset({one.value} if one.value is not None else ())
                found.append(cheapest(Recording(graph, question), wanted).get(one.value) if wanted else None)
    return found


def barriers_of(path: FlowPath | None) -> list[str]:
    """The barriers of a path's cuts from the source to the target, runs of one barrier told once."""
    regions = path.regions if path else ()
    return [barrier for barrier, _ in groupby(region.barrier.value for region in regions)]


def assert_is_sound(graph: FlowGraph) -> None:
    """Every number in a graph means something in it, and time runs forward."""
    values = {value.id for value in graph.values}
    scopes = {scope.id for scope in graph.scopes}
    assert len(values) == len(graph.values) and len(scopes) == len(graph.scopes)
    assert len({op.id for op in graph.ops}) == len(graph.ops)
    for op in graph.ops:
        assert {edge.value for edge in op.inputs} | set(op.outputs) <= values
        assert set(op.scopes) <= scopes
    for scope in graph.scopes:
        assert set(scope.pauses) <= scopes
        assert scope.end is None or scope.start <= scope.end

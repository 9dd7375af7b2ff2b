"""Whatever hook of ours fails, the program does not notice: the hooks come off, one warning says so."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

import pytest

from forkserver import INTERRUPTED, Finished, ForkServer
from gradwhy.flow import Report, from_json
from judging import judge_transparency

PROGRAMS = Path(__file__).parent / "programs"
FRAMEWORKS = ("tensorflow", "torch", "jax")


@dataclass(frozen=True, slots=True)
class Hook:
    """A hook, and a program that calls it so many times."""

    name: str
    program: Path
    calls: int


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a framework's hooks, and how the programs end when nothing is observed."""

    server: ForkServer
    hooks: tuple[Hook, ...]
    plain: dict[Path, Finished]

    def inject(self, exception: str, call_of: Callable[[Hook], int]) -> dict[Hook, Future[Finished]]:
        return {
            hook: self.server.submit("injecting:injected", hook.program, hook.name, str(call_of(hook)), exception)
            for hook in self.hooks
            # Python interrupts no other thread than the main one. A new thread that dies before it has begun hangs its parent.
            if exception != "KeyboardInterrupt" or ".thread." not in hook.name
        }


@pytest.fixture(scope="module")
def known_of(server_of: Callable[[str], ForkServer]) -> Callable[[str], Known]:
    found: dict[str, Known] = {}

    def known(framework: str) -> Known:
        if framework not in found:
            found[framework] = discover(server_of(framework), sorted((PROGRAMS / framework).glob("*.py")))
        return found[framework]

    return known


def discover(server: ForkServer, programs: list[Path]) -> Known:
    """Every hook that some program calls, and the quickest of those programs."""
    plain = {program: server.submit("entries:plain", program) for program in programs}
    counted = {program: server.submit("injecting:discovering", program) for program in programs}
    hooks: dict[str, Hook] = {}
    for program, run in sorted(counted.items(), key=lambda pair: pair[1].result().seconds):
        for name, calls in json.loads((run.result().folder / "hooks.json").read_text(encoding="utf-8")).items():
            hooks.setdefault(name, Hook(name, program, calls))
    return Known(server, tuple(hooks.values()), {program: run.result() for program, run in plain.items()})


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_hooks_are_found(framework: str, known_of: Callable[[str], Known]) -> None:
    assert len(known_of(framework).hooks) > 3


@pytest.mark.parametrize(
    ("exception", "call_of"),
    [
        pytest.param("RuntimeError", lambda hook: 1, id="RuntimeError-first"),
        pytest.param("MemoryError", lambda hook: (hook.calls + 1) // 2, id="MemoryError-midway"),
        pytest.param("RecursionError", lambda hook: hook.calls, id="RecursionError-last"),
    ],
)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_failing_hook_is_not_noticed_by_the_program(
    framework: str, exception: str, call_of: Callable[[Hook], int], known_of: Callable[[str], Known]
) -> None:
    known = known_of(framework)
    faults = []
    for hook, run in known.inject(exception, call_of).items():
        told = failure_faults(known.plain[hook.program], run.result(), hook)
        faults += [f"{hook.name} in {hook.program.name}: {fault}" for fault in told]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_an_interrupt_in_a_hook_reaches_the_program(framework: str, known_of: Callable[[str], Known]) -> None:
    faults = []
    for hook, run in known_of(framework).inject("KeyboardInterrupt", lambda hook: 1).items():
        faults += [f"{hook.name} in {hook.program.name}: {fault}" for fault in interrupt_faults(run.result())]
    assert not faults, "\n".join(faults)


def failure_faults(plain: Finished, observed: Finished, hook: Hook) -> list[str]:
    """What a failure of ours has changed for the program, or left behind."""
    faults = judge_transparency(neutral(plain), neutral(observed))
    failures = failures_of(observed)
    if not failures:
        return [*faults, "the failure is not taken"]
    for failure in failures:
        if failure["are_on"] or failure["left"]:
            faults.append(f"left behind: {failure['left']}")
    warnings = report_of(observed).warnings
    if len(warnings) != 1 or hook.name not in warnings[0]:
        faults.append(f"the report warns: {warnings}")
    told = [line for line in observed.err.splitlines() if hook.name in line]
    if len(told) != 1:
        faults.append(f"standard error warns {len(told)} times")
    return faults


def interrupt_faults(observed: Finished) -> list[str]:
    faults = []
    if observed.status != INTERRUPTED and "KeyboardInterrupt" not in observed.out + observed.err:
        faults.append(f"the interrupt is lost: status {observed.status}")
    # Python itself never interrupts another thread than the main one, whose frames we take out.
    if observed.status == INTERRUPTED and "gradwhy/backends" in observed.err:
        faults.append("our frames are shown")
    faults += [f"left behind: {failure['left']}" for failure in failures_of(observed) if failure["left"]]
    if report_of(observed).warnings:
        faults.append(f"the report warns: {report_of(observed).warnings}")
    return faults


def failures_of(observed: Finished) -> list[dict[str, list[str]]]:
    file = observed.folder / "injected.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else []


def report_of(observed: Finished) -> Report:
    return from_json(Report, json.loads((observed.folder / "report.json").read_text(encoding="utf-8")))


def neutral(finished: Finished) -> Finished:
    """The run with its own folder taken out of what it wrote."""
    folder = str(finished.folder)
    return Finished(
        finished.status, finished.out.replace(folder, ""), finished.err.replace(folder, ""), finished.folder
    )

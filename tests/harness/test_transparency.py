"""A program computes, prints, raises and exits as it does without gradwhy."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from forkserver import ENVIRONMENT, Finished, ForkServer
from judging import judge_transparency

PROGRAMS = Path(__file__).parent / "programs"
FRAMEWORKS = ("tensorflow", "torch", "jax")
CASES = [(framework, file.stem) for framework in FRAMEWORKS for file in sorted((PROGRAMS / framework).glob("*.py"))]


def told(finished: Finished) -> tuple[str, list[str]]:
    """Both streams, with the folder of the run made neutral; the second one as its lines."""
    folder = str(finished.folder)
    return finished.out.replace(folder, "FOLDER"), finished.err.replace(folder, "FOLDER").splitlines()


def missing_lines(wanted: list[str], lines: list[str]) -> list[str]:
    """What of `wanted` is not found in `lines`, in this order."""
    left = iter(lines)
    return [line for line in wanted if line.strip() and line not in left]


@pytest.mark.parametrize(("framework", "name"), CASES)
def test_program_runs_as_without_gradwhy(framework: str, name: str, server_of: Callable[[str], ForkServer]) -> None:
    program = PROGRAMS / framework / f"{name}.py"
    runs = [server_of(framework).submit(f"entries:{how}", program) for how in ("plain", "observed")]
    plain, observed = (run.result() for run in runs)
    (plain_out, plain_err), (out, err) = told(plain), told(observed)
    assert out == plain_out
    assert missing_lines(plain_err, err) == []
    assert judge_transparency(*(type(f)(f.status, "", f.err, f.folder) for f in (plain, observed))) == []
    assert not [line for line in err if line.lstrip().startswith("File ") and "/gradwhy/" in line]
    assert (observed.folder / "report.json").exists()


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_fresh_process_runs_as_without_gradwhy(framework: str, tmp_path: Path) -> None:
    """No fork, nothing imported ahead: the framework is imported, and observed, while the program runs."""
    shutil.copy(PROGRAMS / framework / "trains.py", tmp_path / "program.py")
    environment = {**os.environ, **ENVIRONMENT}
    outcomes = []
    for start in (["program.py"], ["-m", "gradwhy", "run", "program.py"]):
        run = subprocess.run(
            [sys.executable, *start], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        outcomes.append((run.returncode, run.stdout))
    assert outcomes[0] == outcomes[1]
    assert "1 question" in run.stderr or "questions" in run.stderr


def test_lines_in_another_order_are_missed() -> None:
    assert missing_lines(["a", "b"], ["a", "ours", "b"]) == []
    assert missing_lines(["a", "b"], ["b", "a"]) == ["b"]

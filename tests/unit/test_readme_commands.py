"""Every command that the front page shows is run as it is shown, or, where it would install for minutes, as far as that goes."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from forkserver import ENVIRONMENT

ROOT = Path(__file__).parents[2]
SHOWN = re.findall(r"^\$ (.+)$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
GRADWHY = Path(sys.executable).with_name("gradwhy")

TRAIN = """
import argparse

import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=1)
parser.add_argument("--steps", type=int, default=1)
given = parser.parse_args()
x = tf.Variable([0.5, -1.0])
with tf.GradientTape() as tape:
    loss = tf.reduce_sum(tf.round(x))
print(given.epochs, given.steps, tape.gradient(loss, x))
"""

RUN = {
    "gradwhy run examples/mask_outside_tape.py": (0, "x None"),
    "gradwhy run train.py --epochs 1": (0, "1 1 None"),
    "gradwhy run -m package.train": (0, "1 1 None"),
    "gradwhy run --format json --output report.json train.py": (0, "1 1 None"),
    "gradwhy causes": (0, "outside-tape"),
    "gradwhy explain outside-tape": (0, "## What happens"),
    "gradwhy report report.json": (0, "error[non-differentiable-op]: no gradient reaches `x`"),
    "gradwhy run --strict --format json --output gradients.json train.py --steps 2": (1, "1 2 None"),
}
"""The status of each command of ours, and what it prints."""

DRY = {
    "make run": "gradwhy run --prove --to-end 'examples/mask_outside_tape.py'",
    'make run SCRIPT=your_program.py ARGS="--epochs 1"': "gradwhy run  'your_program.py' --epochs 1",
    "make check": "pytest -m 'not frameworks'",
    "make test": "bin/pytest",
}
"""What each call of `make` runs in the end, once it has installed what it needs, which takes minutes."""

INSTALL = "pip install ."


def test_every_command_of_the_page_is_tried_here() -> None:
    assert set(SHOWN) == {*RUN, *DRY, INSTALL}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[str, subprocess.CompletedProcess[str]]:
    """The commands of ours, in the order of the page, in a folder with the programs that they name."""
    folder = tmp_path_factory.mktemp("readme")
    shutil.copytree(ROOT / "examples", folder / "examples")
    (folder / "package").mkdir()
    (folder / "package" / "__init__.py").touch()
    for place in (folder, folder / "package"):
        (place / "train.py").write_text(TRAIN, encoding="utf-8")
    environment = {**os.environ, **ENVIRONMENT, "PATH": f"{GRADWHY.parent}{os.pathsep}{os.environ['PATH']}"}
    return {
        command: subprocess.run(
            shlex.split(command), cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        for command in SHOWN
        if command in RUN
    } | {"folder": subprocess.CompletedProcess([str(folder)], 0)}


@pytest.mark.parametrize("framework", ["tensorflow"])
@pytest.mark.parametrize("command", RUN)
def test_command_of_ours_does_what_it_is_shown_for(
    command: str, framework: str, ran: dict[str, subprocess.CompletedProcess[str]]
) -> None:
    status, printed = RUN[command]
    assert ran[command].returncode == status, ran[command].stderr
    assert printed in ran[command].stdout


@pytest.mark.parametrize("framework", ["tensorflow"])
@pytest.mark.parametrize("name", ["report.json", "gradients.json"])
def test_report_is_written_where_the_page_says(
    name: str, framework: str, ran: dict[str, subprocess.CompletedProcess[str]]
) -> None:
    report = json.loads(Path(ran["folder"].args[0], name).read_text(encoding="utf-8"))
    assert [finding["cause"] for finding in report["findings"]] == ["non-differentiable-op"]


@pytest.mark.parametrize("command", DRY)
def test_make_ends_in_the_command_that_the_page_promises(command: str, tmp_path: Path) -> None:
    """Dry: `make` prints what it would run. Its recipes are what the project's own checks run."""
    make, *arguments = shlex.split(command)
    told = subprocess.run(
        [make, "--dry-run", f"VENV={tmp_path / 'new'}", *arguments],
        cwd=ROOT,
        env={key: value for key, value in os.environ.items() if not key.startswith("MAKE")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    assert "pip install" in told.stdout
    assert told.stdout.rstrip().split("\n")[-1].rstrip().endswith(DRY[command])
    assert not (tmp_path / "new").exists()


def test_what_is_installed_has_the_command_of_the_page() -> None:
    (entry,) = importlib.metadata.entry_points(group="console_scripts", name="gradwhy")
    assert callable(entry.load()) and GRADWHY.exists()


@pytest.mark.skipif(importlib.util.find_spec("hatchling") is None, reason="what builds the package is not installed")
def test_install_holds_every_page_and_runs(tmp_path: Path) -> None:
    """As shown, but into a folder, and with what is here already instead of from an index."""
    source, target = tmp_path / "clone", tmp_path / "installed"
    kept = shutil.ignore_patterns(".*_cache", ".git", ".venv", "__pycache__", "tests", "*.egg-info")
    shutil.copytree(ROOT, source, ignore=kept)
    without_index = ["--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--target", str(target)]
    installed = subprocess.run(
        [sys.executable, "-m", *shlex.split(INSTALL), *without_index],
        cwd=source,
        capture_output=True,
        text=True,
        check=False,
    )
    assert installed.returncode == 0, installed.stderr
    files = {path.relative_to(ROOT / "src") for path in (ROOT / "src" / "gradwhy").rglob("*") if path.is_file()}
    wanted = {path for path in files if "__pycache__" not in path.parts}
    assert {path for path in wanted if path.suffix == ".md"}
    assert [str(path) for path in sorted(wanted) if not (target / path).exists()] == []
    told = subprocess.run(
        [sys.executable, "-m", "gradwhy", "explain", "outside-tape"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(target), "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0 and "What happens" in told.stdout

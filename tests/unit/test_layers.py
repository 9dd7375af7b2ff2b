"""Who may import what, and that `import gradwhy` is cheap; each of these rules is seen to fail."""

from __future__ import annotations

import configparser
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "gradwhy"
CONTRACTS = ROOT / ".importlinter"

BREACHES = {
    "layers": ("flow/spans.py", "import gradwhy.source"),
    "explaining-knows-no-framework": ("diagnose/explain.py", "import torch"),
    "frameworks-only-in-backends": ("cli/run.py", "import tensorflow"),
    "backends-only-observe": ("backends/patches.py", "import gradwhy.render"),
    "backends-are-strangers": ("backends/torch/__init__.py", "import gradwhy.backends.jax"),
    "tensorflow-backend": ("backends/tensorflow/__init__.py", "import jax"),
    "torch-backend": ("backends/torch/__init__.py", "import keras"),
    "jax-backend": ("backends/jax/__init__.py", "import torch"),
}
"""For each contract a file, and a line that breaks it."""

HEAVY = ("tensorflow", "keras", "torch", "jax", "jaxlib", "numpy", "libcst", "rich", "click")


def python(*arguments: str, sources: Path) -> subprocess.CompletedProcess[str]:
    """Run Python on the package in `sources` instead of the installed one."""
    environment = {**os.environ, "PYTHONPATH": str(sources), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "200"}
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False)


def lint(sources: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    start = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    return python("-c", start, "--no-cache", "--no-logo", *arguments, str(CONTRACTS), sources=sources)


def copy_with(tmp_path: Path, file: str, line: str) -> Path:
    """A copy of the package in which `file` ends with `line`; the folder that it lies in."""
    shutil.copytree(SOURCES, tmp_path / "gradwhy", ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / "gradwhy" / file).open("a", encoding="utf-8") as stream:
        stream.write(f"\n{line}\n")
    return tmp_path


def contracts() -> set[str]:
    parser = configparser.ConfigParser()
    parser.read(CONTRACTS, encoding="utf-8")
    return {name.split(":")[2] for name in parser.sections() if name.startswith("importlinter:contract:")}


def test_the_layers_hold() -> None:
    told = lint(SOURCES.parent)
    assert told.returncode == 0, told.stdout + told.stderr


def test_every_contract_has_a_breach() -> None:
    assert contracts() == set(BREACHES)


@pytest.mark.parametrize("contract", BREACHES)
def test_a_contract_can_fail(contract: str, tmp_path: Path) -> None:
    told = lint(copy_with(tmp_path, *BREACHES[contract]), "--contract", contract)
    assert told.returncode == 1, told.stdout + told.stderr
    assert "BROKEN" in told.stdout


def test_a_package_without_a_layer_is_refused(tmp_path: Path) -> None:
    sources = copy_with(tmp_path, "version.py", "")
    (tmp_path / "gradwhy" / "helpers.py").touch()
    told = lint(sources, "--contract", "layers")
    assert told.returncode == 1
    assert "gradwhy.helpers" in told.stdout + told.stderr


def imported_by(sources: Path, statement: str) -> set[str]:
    """The heavy packages that Python has imported after `statement`."""
    told = python("-c", f"{statement}\nimport sys\nprint(*sys.modules)", sources=sources)
    assert told.returncode == 0, told.stderr
    return set(told.stdout.split()) & set(HEAVY)


def test_importing_gradwhy_imports_nothing_heavy() -> None:
    assert imported_by(SOURCES.parent, "import gradwhy") == set()


@pytest.mark.parametrize("package", ["numpy", "rich"])
def test_a_heavy_import_would_be_noticed(package: str, tmp_path: Path) -> None:
    pytest.importorskip(package)
    assert package in imported_by(copy_with(tmp_path, "__init__.py", f"import {package}"), "import gradwhy")


def test_diagnosing_imports_no_framework() -> None:
    assert not imported_by(SOURCES.parent, "import gradwhy.diagnose, gradwhy.render, gradwhy.causes") & {
        "tensorflow",
        "keras",
        "torch",
        "jax",
        "numpy",
    }

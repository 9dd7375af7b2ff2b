"""The front door: its help, its refusals, and what it does not import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gradwhy.cli.main import main
from gradwhy.version import __version__


def test_the_version_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"gradwhy {__version__}\n"


def test_the_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    bare = capsys.readouterr().out
    assert main(["--help"]) == 0
    assert capsys.readouterr().out == bare
    for command in ("run", "report", "explain", "causes"):
        assert f" {command} " in bare


def test_every_command_has_its_own_help(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("run", "report", "explain", "causes"):
        assert main([command, "--help"]) == 0
        assert f"gradwhy {command}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--nonsense"], "no such option"),
        (["check", "."], "no such command 'check'"),
        (["explain"], "missing argument 'CAUSE'"),
        (["explain", "frozen", "unused"], "got unexpected extra argument"),
        (["causes", "--lang", "fr"], "'fr' is not one of 'en', 'zh'"),
        (["run", "--watch-steps", "3", "x.py"], "no such option"),
        (["report"], "missing argument 'FILE...'"),
    ],
)
def test_a_wrong_request_is_one_line_on_standard_error_and_status_two(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("gradwhy: ") and shown.err.count("\n") == 1
    assert message in shown.err
    assert "--help`" in shown.err


def test_a_script_without_run_is_told_how_to_run_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train.py"]) == 2
    assert "to run a program: gradwhy run train.py" in capsys.readouterr().err


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "gradwhy", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"gradwhy {__version__}\n"


def imported_by(arguments: list[str], folder: Path) -> set[str]:
    """The modules that a command has imported when it ends."""
    script = (
        f"import sys\nfrom gradwhy.cli.main import main\nmain({arguments!r})\nprint(*sys.modules, file=sys.__stderr__)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=True)
    return set(done.stderr.split())


HEAVY = {"numpy", "libcst", "tensorflow", "torch", "jax", "pygments", "markdown_it", "rich.markdown"}


def test_no_command_imports_a_framework_or_an_editor(tmp_path: Path) -> None:
    for arguments in (["causes"], ["run", "--help"], ["explain", "no-such-cause"]):
        assert HEAVY & imported_by(arguments, tmp_path) == set()


def test_a_program_without_a_finding_costs_neither_a_console_nor_a_diagnosis(tmp_path: Path) -> None:
    (tmp_path / "plain.py").touch()
    modules = imported_by(["run", "plain.py"], tmp_path)
    assert {"rich.console", "rich.text", "gradwhy.render.terminal", "gradwhy.diagnose"} & modules == set()
    assert HEAVY & modules == set()


def test_the_version_costs_neither_rich_nor_the_texts(tmp_path: Path) -> None:
    modules = imported_by(["--version"], tmp_path)
    assert {"rich.console", "gradwhy.texts", "gradwhy.flow", "tomllib"} & modules == set()
    # The measure can fail: a command that shows a page does import them.
    assert {"rich.console", "gradwhy.texts"} <= imported_by(["explain", "frozen"], tmp_path)

"""What the front pages show is what happens: their commands run, and print what stands there."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "README.zh-CN.md", "CONTRIBUTING.md")
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)")
MAKE = re.compile(r"^(?:    |\$ )make (\w+)", re.MULTILINE)
EXAMPLE = "gradwhy run examples/mask_outside_tape.py"


@dataclass(frozen=True, slots=True)
class Shown:
    """A command of a page, and what the page says it prints; empty where it shows no output."""

    page: str
    command: str
    output: str


def shown_in(page: str) -> list[Shown]:
    found = []
    for block in BLOCK.findall((ROOT / page).read_text(encoding="utf-8")):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append(Shown(page, command, output))
    return found


SHOWN = [shown for page in PAGES for shown in shown_in(page)]
CHEAP = [s for s in SHOWN if re.match(r"gradwhy (causes|explain|--|run --help)", s.command)]


def run(command: str, language: str) -> subprocess.CompletedProcess[str]:
    """Run a command of ours as in a terminal of 80 columns without colour."""
    words = shlex.split(command)
    environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "LC_ALL": language, "TF_CPP_MIN_LOG_LEVEL": "3"}
    return subprocess.run(
        [sys.executable, "-m", *words], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


def language_of(page: str) -> str:
    return "zh_CN.UTF-8" if ".zh" in page else "C.UTF-8"


@pytest.mark.parametrize("shown", CHEAP, ids=lambda shown: f"{shown.page}: {shown.command}")
def test_cheap_commands_run(shown: Shown) -> None:
    told = run(shown.command, language_of(shown.page))
    assert told.returncode == 0, told.stderr
    assert told.stdout.strip()
    if shown.output:
        assert told.stdout.rstrip() == shown.output.rstrip()


@pytest.mark.parametrize("page", ["README.md", "README.zh-CN.md"])
@pytest.mark.parametrize("framework", ["tensorflow"])
def test_the_first_example_prints_what_the_page_shows(page: str, framework: str) -> None:
    (shown,) = [s for s in shown_in(page) if s.command == EXAMPLE]
    told = run(shown.command, language_of(page))
    assert told.returncode == 0
    # A terminal shows both streams: a finding is told before the program prints what it asked for.
    before, printed, after = shown.output.partition(told.stdout)
    assert printed, told.stdout
    assert lines_of(before + after) == lines_of(told.stderr)


@pytest.mark.parametrize("framework", ["tensorflow"])
def test_the_commands_for_a_report_and_for_ci_do_what_the_page_says(framework: str, tmp_path: Path) -> None:
    shown = {s.command.partition(" --output")[0] for s in shown_in("README.md")}
    report = tmp_path / "report.json"
    command = "gradwhy run --strict --format json"
    assert command in shown and "gradwhy report report.json" in {s.command for s in shown_in("README.md")}
    told = run(f"{command} --output {report} examples/mask_outside_tape.py", "C.UTF-8")
    assert told.returncode == 1, told.stderr
    again = run(f"gradwhy report {report}", "C.UTF-8")
    assert again.returncode == 0 and "error[outside-tape]: no gradient reaches `x`" in again.stdout


def lines_of(text: str) -> list[str]:
    """The lines that say something, without what TensorFlow says of itself while it is imported."""
    lines = [line.rstrip() for line in text.splitlines()]
    return [line for line in lines if line and not re.match(r"[IWE]0000 |WARNING: All log messages", line)]


@pytest.mark.parametrize("page", ["README.md", "README.zh-CN.md"])
def test_every_option_that_is_named_exists(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    named = set(re.findall(r"`(--[a-z-]+)", text))
    helped = run("gradwhy run --help", "C.UTF-8").stdout
    assert named
    assert [option for option in sorted(named) if option not in helped] == []


@pytest.mark.parametrize("page", ["README.md", "README.zh-CN.md"])
def test_both_pages_show_the_same_commands(page: str) -> None:
    assert [s.command for s in shown_in(page)] == [s.command for s in shown_in("README.md")]


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    links = LINK.findall((ROOT / page).read_text(encoding="utf-8"))
    assert [link for link in links if not (ROOT / link).exists()] == []


@pytest.mark.parametrize("page", PAGES)
def test_make_targets_exist(page: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = MAKE.findall((ROOT / page).read_text(encoding="utf-8"))
    assert targets
    assert [target for target in targets if not re.search(rf"^{target}:", makefile, re.MULTILINE)] == []

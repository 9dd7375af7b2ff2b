"""The worked examples that are shown where no edit can be offered: in the user's names, and with a gradient."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from forkserver import ForkServer
from gradwhy.diagnose.examples import worked_example
from gradwhy.source import files
from worked import PROGRAMS, WORKED, Worked

FRAMEWORKS = ("tensorflow", "torch", "jax")


@pytest.mark.parametrize("worked", WORKED, ids=lambda worked: f"{worked.framework}: {worked.line}")
def test_example_is_written_in_the_names_of_the_line(worked: Worked, tmp_path: Path) -> None:
    assert example(worked, tmp_path) == worked.example


@pytest.mark.parametrize(
    "line",
    [
        "y = ⟦quantize(x)⟧",
        "y = ⟦tf.round(*parts)⟧",
        "y = ⟦a < b < c⟧",
        "y = tf.gather(table, ⟦ids⟧)",
        "y = ⟦tf.histogram_fixed_width(x, bounds)⟧",
        "y = ⟦tf.sort(x)⟧",
    ],
)
def test_no_example_is_shown_for_a_line_of_no_known_form(line: str, tmp_path: Path) -> None:
    assert example(Worked("tensorflow", line, "", ""), tmp_path) == ""


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_gradient_arrives_through_every_example(framework: str, server_of: Callable[[str], ForkServer]) -> None:
    shown = [(worked.example, worked.made) for worked in WORKED if worked.framework == framework]
    run = server_of(framework).run("entries:plain", f"EXAMPLES = {shown!r}\n{PROGRAMS[framework]}")
    assert run.out.splitlines() == [f"{made} True" for _, made in shown], run.err


def example(worked: Worked, folder: Path) -> str:
    program = folder / "program.py"
    program.write_text(worked.text, encoding="utf-8")
    files.forget()
    return worked_example(worked.place(str(program)), worked.framework)

"""A saved report, shown again."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gradwhy.cli.main import main
from gradwhy.flow import Report
from gradwhy.render.json import ReportFile, read_report
from gradwhy.render.screens import Screen, printed
from gradwhy.render.terminal import report_rows
from gradwhy.texts import localize
from samples import call_report, mask_report, unreadable_report


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def saved(folder: Path, report: Report, name: str = "report.json") -> str:
    ReportFile(folder / name).write(localize(report, "en"))
    return name


def as_text(report: Report, language: str = "en") -> str:
    screen = Screen(language=language)
    return printed(report_rows(report, screen), screen)


def test_a_report_is_shown_on_standard_output(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", saved(folder, mask_report())]) == 0
    shown = capsys.readouterr()
    assert shown.out == as_text(mask_report())
    assert shown.err == ""


def test_a_report_is_shown_in_another_language_than_it_was_saved_in(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", saved(folder, mask_report()), "--lang", "zh"]) == 0
    assert capsys.readouterr().out == as_text(mask_report(), "zh")


def test_several_reports_are_shown_after_one_another_below_their_names(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = saved(folder, mask_report(), "rank0.json"), saved(folder, unreadable_report(), "rank1.json")
    assert main(["report", first, second]) == 0
    assert capsys.readouterr().out == (
        f"rank0.json\n\n{as_text(mask_report())}\nrank1.json\n\n{as_text(unreadable_report())}"
    )


def test_json_is_shown_with_every_text_in_the_language(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", saved(folder, mask_report()), "--format", "json", "--lang", "zh"]) == 0
    raw = json.loads(capsys.readouterr().out)
    assert raw["language"] == "zh"
    assert raw["findings"][0]["headline"]["text"] == "梯度到不了 `x`"


def test_several_reports_are_no_single_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = saved(folder, mask_report())
    assert main(["report", "--format", "json", name, name]) == 2
    assert capsys.readouterr().err == "gradwhy: with `--format json` name one report\n"


def test_the_output_goes_to_a_file_without_colour(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = saved(folder, call_report())
    assert main(["report", name, "--output", "report.txt"]) == 0
    assert (folder / "report.txt").read_text(encoding="utf-8") == as_text(call_report())
    assert main(["report", name, "--format", "json", "--output", "again.json"]) == 0
    assert read_report(folder / "again.json") == localize(call_report(), "en")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "gradwhy: cannot read the report report.json: no such file or directory\n"),
        ("{}", "gradwhy: report.json is not a gradwhy report\n"),
        (
            '{"schema": 2, "gradwhy": "9.0.0"}',
            "gradwhy: report.json was written by gradwhy 9.0.0 with report schema 2; "
            "gradwhy 0.1.0 reads schema 1: upgrade gradwhy to show it\n",
        ),
    ],
)
def test_what_cannot_be_shown_is_one_line_and_status_two(
    content: str | None, message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if content is not None:
        (folder / "report.json").write_text(content, encoding="utf-8")
    assert main(["report", "report.json"]) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", message)


def test_nothing_is_shown_where_one_of_several_cannot_be(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", saved(folder, mask_report()), "gone.json"]) == 2
    assert capsys.readouterr().out == ""


def test_an_output_that_cannot_be_written_is_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", saved(folder, mask_report()), "--output", "gone/report.txt"]) == 2
    assert capsys.readouterr().err == "gradwhy: cannot write gone/report.txt: no such file or directory\n"


def test_a_standard_output_of_another_encoding_takes_the_text(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    assert main(["report", saved(folder, replace(mask_report(), findings=())), "--lang", "zh"]) == 0
    assert raw.getvalue().startswith(b"gradwhy\\uff1a1 ")

"""A report takes along the lines that it shows, and no others."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gradwhy.render.quotes import with_quotes
from gradwhy.render.screens import Screen, printed
from gradwhy.render.terminal import report_rows
from gradwhy.source import files
from samples import HELPERS, MASK, TRAIN, call_report, mask_report, quoted


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(files, "_read", {})
    files.start_in(str(tmp_path))
    yield tmp_path
    files.start_in(str(Path.cwd()))


def test_a_report_shows_the_same_where_its_files_are_gone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "train.py").write_text(TRAIN, encoding="utf-8")
    (folder / "helpers.py").write_text(HELPERS, encoding="utf-8")
    screen = Screen()
    bare = replace(call_report(), files={})
    before = printed(report_rows(bare, screen), screen)
    taken = with_quotes(bare)
    (folder / "train.py").unlink()
    (folder / "helpers.py").unlink()
    monkeypatch.setattr(files, "_read", {})
    assert printed(report_rows(taken, screen), screen) == before
    assert printed(report_rows(bare, screen), screen) != before


def test_only_lines_around_what_is_shown_are_taken_along(folder: Path) -> None:
    text = MASK + "secret = 1\n" * 100
    (folder / "train.py").write_text(text, encoding="utf-8")
    taken = with_quotes(replace(mask_report(), files={})).files["train.py"]
    assert taken.sha256 == hashlib.sha256(text.encode()).hexdigest()
    assert list(taken.lines) == ["3", "4", "5", "6", "7", "8"]
    assert taken.lines["4"] == "x_ = x @ mask"


def test_what_is_quoted_already_stays_where_the_file_has_changed(folder: Path) -> None:
    (folder / "train.py").write_text("changed\n" * 9, encoding="utf-8")
    before = replace(mask_report(), files={"train.py": quoted(MASK, 4)})
    assert with_quotes(before).files == before.files


def test_lines_of_further_findings_are_added(folder: Path) -> None:
    (folder / "train.py").write_text(MASK, encoding="utf-8")
    before = replace(mask_report(), files={"train.py": quoted(MASK, 1)})
    assert list(with_quotes(before).files["train.py"].lines) == ["1", "3", "4", "5", "6", "7", "8"]


def test_a_file_that_cannot_be_read_is_not_quoted() -> None:
    assert with_quotes(replace(mask_report(), files={})).files == {}

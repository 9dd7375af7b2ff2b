"""The causes' pages and their list."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.cells import cell_len

from gradwhy.cli import choices
from gradwhy.cli.main import main
from gradwhy.render.pages import laid_out, page_text
from gradwhy.render.screens import Screen
from gradwhy.texts import LANGUAGES, Page, PageError, page, slugs


@pytest.fixture(autouse=True)
def english_locale(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)


def test_causes_are_listed_one_a_line_with_their_titles(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["causes"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(slugs())
    assert all(line.split(None, 1)[1] == page(slug, "en").title for line, slug in zip(lines, slugs(), strict=True))


def test_causes_are_listed_in_chinese_where_the_locale_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    assert main(["causes"]) == 0
    assert page("frozen", "zh").title in capsys.readouterr().out


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_page_is_shown_with_its_title_sections_and_example(language: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "outside-tape", "--lang", language]) == 0
    shown = capsys.readouterr().out
    assert page("outside-tape", language).title in shown
    assert ("What happens" if language == "en" else "现象") in shown
    assert " with tf.GradientTape() as tape:\n" in shown
    assert "`.grad`" in shown
    assert "+++" not in shown and "```" not in shown and "[labels]" not in shown


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_page_is_wider_than_the_screen(language: str) -> None:
    for slug in slugs():
        for line in page_text(page(slug, language), Screen(72, False, language)).splitlines():
            assert cell_len(line) <= 72 and line == line.rstrip(), slug


def test_a_page_in_colour_has_the_same_words() -> None:
    shown = page_text(page("frozen", "en"), Screen(80, True))
    assert "\x1b[" in shown
    assert "What happens" in shown


def test_lines_break_between_chinese_characters_and_join_without_a_space() -> None:
    body = "第一行在这里结束，\n第二行接着写 tensor\n也要连上。\n"
    assert laid_out(body, 80).split("  \n") == ["第一行在这里结束，第二行接着写 tensor 也要连上。"]
    assert laid_out(body, 30).split("  \n") == ["第一行在这里结束，第二行接着写", "tensor 也要连上。"]


def test_items_keep_their_bullet_and_code_blocks_are_left_alone() -> None:
    body = "- one item that goes\n  on here\n- two\n\n```python torch wrong\nx =  1\n\ny = 2\n```\n"
    assert laid_out(body, 16) == ("- one item that  \n  goes on here\n- two\n\n```python\nx =  1\n\ny = 2\n```")


def test_an_unknown_cause_names_the_one_that_was_likely_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "outside_tape"]) == 2
    assert capsys.readouterr().err == "gradwhy: there is no cause `outside_tape`; did you mean `outside-tape`?\n"
    assert main(["explain", "xyz"]) == 2
    assert capsys.readouterr().err == "gradwhy: there is no cause `xyz`; `gradwhy causes` lists them\n"
    assert main(["explain", "xyz", "--lang", "zh"]) == 2
    assert capsys.readouterr().err == "gradwhy: 没有名为 `xyz` 的原因；`gradwhy causes` 会列出全部\n"


def test_a_cause_cannot_lead_out_of_its_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "../causes/frozen"]) == 2
    assert "there is no cause" in capsys.readouterr().err


def test_a_broken_page_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(slug: str, language: str) -> Page:
        raise PageError("en.md of frozen: expected a title")

    monkeypatch.setattr(choices, "page", broken)
    assert main(["explain", "frozen"]) == 2
    assert capsys.readouterr().err == "gradwhy: a page of gradwhy itself is broken: en.md of frozen: expected a title\n"


@pytest.mark.parametrize(
    ("environment", "language"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh"}, "zh"),
        ({"LC_MESSAGES": "zh-TW", "LANG": "de_DE"}, "zh"),
        ({"LC_ALL": "C", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"LC_ALL": "", "LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "fr_FR.UTF-8"}, "en"),
        ({"LANG": "zhuang"}, "en"),
    ],
)
def test_the_language_is_that_of_the_locale(environment: dict[str, str], language: str) -> None:
    assert choices.language_of_locale(environment) == language


def test_the_projects_language_wins_over_the_locale_and_the_command_line_over_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANG", "en_US.UTF-8")
    (tmp_path / "pyproject.toml").write_text('[tool.gradwhy]\nlang = "zh"', encoding="utf-8")
    assert choices.language_for(None) == "zh"
    assert choices.language_for("en") == "en"


def test_settings_that_cannot_be_used_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.gradwhy]\nlanguage = 'zh'", encoding="utf-8")
    assert main(["causes"]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("gradwhy: ") and "`language` is no setting" in shown and shown.count("\n") == 1

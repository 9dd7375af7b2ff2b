"""Cells, wrapping and clipping, with characters of every width."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from gradwhy.render.cells import ELLIPSIS, shown_line, window, wrapped

PIECES = st.sampled_from(
    [*"ab1.,_ \t`(", "中", "文", "，", "。", "é", "🙂", "\x1b", "\u202e", "e\u0301", "❤\ufe0f", "`x y`", "long_name"]
)
LINES = st.lists(PIECES, max_size=60).map("".join)


def test_columns_are_characters_and_cells_are_what_the_terminal_counts() -> None:
    line = shown_line("权重 = x")
    assert [line.cell(column) for column in (1, 2, 3, 4)] == [0, 2, 4, 5]
    assert line.cell(6) == 7
    assert line.text == "权重 = x"


def test_tabs_go_to_the_next_stop_and_escapes_take_the_cells_they_show() -> None:
    line = shown_line("\ta\t= \x1b[0m")
    assert line.text == "    a   = \\x1b[0m"
    assert [line.cell(column) for column in (1, 2, 3, 4, 6, 7)] == [0, 4, 5, 8, 10, 14]


def test_combining_marks_and_variation_selectors_take_the_cells_of_their_base() -> None:
    assert tuple(shown_line("e\u0301x").cells) == (0, 1, 1, 2)
    assert shown_line("❤\ufe0fx").cells[-1] == cell_len("❤\ufe0fx")


def test_a_column_past_the_end_is_the_end() -> None:
    assert shown_line("ab").cell(99) == 2
    assert shown_line("ab").cell(0) == 0
    assert shown_line("").cell(1) == 0


def test_what_is_cut_out_keeps_its_cells_where_a_wide_character_is_cut() -> None:
    assert shown_line("a中文b").between(2, 5) == " 文"
    assert shown_line("a中文b").between(0, 4) == "a中 "
    assert shown_line("\x1bx").between(1, 5) == "x1bx"
    assert shown_line("e\u0301x").between(0, 1) == "e\u0301"


@given(LINES)
def test_the_last_cell_is_the_width_of_what_is_shown(line: str) -> None:
    shown = shown_line(line)
    assert shown.cells[-1] == cell_len(shown.text)
    assert len(shown.cells) == len(line) + 1


def test_a_line_that_fits_is_shown_whole() -> None:
    seen = window(shown_line("abc"), 3, [(0, 1)])
    assert (seen.text, seen.at(0), seen.at(3)) == ("abc", 0, 3)


def test_a_long_line_is_cut_around_its_span_with_an_ellipsis_on_each_cut_side() -> None:
    line = shown_line("a" * 50 + "SPAN" + "b" * 50)
    seen = window(line, 20, [(50, 54)])
    assert seen.text == "…aaaaaaaSPANbbbbbbb…"
    assert seen.text[seen.at(50) : seen.at(54)] == "SPAN"
    assert window(line, 20, [(0, 2)]).text == "a" * 19 + "…"
    assert window(line, 20, [(103, 104)]).text == "…" + "b" * 19


def test_two_spans_far_apart_are_both_shown() -> None:
    line = shown_line("target" + " " * 60 + "cut(x)" + " " * 60)
    seen = window(line, 30, [(66, 72), (0, 6)])
    assert seen.text[seen.at(0) : seen.at(6)] == "target"
    assert seen.text[seen.at(66) : seen.at(72)] == "cut(x)"


def test_the_first_span_is_shown_where_not_all_fit() -> None:
    line = shown_line("target" + " " * 60 + "x" * 40 + " " * 60)
    seen = window(line, 20, [(66, 106), (0, 6)])
    assert seen.text == "…" + "x" * 18 + "…"
    assert seen.at(66) == 1


def test_the_beginning_of_the_line_is_kept_where_the_span_is_near_it() -> None:
    line = shown_line("loss = " + "x" * 20 + " " + "y" * 40)
    assert window(line, 30, [(7, 27)]).text == "loss = " + "x" * 20 + " y…"
    assert window(line, 24, [(7, 27)]).text == "loss = " + "x" * 16 + "…"
    assert window(line, 24, [(7, 27)]).at(7) == 7


@given(LINES, st.integers(8, 40), st.lists(st.tuples(st.integers(0, 80), st.integers(0, 30)), max_size=4))
def test_a_window_is_never_wider_than_asked(text: str, width: int, spans: list[tuple[int, int]]) -> None:
    line = shown_line(text)
    whole = line.cells[-1]
    stretches = [(min(first, whole), min(first + length, whole)) for first, length in spans]
    seen = window(line, width, stretches)
    assert cell_len(seen.text) <= width
    assert all(0 <= seen.at(cell) <= width for cell in range(whole + 1))
    if whole > width:
        assert ELLIPSIS in seen.text


def test_text_wraps_at_spaces_and_keeps_code_together() -> None:
    text = "replace it by a straight-through step: `x + stop(hard(x) - x)` and no more"
    assert wrapped(text, 40) == [
        "replace it by a straight-through step:",
        "`x + stop(hard(x) - x)` and no more",
    ]


def test_the_first_line_may_have_another_width() -> None:
    assert wrapped("one two three four", 8, 4) == ["one", "two", "three", "four"]
    assert wrapped("one two three four", 9, 7) == ["one two", "three", "four"]
    assert wrapped("longer", 8, 4) == ["", "longer"]


def test_chinese_wraps_between_characters_and_no_line_begins_with_a_stop() -> None:
    assert wrapped("梯度到不了变量，请检查。", 14) == ["梯度到不了变", "量，请检查。"]
    assert wrapped("把第 4 行移到 `with` 块里", 16) == ["把第 4 行移到", "`with` 块里"]


def test_a_word_that_fits_nowhere_is_cut() -> None:
    assert wrapped("a" * 25, 10) == ["a" * 10, "a" * 10, "a" * 5]
    assert wrapped("`" + "a b " * 5 + "`", 10) == ["`a b a b a", "b a b a b", "`"]


def test_an_empty_text_is_one_empty_line() -> None:
    assert wrapped("", 10) == [""]


@given(LINES, st.integers(6, 30))
def test_wrapping_loses_nothing_and_exceeds_nothing(text: str, width: int) -> None:
    lines = wrapped(text, width)
    assert all(cell_len(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


@pytest.mark.parametrize("width", [1, 2])
def test_wrapping_into_almost_nothing_ends(width: int) -> None:
    assert "".join(wrapped("ab `c d` 中", width)).replace(" ", "") == "ab`cd`中"

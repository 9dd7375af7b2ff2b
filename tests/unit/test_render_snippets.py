"""Quoted source: every label under its exact span."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from gradwhy.flow import Span
from gradwhy.render.snippets import Mark, Quote

SOURCE = """\
import tensorflow as tf
x = tf.Variable(
    [[1., 2., 3.]],
    name="x",
)
x_ = x @ mask
with tf.GradientTape() as tape:
    y = layer(x_)
    loss = tf.reduce_mean(y ** 2)
权重 = 网络(输入) + x_  # 说明
"""


def mark(
    line: int, first: int, last: int, text: str = "", *, primary: bool = False, end_line: int | None = None
) -> Mark:
    return Mark(Span("train.py", line, first, end_line or line, last), text, "red" if primary else "blue", primary)


def quote(*marks: Mark, source: str = SOURCE, width: int = 80, digits: int = 2) -> str:
    lines = dict(enumerate(source.split("\n"), 1))
    rows = Quote(lines, marks, digits=digits, width=width).rows()
    return "".join(f"{row.plain}\n" for row in rows)


def test_labels_of_neighbouring_lines_stand_beside_their_spans() -> None:
    assert quote(mark(6, 6, 14, "ran before", primary=True), mark(7, 6, 23, "recording starts here"), digits=1) == (
        " 6 | x_ = x @ mask\n"
        "   |      ^^^^^^^^ ran before\n"
        " 7 | with tf.GradientTape() as tape:\n"
        "   |      ----------------- recording starts here\n"
    )


def test_distant_lines_are_parted_and_a_single_line_between_is_shown() -> None:
    assert quote(mark(1, 8, 18, "here"), mark(6, 1, 3, "there"), mark(8, 5, 6, "and there"), digits=1) == (
        " 1 | import tensorflow as tf\n"
        "   |        ---------- here\n"
        " ...\n"
        " 6 | x_ = x @ mask\n"
        "   | -- there\n"
        " 7 | with tf.GradientTape() as tape:\n"
        " 8 |     y = layer(x_)\n"
        "   |     - and there\n"
    )


def test_several_labels_on_a_line_hang_below_it() -> None:
    marks = (mark(9, 5, 9, "the target"), mark(9, 12, 34, "outer"), mark(9, 27, 33, "has no derivative", primary=True))
    assert quote(*marks, digits=1) == (
        " 9 |     loss = tf.reduce_mean(y ** 2)\n"
        "   |     ----   ---------------^^^^^^-\n"
        "   |     |      |              |\n"
        "   |     |      |              has no derivative\n"
        "   |     |      outer\n"
        "   |     the target\n"
    )


def test_the_rightmost_label_stands_beside_its_span_if_nothing_reaches_past_it() -> None:
    assert quote(mark(6, 1, 3, "the copy"), mark(6, 6, 14, "ran before", primary=True), digits=1) == (
        " 6 | x_ = x @ mask\n   | --   ^^^^^^^^ ran before\n   | |\n   | the copy\n"
    )


def test_a_long_label_wraps_beside_its_span_and_the_others_stay_connected() -> None:
    long = "ran before `x` required a gradient, so nothing of it was recorded and it is a constant"
    assert quote(mark(6, 1, 3, "the copy"), mark(6, 6, 14, long, primary=True), digits=1) == (
        " 6 | x_ = x @ mask\n"
        "   | --   ^^^^^^^^ ran before `x` required a gradient, so nothing of it was\n"
        "   | |             recorded and it is a constant\n"
        "   | the copy\n"
    )


def test_a_label_without_room_beside_its_span_stands_below_it() -> None:
    source = "value = function(argument_one, argument_two, argument_three)\n"
    assert quote(mark(1, 9, 61, "ran before the tape started recording"), source=source, width=60, digits=1) == (
        " 1 | value = function(argument_one, argument_two, argument_…\n"
        "   |         ----------------------------------------------\n"
        "   |         ran before the tape started recording\n"
    )


def test_a_span_over_lines_has_a_bar_beside_them() -> None:
    assert quote(mark(2, 5, 2, "defined here", end_line=5), mark(6, 6, 7, "read here"), digits=1) == (
        " 2 |   x = tf.Variable(\n"
        "   |  _____-\n"
        " 3 | |     [[1., 2., 3.]],\n"
        ' 4 | |     name="x",\n'
        " 5 | | )\n"
        "   | |_- defined here\n"
        " 6 |   x_ = x @ mask\n"
        "   |        - read here\n"
    )


def test_a_span_over_lines_that_begins_its_line_needs_no_elbow() -> None:
    assert quote(mark(2, 1, 2, "defined here", end_line=5, primary=True), digits=1) == (
        ' 2 | / x = tf.Variable(\n 3 | |     [[1., 2., 3.]],\n 4 | |     name="x",\n 5 | | )\n   | |_^ defined here\n'
    )


def test_a_long_span_is_shown_by_its_ends() -> None:
    assert quote(mark(1, 1, 14, "this block", end_line=9), digits=1) == (
        " 1 | / import tensorflow as tf\n"
        " 2 | | x = tf.Variable(\n"
        " ... |\n"
        " 8 | |     y = layer(x_)\n"
        " 9 | |     loss = tf.reduce_mean(y ** 2)\n"
        "   | |_____________- this block\n"
    )


def test_spans_over_lines_that_overlap_have_bars_of_their_own() -> None:
    marks = (mark(6, 1, 14, "outer", end_line=9), mark(7, 6, 5, "inner", end_line=8, primary=True))
    assert quote(*marks, digits=1) == (
        " 6 | /   x_ = x @ mask\n"
        " 7 | |   with tf.GradientTape() as tape:\n"
        "   | |  ______^\n"
        " 8 | | |     y = layer(x_)\n"
        "   | | |____^ inner\n"
        " 9 | |       loss = tf.reduce_mean(y ** 2)\n"
        "   | |_______________- outer\n"
    )


def test_underlines_count_cells_where_columns_count_characters() -> None:
    assert quote(mark(10, 6, 12, "在这里计算", primary=True), mark(10, 1, 3, "目标")) == (
        " 10 | 权重 = 网络(输入) + x_  # 说明\n    | ----   ^^^^^^^^^^ 在这里计算\n    | |\n    | 目标\n"
    )


def test_tabs_and_escapes_are_shown_as_wide_as_they_are_counted() -> None:
    source = "\tx = '\x1b[0m' + tf.argmax(y)\n"
    assert quote(mark(1, 15, 27, "no derivative", primary=True), source=source, digits=1) == (
        " 1 |     x = '\\x1b[0m' + tf.argmax(y)\n   |                     ^^^^^^^^^^^^ no derivative\n"
    )


def test_a_span_without_columns_is_its_whole_line() -> None:
    line = Mark(Span("train.py", 8), "somewhere here", "red", True)
    assert quote(line, digits=1) == " 8 |     y = layer(x_)\n   |     ^^^^^^^^^^^^^ somewhere here\n"


def test_an_empty_span_still_shows_where_it_is() -> None:
    assert quote(mark(8, 9, 9, "here"), digits=1) == " 8 |     y = layer(x_)\n   |         - here\n"


def test_columns_past_the_line_are_kept_to_it() -> None:
    assert quote(mark(6, 12, 400, "cut"), digits=1) == " 6 | x_ = x @ mask\n   |            -- cut\n"


def test_a_line_that_is_not_there_is_left_out() -> None:
    assert quote(mark(99, 1, 2, "gone")) == ""


def test_a_mark_without_words_is_only_underlined() -> None:
    assert quote(mark(6, 6, 14, primary=True), digits=1) == " 6 | x_ = x @ mask\n   |      ^^^^^^^^\n"


def test_a_span_that_ends_before_its_last_lines_first_character_ends_on_the_line_before() -> None:
    assert quote(mark(6, 1, 1, "statement", end_line=7), digits=1) == (
        " 6 | x_ = x @ mask\n   | ------------- statement\n"
    )


SPANS = st.builds(
    lambda line, column, lines, length, text, primary: Mark(
        Span("f", line, column, line + lines, max(1, column + length)), text, "red", primary
    ),
    st.integers(1, 12),
    st.integers(1, 60),
    st.integers(0, 9),
    st.integers(-20, 60),
    st.sampled_from(["", "short", "a label that is rather long and `has code in it` and goes on", "中文标签" * 12]),
    st.booleans(),
)
SOURCE_LINES = st.lists(st.text(st.sampled_from("ab (=\t中文🙂\x1b"), max_size=90), min_size=1, max_size=12)


@settings(max_examples=300)
@given(SOURCE_LINES, st.lists(SPANS, min_size=1, max_size=5), st.integers(60, 100))
def test_any_marks_fit_the_width_and_show_every_label_on_a_line_that_exists(
    source: list[str], marks: list[Mark], width: int
) -> None:
    lines = dict(enumerate(source, 1))
    rows = [row.plain for row in Quote(lines, marks, digits=2, width=width).rows()]
    assert all(cell_len(row) <= width for row in rows)
    assert not any("\x1b" in row for row in rows)
    shown = "".join("".join(rows).split())
    for placed in marks:
        if placed.span.line in lines and placed.text == "short":
            assert "short" in shown

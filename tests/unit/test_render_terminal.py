"""Findings as a terminal shows them: the layout of the style guide, in both languages."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len

from gradwhy.flow import Label, Passage, Report, Severity, Span, Step
from gradwhy.render.screens import Screen, printed
from gradwhy.render.terminal import Surroundings, finding_rows, report_rows
from gradwhy.source import files
from samples import (
    SAMPLES,
    asked,
    call_report,
    chinese_report,
    long_report,
    mask_finding,
    mask_report,
    quiet_report,
    report,
    said,
    unreadable_report,
)


def text(shown: Report, language: str = "en", width: int = 80) -> str:
    screen = Screen(width, False, language)
    return printed(report_rows(shown, screen), screen)


def path_line(steps: tuple[Step, ...], width: int = 80) -> str:
    finding = replace(mask_finding(), path=steps)
    rows = [row.plain for row in finding_rows(finding, Screen(width), Surroundings())]
    first = next(i for i, row in enumerate(rows) if "= path:" in row)
    last = next(i for i, row in enumerate(rows) if row.startswith("help"))
    return "\n".join(row.strip() for row in rows[first:last])


def test_a_finding_looks_as_in_the_style_guide() -> None:
    assert text(mask_report()) == (
        "error[outside-tape]: no gradient reaches `x`\n"
        "  --> train.py:4:6\n"
        "   |\n"
        " 4 | x_ = x @ mask\n"
        "   |      ^^^^^^^^ ran before the tape started recording\n"
        " 5 | with tf.GradientTape() as tape:\n"
        "   |      ----------------- recording starts here\n"
        " 6 |     y = layer(x_)\n"
        "   |               -- `x_` enters as a constant\n"
        " 7 |     loss = tf.reduce_mean(y ** 2)\n"
        "   |     ---- the target\n"
        "   = path: x -> MatMul (line 4) -x- Dense (line 6) -> Pow -> Mean = loss\n"
        "help: move line 4 into the `with` block (safe: `loss` keeps its value)\n"
        "   = learn more: gradwhy explain outside-tape\n"
        "\n"
        "gradwhy: 1 question, 2 sources, 1 finding\n"
    )


def test_a_finding_in_chinese_has_full_width_punctuation_and_keeps_code_as_it_is() -> None:
    assert text(mask_report(), "zh") == (
        "错误[outside-tape]：梯度到不了 `x`\n"
        "  --> train.py:4:6\n"
        "   |\n"
        " 4 | x_ = x @ mask\n"
        "   |      ^^^^^^^^ 在 tape 开始记录之前就已执行\n"
        " 5 | with tf.GradientTape() as tape:\n"
        "   |      ----------------- 记录从这里开始\n"
        " 6 |     y = layer(x_)\n"
        "   |               -- `x_` 作为常量进入\n"
        " 7 |     loss = tf.reduce_mean(y ** 2)\n"
        "   |     ---- 目标\n"
        "   = 路径：x -> MatMul（第 4 行） -x- Dense（第 6 行） -> Pow -> Mean = loss\n"
        "帮助：把第 4 行移到 `with` 块里（安全：`loss` 的值不变）\n"
        "   = 了解更多：gradwhy explain outside-tape\n"
        "\n"
        "gradwhy：1 次梯度请求，2 个源，1 条诊断\n"
    )


def test_labels_in_several_files_are_quoted_file_by_file() -> None:
    assert text(call_report()) == (
        "warning[outside-tape]: no gradient reaches `embedding`\n"
        "   --> helpers.py:2:16\n"
        "    |\n"
        "  2 |     gathered = tf.gather(embedding, tokens)\n"
        "    |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "    |                ran before the tape started recording\n"
        "    |\n"
        "   ::: train.py:3:10\n"
        "    |\n"
        "  3 |   inputs = prepare(\n"
        "    |  __________-\n"
        "  4 | |     embedding,\n"
        "  5 | |     tokens,\n"
        "  6 | |     scale=2.0,\n"
        "  7 | | )\n"
        "    | |_- called from here\n"
        "  8 |   for step in range(1000):\n"
        "  9 |       with tf.GradientTape() as tape:\n"
        "    |            ----------------- recording starts here\n"
        " 10 |           logits = model(inputs, training=True)\n"
        " 11 |           loss = loss_function(labels, logits)\n"
        "    |           ---- the target\n"
        "    = path: embedding -> GatherV2 (line 2) -x- Mul (line 3) -> (11 more)\n"
        "            -> Block11 -> Mean = loss\n"
        "    = note: 2 other paths to `loss` are cut, too\n"
        "    = note: `inputs` was made for an earlier recording and kept; this recording\n"
        "            knows only its value\n"
        "    = note: the question was asked 200 times and got this answer 198 times,\n"
        "            first in repetition 3\n"
        "help: call `prepare` inside the recording, not before it (line 3)\n"
        "    = learn more: gradwhy explain outside-tape\n"
        "\n"
        "gradwhy: 1 question, 1 source, 1 finding\n"
    )


def test_chinese_source_is_underlined_by_cells() -> None:
    rows = text(chinese_report(), "zh").splitlines()
    assert ' 1 | 权重 = tf.Variable([1.0, 2.0], name="权重")  # 需要训练的权重' in rows
    assert "   | ---- `权重` 在这里定义" in rows
    code = next(row for row in rows if row.startswith(" 2 |"))
    signs = rows[rows.index(code) + 1]
    assert code.endswith("…") and cell_len(code) <= 80
    assert cell_len(code[: code.index("tf.argmax")]) == signs.index("^")
    assert cell_len(code[: code.index("axis=0)") + 7]) == signs.rindex("^") + 1
    assert "   = 路径：权重 -> tf.argmax（第 2 行） -x- Cast（第 2 行） -> Mean = 损失" in rows


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("width", [60, 80, 120])
def test_nothing_is_wider_than_the_screen_and_nothing_steers_it(name: str, language: str, width: int) -> None:
    shown = text(SAMPLES[name](), language, width)
    assert all(cell_len(row) <= width for row in shown.splitlines())
    assert not any(c in shown for c in "\x1b\x07\u202e\t")
    assert all(row == row.rstrip() for row in shown.splitlines())


def test_many_sources_are_named_up_to_three_and_a_long_line_shows_both_its_labels() -> None:
    rows = text(long_report()).splitlines()
    assert rows[0] == "warning[detached]: no gradient reaches"
    assert rows[3].endswith("` and 4 more")
    assert rows[4] == "  --> train.py:1:559"
    assert rows[6].startswith(" 1 | total = weights[0]") and "scale.detach()" in rows[6] and rows[6].endswith("…")
    assert rows[6].index("scale.detach()") == rows[7].index("^")
    assert rows[7].startswith("   | -----")


def test_a_file_that_cannot_be_read_shows_where_and_what_without_a_quote() -> None:
    assert text(unreadable_report()).splitlines()[:5] == [
        "error[outside-tape]: no gradient reaches `x`",
        "  --> train.py:4:6 (rank 1): ran before the tape started recording",
        "  ::: train.py:5:6: recording starts here",
        "  ::: train.py:6:15: `x_` enters as a constant",
        "  ::: train.py:7:5: the target",
    ]


def test_a_finding_without_a_place_is_its_words_alone() -> None:
    finding = replace(mask_finding(), place=None, labels=(), path=(), help=None)
    assert text(report(finding, asked("x"))).splitlines()[:2] == [
        "error[outside-tape]: no gradient reaches `x`",
        "   = learn more: gradwhy explain outside-tape",
    ]


def test_a_place_without_a_label_is_marked_all_the_same() -> None:
    finding = replace(mask_finding(), labels=(Label(Span("train.py", 7, 5, 7, 9), said("the target")),), path=())
    rows = text(replace(mask_report(), findings=(finding,))).splitlines()
    assert rows[1:5] == ["  --> train.py:4:6", "   |", " 4 | x_ = x @ mask", "   |      ^^^^^^^^"]


def test_lines_come_from_the_report_and_only_else_from_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "train.py"
    program.write_text("# on disk\n" * 8, encoding="utf-8")
    files.start_in(str(tmp_path))
    monkeypatch.setattr(files, "_read", {})
    try:
        assert "# on disk" not in text(mask_report())
        assert " 4 | # on disk\n" in text(replace(mask_report(), files={}))
    finally:
        files.start_in(str(Path.cwd()))


def test_a_question_asked_once_says_nothing_of_repetitions() -> None:
    assert "repetition" not in text(mask_report()) and "times" not in text(mask_report())


def test_a_question_wrong_from_the_start_tells_no_first_repetition() -> None:
    finding = replace(mask_finding(), times=5)
    shown = text(replace(mask_report(), findings=(finding,), questions=(asked("x", times=5),)))
    assert "   = note: the question was asked 5 times and got this answer 5 times\n" in shown


def steps(*passages: Passage) -> tuple[Step, ...]:
    """A path of that many steps on lines 1, 2, 3 ... of the finding's file."""
    return tuple(Step(f"Op{n}", Span("train.py", n + 1), None, p) for n, p in enumerate(passages))


FLOWS, CUT, NOTHING = Passage.FLOWS, Passage.CUT, Passage.NOTHING


def test_a_cut_at_the_last_step_is_shown_before_the_target() -> None:
    assert path_line(steps(FLOWS, FLOWS, CUT)) == "= path: Op0 -> Op1 -> Op2 (line 3) -x- loss"


def test_a_passage_without_derivative_is_shown_as_a_cut() -> None:
    assert path_line(steps(FLOWS, NOTHING, FLOWS)) == "= path: Op0 -> Op1 (line 2) -x- Op2 (line 3) = loss"


def test_a_step_in_another_file_names_it() -> None:
    elsewhere = (*steps(FLOWS, CUT), Step("Cast", Span("helpers.py", 9)))
    assert path_line(elsewhere) == "= path: Op0 -> Op1 (line 2) -x- Cast (line 9 of helpers.py) = loss"


def test_a_long_path_keeps_its_ends_and_its_cuts() -> None:
    long = steps(*[FLOWS] * 10, CUT, *[FLOWS] * 10)
    assert path_line(long).replace("\n", " ") == (
        "= path: Op0 -> Op1 -> (8 more) -> Op10 (line 11) -x- Op11 (line 12) -> (7 more) -> Op19 -> Op20 = loss"
    )


def test_a_path_of_one_step_is_not_shown() -> None:
    finding = replace(mask_finding(), path=steps(FLOWS))
    assert not any("path" in row.plain for row in finding_rows(finding, Screen(), Surroundings()))


def test_the_end_says_what_was_asked_and_found() -> None:
    assert text(quiet_report()) == "gradwhy: no gradient was asked for\n"
    assert text(quiet_report(), "zh") == "gradwhy：程序没有求过梯度\n"
    assert "none of TensorFlow, PyTorch and JAX" in text(replace(quiet_report(), frameworks={})).replace("\n", " ")


def test_an_unfinished_program_and_our_own_failures_are_told() -> None:
    shown = text(replace(quiet_report(), exit_status=None, warnings=("the hook \x1b failed",)))
    assert shown.splitlines() == [
        "gradwhy: a part of gradwhy failed, and the program runs on without it: the hook",
        "\\x1b failed",
        "gradwhy: the program had not ended when this report was written",
        "gradwhy: no gradient was asked for",
    ]


def test_colour_changes_no_character() -> None:
    for make in SAMPLES.values():
        colored = Screen(80, True)
        raw = printed(report_rows(make(), colored), colored)
        assert strip(raw) == text(make())
        assert "\x1b[" in raw or make is quiet_report


def strip(raw: str) -> str:
    import re

    return re.sub(r"\x1b\[[\d;]*m", "", raw)


@pytest.mark.parametrize(
    ("severity", "color"), [(Severity.ERROR, "31"), (Severity.WARNING, "33"), (Severity.NOTE, "32")]
)
def test_the_severity_chooses_the_colour(severity: Severity, color: str) -> None:
    screen = Screen(80, True)
    rows = finding_rows(replace(mask_finding(), severity=severity), screen, Surroundings())
    assert printed(rows, screen).startswith(f"\x1b[1;{color}m{severity.value}[outside-tape]: \x1b[0m")


def test_rendering_leaves_the_random_numbers_of_the_program_alone() -> None:
    before = random.getstate()
    for make in SAMPLES.values():
        screen = Screen(80, True)
        printed(report_rows(make(), screen), screen)
    assert random.getstate() == before

"""Edits change what they name, and not one byte beside it."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradwhy.source.edits import EditError, Editor, apply_edits

MASK = """\
x = make()  # the source
mask = (1, 2)

# Only the middle counts.
x_ = (
    x
    @ mask
)  # cut here

with tape() as t:
    # The layer.
    y = layer(x_)
    loss = y ** 2
"""


def test_moved_statement_takes_its_layout_and_comments_along() -> None:
    editor = Editor(MASK.encode())
    editor.move([(5, 0)], before=(12, 4))
    assert (
        editor.content().decode()
        == """\
x = make()  # the source
mask = (1, 2)

with tape() as t:
    # Only the middle counts.
    x_ = (
        x
        @ mask
    )  # cut here
    # The layer.
    y = layer(x_)
    loss = y ** 2
"""
    )


def test_text_inside_strings_is_not_indented() -> None:
    editor = Editor(b's = """\na\n  b"""\nif x:\n    y = 1\n')
    editor.move([(1, 0)], before=(5, 4))
    assert editor.content() == b'if x:\n    s = """\na\n  b"""\n    y = 1\n'


def test_block_that_is_moved_out_of_keeps_a_pass() -> None:
    editor = Editor(b"with a:\n\tb = 1\nc = 2\n")
    editor.move([(2, 1)], before=(1, 0))
    assert editor.content() == b"b = 1\nwith a:\n\tpass\nc = 2\n"


def test_loop_with_its_body_moves_into_a_tab_indented_block() -> None:
    editor = Editor(b"for i in a:\n  if i:\n      b(i)\n\nwith c:\n\td = 1\n")
    editor.move([(1, 0)], before=(6, 1))
    assert editor.content() == b"\nwith c:\n\tfor i in a:\n\t  if i:\n\t      b(i)\n\td = 1\n"


def test_statements_can_follow_the_last_one_of_a_block() -> None:
    editor = Editor(b"with a:\n    b = 1\n    # the end of the block\n\nc = b\nd = c\n")
    editor.move([(5, 0), (6, 0)], after=(2, 4))
    assert editor.content() == b"with a:\n    b = 1\n    c = b\n    d = c\n    # the end of the block\n\n"


@pytest.mark.parametrize(
    ("before", "code", "after"),
    [
        (b"y = stop(a + b)\n", "a + b", b"y = a + b\n"),
        (b"y = stop(a) * c\n", "a + b", b"y = (a + b) * c\n"),
        (b"y = f(stop(a), c)\n", "a + b", b"y = f(a + b, c)\n"),
        (b"y = (stop(a))\n", "a + b", b"y = (a + b)\n"),
        ("y = 值 + stop(a)\n".encode(), "a", "y = 值 + a\n".encode()),
    ],
)
def test_replaced_expression_gets_parentheses_where_it_needs_them(before: bytes, code: str, after: bytes) -> None:
    text = before.decode()
    start = text.index("stop")
    editor = Editor(before)
    editor.replace((1, start), (1, text.index(")", start) + 1), code)
    assert editor.content() == after


def test_decorator_is_dropped_and_the_other_kept() -> None:
    editor = Editor(b"@a\n@b.c(1)\ndef f():\n    pass\n")
    editor.drop_decorator((3, 0), 1)
    assert editor.content() == b"@a\ndef f():\n    pass\n"


def test_several_statements_on_one_line_are_left_alone() -> None:
    with pytest.raises(EditError, match="share line 1"):
        Editor(b"a = 1; b = 2\nc = 3\n").move([(1, 0)], after=(2, 0))


@pytest.mark.parametrize("content", [b"a = (\n", b"\xff\xfe", b"a = 1\rb = 2\r"])
def test_what_is_not_read_faithfully_is_refused(content: bytes) -> None:
    with pytest.raises(EditError):
        Editor(content)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("last", ["", "\n"])
def test_line_ends_byte_order_mark_and_last_line_stay(end: str, bom: bytes, last: str) -> None:
    text = "值 = 1  # 一\nb = 2\nwith c:\n    d = 3" + last
    content = bom + text.replace("\n", end).encode()
    editor = Editor(content)
    editor.move([(2, 0)], before=(4, 4))
    wanted = "值 = 1  # 一\nwith c:\n    b = 2\n    d = 3" + last
    assert editor.content() == bom + wanted.replace("\n", end).encode()
    assert apply_edits(content, editor.edits("a.py")) == editor.content()


def test_declared_encoding_stays() -> None:
    content = "# coding: latin-1\né = 1\nwith c:\n    d = 3\n".encode("latin-1")
    editor = Editor(content)
    editor.move([(2, 0)], before=(4, 4))
    assert editor.content() == "# coding: latin-1\nwith c:\n    é = 1\n    d = 3\n".encode("latin-1")
    assert apply_edits(content, editor.edits("a.py"), editor.encoding) == editor.content()


LINES = st.sampled_from(["a = 1", "b = f(a)  # why", "# a remark", "", "\tc = '''x\n y'''", "if a:\n    b = 2", "\f"])


@given(st.lists(LINES.map(str.lstrip), max_size=12), st.data())
def test_lines_that_no_edit_names_keep_every_byte(lines: list[str], data: st.DataObject) -> None:
    content = "\n".join([*lines, "first = 1", "with t:", "    last = 2", ""]).encode()
    start = content.decode().count("\n") - 2
    editor = Editor(content)
    editor.move([(start, 0)], before=(start + 2, 4))
    edits = editor.edits("a.py")
    changed = apply_edits(content, data.draw(st.permutations(edits)))
    assert changed == editor.content()
    untouched = "\n".join(lines).encode()
    comments = lines[next((i + 1 for i in range(len(lines) - 1, -1, -1) if not lines[i].startswith("#")), 0) :]
    kept = untouched[: len(untouched) - len("\n".join(comments).encode())]
    assert changed.startswith(kept)


def test_libcst_is_imported_only_when_something_is_edited() -> None:
    code = "import sys, gradwhy, gradwhy.session, gradwhy.diagnose, gradwhy.cli.run; print('libcst' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"

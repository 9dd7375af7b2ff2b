"""A file is changed where the fix says and nowhere else, as a whole or not at all."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from gradwhy.fix.choose import crosses
from gradwhy.fix.locality import is_local
from gradwhy.fix.patch import changed_by, patch
from gradwhy.fix.verdict import AnswerSeen, is_same, judge
from gradwhy.fix.write import WriteError, read_content, write_content
from gradwhy.flow import Edit, Numbers, Proof, Span, Status, Text
from gradwhy.source.edits import line_edits

BEFORE = b"""\
import a
x = 1
with a as t:
    y = 2
    if y:
        z = 3

def f():
    return x
"""


def edit(line: int, end: int, text: str, file: str = "a.py") -> Edit:
    return Edit(file, Span(file, line, 1, end, 1), text)


@pytest.mark.parametrize(
    "edits",
    [
        [edit(2, 3, ""), edit(4, 4, "    x = 1\n")],
        [edit(4, 5, "    y = 5\n")],
        [edit(3, 4, "with a as t, b:\n")],
        [edit(6, 7, "        pass\n")],
        [edit(8, 8, "@cached\n")],
    ],
)
def test_change_of_whole_statements_is_local(edits: list[Edit]) -> None:
    assert is_local(BEFORE, changed_by(BEFORE, edits), edits)


@pytest.mark.parametrize(
    ("after", "edits"),
    [
        (BEFORE.replace(b"return x", b"return y"), [edit(2, 3, "")]),
        (BEFORE.replace(b"    if y", b"    if x"), [edit(4, 5, "    y = 2\n")]),
        (BEFORE.replace(b"x = 1", b"x = ("), [edit(2, 3, "x = (\n")]),
        # The block swallows a statement that no edit names.
        (BEFORE.replace(b"        z = 3\n\ndef f", b"        z = 3\n        def f"), [edit(6, 7, "        z = 3\n")]),
    ],
)
def test_change_beside_the_edits_is_not_local(after: bytes, edits: list[Edit]) -> None:
    assert not is_local(BEFORE, after, edits)


def test_changes_cross_where_their_lines_meet() -> None:
    assert crosses([edit(2, 4, "")], [edit(3, 3, "a\n")])
    assert crosses([edit(2, 2, "a\n")], [edit(2, 2, "b\n")])
    assert not crosses([edit(2, 3, "")], [edit(5, 5, "a\n")])
    assert not crosses([edit(2, 3, "")], [edit(2, 3, "", "b.py")])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\nb\nc\n", "a\nc\n"),
        ("a\r\nb\r\nc\r\n", "a\r\nx\r\nc\r\n"),
        ("a\n\tb", "\tb\na"),
        ("值 = 1\nb\n", "值 = 2\nb\n"),
    ],
)
def test_git_applies_the_patch(before: str, after: str, tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(before.encode())
    edits = line_edits(before, after, "a.py")
    text = (
        "error[outside-tape]: something\n   --> a.py:1\n" + patch({"a.py": before.encode()}, edits) + "gradwhy: done\n"
    )
    command = ["git", "-c", "core.autocrlf=false", "apply", "-"]
    subprocess.run(command, input=text.encode(), cwd=tmp_path, check=True)
    assert file.read_bytes() == after.encode() == changed_by(before.encode(), edits)


def test_written_file_keeps_its_mode_and_its_links(tmp_path: Path) -> None:
    file, link = tmp_path / "a.py", tmp_path / "b.py"
    file.write_bytes(b"a\n")
    file.chmod(0o751)
    link.symlink_to(file)
    write_content(str(link), "b.py", b"a\n", b"b\n")
    assert file.read_bytes() == b"b\n" and link.is_symlink()
    assert stat.S_IMODE(file.stat().st_mode) == 0o751
    assert sorted(os.listdir(tmp_path)) == ["a.py", "b.py"]


def test_file_that_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"changed\n")
    with pytest.raises(WriteError) as refused:
        write_content(str(file), "a.py", b"a\n", b"b\n")
    assert refused.value.reason == Text("fixes/reason/changed", {"file": "a.py"})
    assert file.read_bytes() == b"changed\n"
    assert read_content(str(file), "0" * 64) is None


def test_read_only_file_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"a\n")
    file.chmod(0o444)
    with pytest.raises(WriteError) as refused:
        write_content(str(file), "a.py", b"a\n", b"b\n")
    assert refused.value.reason.key == "fixes/reason/read-only"
    assert file.read_bytes() == b"a\n"


@pytest.mark.parametrize("call", ["fsync", "replace", "chmod"])
def test_failing_disk_leaves_the_file_whole_and_nothing_beside_it(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    file = tmp_path / "a.py"
    file.write_bytes(b"a\n")
    monkeypatch.setattr(os, call, full)
    with pytest.raises(WriteError) as refused:
        write_content(str(file), "a.py", b"a\n", b"b\n")
    assert refused.value.reason.values["problem"] == "no space left on device"
    assert file.read_bytes() == b"a\n" and os.listdir(tmp_path) == ["a.py"]


@pytest.mark.parametrize("call", ["fsync", "chmod", "replace"])
def test_kill_while_writing_leaves_the_old_file_whole(call: str, tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"a\n" * 1000)
    code = f"""
import os, signal
from gradwhy.fix.write import write_content
os.{call} = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
write_content({str(file)!r}, "a.py", b"a\\n" * 1000, b"b\\n" * 1000)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode < 0
    assert file.read_bytes() == b"a\n" * 1000


OK, NONE = Status.OK, Status.NONE
ONE = Numbers((), 1.0, (1.0,))


def verdict(before: AnswerSeen, after: AnswerSeen, *, is_safe: bool = True, may_drop: bool = False) -> Proof | Text:
    same = is_same(before.target, after.target)
    return judge(
        before, after, wanted=frozenset("x"), target="loss", is_safe=is_safe, may_drop=may_drop, is_same_target=same
    )


def test_gradient_that_arrives_beside_an_unchanged_target_is_proof() -> None:
    before = AnswerSeen(("w", "x"), (OK, NONE), (ONE, None), ONE)
    proof = verdict(before, AnswerSeen(("w", "x"), (OK, OK), (ONE, ONE), Numbers((), 1.0 + 1e-9, (1.0 + 1e-9,))))
    assert isinstance(proof, Proof) and proof.target_unchanged is True
    assert proof.sources["x"].norm == 1.0


@pytest.mark.parametrize(
    ("after", "key"),
    [
        (AnswerSeen(("w", "x"), (OK, NONE), (), ONE), "still-missing"),
        (AnswerSeen(("w", "x"), (NONE, OK), (), ONE), "other-worse"),
        (AnswerSeen(("w",), (OK,), (), ONE), "still-missing"),
        (AnswerSeen(("w", "x"), (OK, OK), (), Numbers((), 2.0, (2.0,))), "target-changed"),
    ],
)
def test_what_speaks_against_a_fix_is_named(after: AnswerSeen, key: str) -> None:
    before = AnswerSeen(("w", "x"), (OK, NONE), (), ONE)
    told = verdict(before, after)
    assert isinstance(told, Text) and told.key == f"fixes/problem/{key}"


def test_unsafe_fix_may_change_the_target_and_says_so() -> None:
    before = AnswerSeen(("x",), (NONE,), (), ONE)
    proof = verdict(before, AnswerSeen(("x",), (OK,), (), Numbers((), 2.0, (2.0,))), is_safe=False)
    assert isinstance(proof, Proof) and proof.target_unchanged is False


def test_source_that_is_not_asked_any_more_is_no_fault_of_a_fix_that_says_so() -> None:
    before = AnswerSeen(("w", "x"), (OK, NONE), (), ONE)
    assert isinstance(verdict(before, AnswerSeen(("w",), (OK,), (), ONE), may_drop=True), Proof)

"""How the user's files are read and shown."""

from __future__ import annotations

import ast
import hashlib
import linecache
import os
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradwhy.source import files
from gradwhy.source.files import read, shown_path


@pytest.fixture(autouse=True)
def at(tmp_path: Path) -> Iterator[Path]:
    """A working folder of its own, and no text kept."""
    before = files.working_folder()
    files.forget()
    files.start_in(str(tmp_path))
    yield tmp_path
    files.forget()
    files.start_in(before)


def lines_of(content: bytes, at: Path, name: str = "given.py") -> tuple[str, ...] | None:
    (at / name).write_bytes(content)
    file = read(name)
    return None if file is None else file.lines


@pytest.mark.parametrize(
    "content",
    [
        "权重 = 1\n".encode(),
        b"\xef\xbb\xbf" + "权重 = 1\n".encode(),
        "# -*- coding: gbk -*-\n权重 = 1\n".encode("gbk"),
        "#!/usr/bin/python\n# vim: set fileencoding=gb18030 :\n权重 = 1\n".encode("gb18030"),
        "# coding=utf-8\n权重 = 1\n".encode(),
    ],
    ids=["utf-8", "utf-8 with a mark", "gbk", "gb18030 in the second line", "utf-8 declared"],
)
def test_encoding_follows_what_the_file_declares(content: bytes, at: Path) -> None:
    lines = lines_of(content, at)
    assert lines is not None and lines[-2:] == ("权重 = 1", "")


@pytest.mark.parametrize(
    "content", [b"x = '\xff'\n", b"# coding: nonsense\n", "# coding: gbk\n权".encode() + b"\xff\n"]
)
def test_text_that_python_cannot_read_is_none(content: bytes, at: Path) -> None:
    assert lines_of(content, at) is None


def test_lines_are_counted_as_python_counts_them(at: Path) -> None:
    content = "a = 1\r\nb = 2\rc = 'x\x0cy\x1cz\u2028'\nd = 4".encode()
    lines = lines_of(content, at)
    assert lines == ("a = 1", "b = 2", "c = 'x\x0cy\x1cz\u2028'", "d = 4")
    tree = ast.parse(content)
    assert [part.lineno for part in tree.body] == [1, 2, 3, 4]
    file = read("given.py")
    assert file is not None and file.tree is not None
    assert [part.lineno for part in file.tree.body] == [1, 2, 3, 4]


def test_hash_is_that_of_the_bytes(at: Path) -> None:
    content = "# coding: gbk\r\n权重 = 1\r\n".encode("gbk")
    (at / "given.py").write_bytes(content)
    file = read("given.py")
    assert file is not None and file.sha256 == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("line", ["权重 = '梯度' + x", "x = 1", "\t损 = 失"])
def test_columns_are_characters_and_offsets_bytes(line: str) -> None:
    files.supply("given.py", f"{line}\n".encode())
    file = read("given.py")
    assert file is not None
    for column in range(1, len(line) + 2):
        offset = len(line[: column - 1].encode())
        assert file.offset(1, column) == offset
        assert file.column(1, offset) == column


def test_text_is_read_once(at: Path) -> None:
    assert lines_of(b"first = 1", at) == ("first = 1",)
    assert lines_of(b"second = 2", at) == ("first = 1",)


def test_text_is_the_one_that_ran_not_the_one_on_disk(at: Path) -> None:
    (at / "given.py").write_text("on_disk = 1")
    files.supply(str(at / "given.py"), b"that_ran = 1")
    file = read("given.py")
    assert file is not None and file.text == "that_ran = 1"


def test_tree_of_what_is_not_python_is_none() -> None:
    files.supply("given.py", b"x = (\n")
    file = read("given.py")
    assert file is not None and file.tree is None


@pytest.mark.parametrize("text", [r"x = '\d'", "x = 1or 2", "x = '\0'"])
def test_parsing_shows_and_raises_no_warning(text: str) -> None:
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("error")
        before = list(warnings.filters)
        files.supply("given.py", text.encode())
        file = read("given.py")
        assert file is not None and ("\0" in text or file.tree is not None)
        assert list(warnings.filters) == before
    assert not shown


def test_warning_that_was_shown_once_is_not_shown_again() -> None:
    text = (
        "import sys, warnings\nfrom gradwhy.source import files\n"
        "def warn(): warnings.warn('once')\n"
        "files.supply('given.py', rb\"x = '\\d'\")\n"
        "warn(); assert files.read('given.py').tree; warn()"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr.count("once") == 1


def test_cell_is_read_from_linecache() -> None:
    name = "<ipython-input-3-0123456789ab>"
    assert read(name) is None
    linecache.cache[name] = (12, None, ["权 = 1\n", "y = 2\n"], name)
    try:
        file = read(name)
        assert file is not None and file.lines == ("权 = 1", "y = 2", "")
        assert shown_path(name) == name
    finally:
        del linecache.cache[name]


def test_module_in_an_archive_is_read(at: Path) -> None:
    with zipfile.ZipFile(at / "app.zip", "w") as archive:
        archive.writestr("pack/part.py", "权 = 1\n")
    file = read(str(at / "app.zip" / "pack" / "part.py"))
    assert file is not None and file.lines[0] == "权 = 1"
    assert read(str(at / "app.zip" / "absent.py")) is None


@pytest.mark.parametrize("name", ["absent.py", "", "a\0b.py", "<string>"])
def test_what_is_not_there_is_none(name: str) -> None:
    assert read(name) is None


def test_paths_are_shown_relative_to_the_folder_at_the_start(at: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (at / "sub").mkdir()
    monkeypatch.chdir(at / "sub")
    assert shown_path(str(at / "sub" / "train.py")) == os.path.join("sub", "train.py")
    assert shown_path("train.py") == "train.py"
    assert shown_path(str(at.parent / "train.py")) == str(at.parent / "train.py")
    assert shown_path(str(at) + "-other/train.py") == str(at) + "-other/train.py"


def test_path_behind_a_link_to_the_folder_is_shown_relative(at: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    link = tmp_path_factory.mktemp("elsewhere") / "link"
    link.symlink_to(at)
    (at / "train.py").write_text("x = 1")
    assert shown_path(str(link / "train.py")) == "train.py"
    files.start_in(str(link))
    assert shown_path(str(at / "train.py")) == "train.py"
    assert shown_path(str(link / "train.py")) == "train.py"


def test_link_in_the_folder_is_shown_by_its_own_name(at: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    real = tmp_path_factory.mktemp("elsewhere") / "real.py"
    real.write_text("x = 1")
    (at / "train.py").symlink_to(real)
    assert shown_path(str(at / "train.py")) == "train.py"

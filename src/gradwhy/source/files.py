"""The text of the user's files, as Python read it."""

from __future__ import annotations

import ast
import hashlib
import io
import linecache
import os
import re
import threading
import tokenize
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

_PARSED_AS = "<gradwhy reads this text>"
_QUIET = ("ignore", None, Warning, re.compile(re.escape(_PARSED_AS)), 0)

_lock = threading.RLock()
_read: dict[str, SourceFile] = {}


def _folder_at_start() -> str:
    try:
        return os.getcwd()
    except OSError:
        return os.path.abspath(os.sep)


# The program may change its working folder, so paths are shown relative to the one it was started in.
_start = _folder_at_start()


@dataclass(frozen=True)
class SourceFile:
    """One file of Python: `path` as it is opened, `text` with `\\n` line ends, `lines` without them."""

    path: str
    text: str
    lines: tuple[str, ...]
    sha256: str

    @cached_property
    def tree(self) -> ast.Module | None:
        """The syntax tree; None where the text is not valid Python."""
        try:
            with _quiet_parser():
                return ast.parse(self.text, _PARSED_AS)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None

    def line(self, number: int) -> str:
        """The line with that number, counted from 1; empty where there is none."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    def column(self, line: int, offset: int) -> int:
        """The column, in characters from 1, of a UTF-8 byte offset in a line."""
        text = self.line(line)
        if text.isascii():
            return offset + 1
        return len(text.encode("utf-8", "surrogatepass")[:offset].decode("utf-8", "ignore")) + 1

    def offset(self, line: int, column: int) -> int:
        """The UTF-8 byte offset in a line of a column: what `column` undoes."""
        text = self.line(line)
        return column - 1 if text.isascii() else len(text[: column - 1].encode("utf-8", "surrogatepass"))


def read(file: str) -> SourceFile | None:
    """The file's text, read once and kept; None where there is no text to be had."""
    path = absolute_path(file)
    with _lock:
        known = _read.get(path)
        if known is not None:
            return known
        raw = _bytes_of(path)
        made = _from_bytes(path, raw) if raw is not None else _from_linecache(path)
        # A cell's text may be registered later, and never changes once it is: only what was found is kept.
        if made is not None:
            _read[path] = made
        return made


def supply(file: str, content: bytes) -> None:
    """Read `content` as the text of `file` from here on, whatever the disk says."""
    path = absolute_path(file)
    made = _from_bytes(path, content)
    with _lock:
        _read.pop(path, None)
        if made is not None:
            _read[path] = made


def forget() -> None:
    """Drop every text that is kept, supplied ones too."""
    with _lock:
        _read.clear()


def working_folder() -> str:
    """The folder that paths are shown relative to."""
    return _start


def start_in(folder: str) -> None:
    """Show paths relative to `folder`, for a program that is not started in its working folder."""
    global _start
    _start = os.path.abspath(folder)


def absolute_path(file: str) -> str:
    """The path of a shown file; a name in angle brackets stays what it is."""
    return file if file.startswith("<") or os.path.isabs(file) else os.path.normpath(os.path.join(_start, file))


def shown_path(path: str) -> str:
    """`path` relative to the working folder where it lies below it, else absolute."""
    path = absolute_path(path)
    if path.startswith("<"):
        return path
    for candidate in (path, os.path.realpath(path)):
        for folder in (_start, os.path.realpath(_start)):
            if candidate.startswith(os.path.join(folder, "")):
                return os.path.relpath(candidate, folder)
    return path


def _bytes_of(path: str) -> bytes | None:
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except (OSError, ValueError):
        return _bytes_in_archive(path)


def _bytes_in_archive(path: str) -> bytes | None:
    """The content of a module that was imported from a zip file."""
    archive = path
    while len(archive) > 1 and not os.path.exists(archive):
        archive = os.path.dirname(archive)
    if not os.path.isfile(archive) or not zipfile.is_zipfile(archive):
        return None
    try:
        with zipfile.ZipFile(archive) as held:
            return held.read(os.path.relpath(path, archive).replace(os.sep, "/"))
    except (OSError, KeyError, zipfile.BadZipFile):
        return None


def _from_bytes(path: str, raw: bytes) -> SourceFile | None:
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
        text = io.IncrementalNewlineDecoder(None, translate=True).decode(raw.decode(encoding), final=True)
    except (SyntaxError, UnicodeDecodeError, LookupError):
        return None
    return _source_file(path, text, raw)


def _from_linecache(path: str) -> SourceFile | None:
    try:
        text = "".join(linecache.getlines(path))
    except ValueError:
        return None
    return _source_file(path, text, text.encode("utf-8", "surrogatepass")) if text else None


def _source_file(path: str, text: str, raw: bytes) -> SourceFile:
    # `str.splitlines` also splits at form feeds and Unicode separators, where Python's own line count does not.
    return SourceFile(path, text, tuple(text.split("\n")), hashlib.sha256(raw).hexdigest())


@contextmanager
def _quiet_parser() -> Iterator[None]:
    """Parse without a warning of the program's text (an invalid escape, say) being shown or raised once more.

    `warnings.catch_warnings` would make every warning that was shown once be shown again, and mutes other threads; a filter
    that matches our own file name alone, put into the list in place, does neither.
    """
    filters: list[object] = warnings.filters  # type: ignore[assignment]
    filters.insert(0, _QUIET)
    try:
        yield
    finally:
        if _QUIET in filters:
            filters.remove(_QUIET)

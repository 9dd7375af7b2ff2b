"""Changes as a patch that `git apply` and `patch` take."""

from __future__ import annotations

import difflib
import io
import tokenize
from collections.abc import Iterable, Mapping

from gradwhy.flow import Edit
from gradwhy.source.edits import apply_edits, lines_of

_NO_END = "\n\\ No newline at end of file\n"


def patch(contents: Mapping[str, bytes], edits: Iterable[Edit]) -> str:
    """The unified diff of the edits; `contents` are the files by the names in the edits."""
    every = tuple(edits)
    pieces = []
    for file in dict.fromkeys(edit.file for edit in every):
        content = contents[file]
        changed = changed_by(content, [edit for edit in every if edit.file == file])
        encoding = encoding_of(content)
        before, after = (lines_of(text.decode(encoding)) for text in (content, changed))
        name = file.replace("\\", "/").lstrip("/")
        lines = difflib.unified_diff(before, after, f"a/{name}", f"b/{name}")
        pieces += [line if line.endswith("\n") else line + _NO_END for line in lines]
    return "".join(pieces)


def changed_by(content: bytes, edits: Iterable[Edit]) -> bytes:
    """A file's content with edits made."""
    encoding = encoding_of(content)
    return apply_edits(content, edits, "utf-8" if encoding == "utf-8-sig" else encoding)


def encoding_of(content: bytes) -> str:
    """The encoding that Python reads a file in; a byte order mark counts as text."""
    found = tokenize.detect_encoding(io.BytesIO(content).readline)[0]
    return "utf-8" if found == "utf-8-sig" else found

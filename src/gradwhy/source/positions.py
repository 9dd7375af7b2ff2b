"""Whose code runs, and where in its source."""

from __future__ import annotations

import ast
import os
import re
import sys
import sysconfig
from collections.abc import Iterable
from itertools import islice
from types import CodeType, FrameType

from gradwhy.flow import Place, Span
from gradwhy.source.files import SourceFile, absolute_path, read, shown_path
from gradwhy.source.locate import call_at, header_span, span_of_syntax, statement_at

LONGEST_SPAN = 5
"""How many lines a span may cover; a longer one is narrowed to the part that names what it is."""

STAND_IN = "<gradwhy stands in>"
"""The qualified name of code of ours that says it is from the user's file, so that warnings are told with the right place."""

_INSTALLED = re.compile(r"[\\/](?:site|dist)-packages[\\/]")
_TYPED = re.compile(r"<(?:stdin|string|console|input|ipython-input.*|python-input.*|cell.*|doctest .*)>$")
_MOST_VERDICTS = 50_000

_verdicts: dict[int, bool] = {}
# An id is only good while its code lives, so every code object with a verdict is kept.
_judged: list[CodeType] = []
_files: dict[str, bool] = {}
_library_folders: set[str] = set()


def is_user_code(code: CodeType) -> bool:
    """Whether the program's author wrote this code, rather than Python, an installed library or gradwhy."""
    verdict = _verdicts.get(id(code))
    return _judge(code) if verdict is None else verdict


def is_user_file(path: str) -> bool:
    """Whether a file is the author's own: not of Python, of an installed library or of gradwhy."""
    known = _files.get(path)
    if known is None:
        whole = absolute_path(path)
        known = _files[path] = not any(_is_library_path(spelling) for spelling in {whole, os.path.realpath(whole)})
    return known


def mark_library(folder: str) -> None:
    """Count the code below `folder` as a library's: a framework that runs from its own source tree."""
    _library_folders.update(_spellings(folder))
    _files.clear()
    _verdicts.clear()
    _judged.clear()


def user_frames(frame: FrameType | None, limit: int = 16) -> tuple[tuple[CodeType, int], ...]:
    """The code and `f_lasti` of the user's frames among `frame` and its callers, innermost first."""
    found: list[tuple[CodeType, int]] = []
    # This runs for every op of the program, so a missing verdict is met as an exception, not looked for.
    while True:
        try:
            while frame is not None:
                code = frame.f_code
                if _verdicts[id(code)]:
                    found.append((code, frame.f_lasti))
                    if len(found) >= limit:
                        break
                frame = frame.f_back
            return tuple(found)
        except KeyError:
            _judge(code)


def live_user_frames(frame: FrameType | None, limit: int = 16) -> tuple[FrameType, ...]:
    """The user's frames themselves, innermost first, for a look at their names."""
    found: list[FrameType] = []
    while frame is not None and len(found) < limit:
        if is_user_code(frame.f_code):
            found.append(frame)
        frame = frame.f_back
    return tuple(found)


def span_of(code: CodeType, lasti: int) -> Span | None:
    """The source that the instruction at `lasti` was compiled from; None where it has no line."""
    line, end_line, offset, end_offset = _raw_position(code, lasti)
    if line is None:
        return None
    shown = shown_path(code.co_filename)
    file = read(code.co_filename)
    if file is None or end_line is None or offset is None or end_offset is None or end_line > len(file.lines):
        return Span(shown, line)
    span = Span(shown, line, file.column(line, offset), end_line, file.column(end_line, end_offset))
    return span if end_line == line else narrowed(span)


def place_of(code: CodeType, lasti: int) -> Place | None:
    """The span of an instruction with the function it stands in."""
    span = span_of(code, lasti)
    return None if span is None else Place(span, code.co_qualname)


def places_of(raw: Iterable[tuple[CodeType, int]]) -> tuple[Place, ...]:
    """The places of what `user_frames` gave."""
    return tuple(place for code, lasti in raw if (place := place_of(code, lasti)) is not None)


def narrowed(span: Span) -> Span:
    """The part of a span over several lines that names what stands there, at most `LONGEST_SPAN` lines.

    That is the header of a `with` and its like, and of anything longer a call's callee or else the first line.
    """
    file = read(span.file)
    if file is None or span.end_line is None:
        return Span(span.file, span.line)
    # Python 3.11 gives the calls of `__enter__`, `__exit__` and `__iter__` the span of the whole statement.
    statement = statement_at(span)
    if statement is not None and span_of_syntax(file, statement, span.file) == span:
        if isinstance(statement, (ast.For, ast.AsyncFor)):
            span = span_of_syntax(file, statement.iter, span.file)
        else:
            span = header_span(file, statement, span.file)
    if _is_short(span):
        return span
    call = call_at(span)
    if call is not None:
        callee = span_of_syntax(file, call.func, span.file)
        return callee if _is_short(callee) else _last_line(file, callee)
    return _first_line(file, span)


def _is_short(span: Span) -> bool:
    return span.end_line is not None and span.end_line - span.line < LONGEST_SPAN


def _first_line(file: SourceFile, span: Span) -> Span:
    end = len(file.line(span.line).rstrip()) + 1
    return Span(span.file, span.line, span.column, span.line, end)


def _last_line(file: SourceFile, span: Span) -> Span:
    """The end of a callee that was written over many lines: the method at the end of a chain of calls."""
    line = span.end_line or span.line
    text = file.line(line)
    return Span(span.file, line, len(text) - len(text.lstrip()) + 1, line, span.end_column)


def _raw_position(code: CodeType, lasti: int) -> tuple[int | None, int | None, int | None, int | None]:
    if lasti < 0:
        # The frame has not run yet.
        return code.co_firstlineno, None, None, None
    # One entry for each code unit of two bytes.
    return next(islice(code.co_positions(), lasti // 2, None), (None, None, None, None))


def _judge(code: CodeType) -> bool:
    if len(_judged) >= _MOST_VERDICTS:
        # A program that compiles code without end must not make us keep all of it.
        _verdicts.clear()
        _judged.clear()
    verdict = _is_users(code)
    _judged.append(code)
    _verdicts[id(code)] = verdict
    return verdict


def _is_users(code: CodeType) -> bool:
    name = code.co_filename
    if code.co_qualname == STAND_IN:
        return False
    if name.startswith("<"):
        # The methods that `dataclasses` writes are compiled from a `<string>`, too.
        return _TYPED.match(name) is not None and not code.co_qualname.startswith("__create_fn__")
    return is_user_file(name)


def _is_library_path(path: str) -> bool:
    return _INSTALLED.search(path) is not None or any(path.startswith(folder) for folder in _library_folders)


def _spellings(folder: str) -> set[str]:
    return {os.path.join(path, "") for path in (os.path.abspath(folder), os.path.realpath(folder))}


def _folders_of_python() -> set[str]:
    """The standard library of this Python and of the one a virtual environment stands on, and gradwhy's own folder."""
    schemes = [sysconfig.get_paths()]
    for prefix in {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}:
        names = {"base": prefix, "platbase": prefix, "installed_base": prefix, "installed_platbase": prefix}
        schemes.append(sysconfig.get_paths(vars=names))
    wanted = {scheme[key] for scheme in schemes for key in ("stdlib", "platstdlib", "purelib", "platlib")}
    wanted |= {os.path.dirname(os.__file__), os.path.dirname(os.path.dirname(os.path.abspath(__file__)))}
    wanted |= {path for path in sys.path if re.fullmatch(r"python\d+\.zip", os.path.basename(path))}
    if sys.prefix != sys.base_prefix:
        wanted.add(sysconfig.get_paths()["scripts"])
    return set().union(*map(_spellings, wanted))


_library_folders |= _folders_of_python()

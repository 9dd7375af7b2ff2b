"""Tracebacks without our frames, shown as Python shows them."""

from __future__ import annotations

import os
import sys
import traceback
from contextlib import suppress
from itertools import pairwise
from types import CodeType, SimpleNamespace, TracebackType

from gradwhy.source.positions import STAND_IN

_OURS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")


def without_ours(problem: BaseException) -> BaseException:
    """`problem` itself, with our frames taken out of its traceback and out of those of all exceptions it hangs on."""
    waiting, seen = [problem], {id(problem)}
    while waiting:
        current = waiting.pop()
        current.__traceback__ = _stripped(current.__traceback__)
        linked = [current.__cause__, current.__context__]
        if isinstance(current, BaseExceptionGroup):
            linked += current.exceptions
        for other in linked:
            if other is not None and id(other) not in seen:
                seen.add(id(other))
                waiting.append(other)
    return problem


def show_uncaught(problem: BaseException) -> int:
    """Print an uncaught exception through the program's own `sys.excepthook`, as Python does, and give the exit status."""
    without_ours(problem)
    kind, place = type(problem), problem.__traceback__
    sys.last_type, sys.last_value, sys.last_traceback = kind, problem, place
    if sys.version_info >= (3, 12):
        sys.last_exc = problem
    hook = getattr(sys, "excepthook", None)
    sys.audit("sys.excepthook", hook, kind, problem, place)
    if hook is None:
        _write("sys.excepthook is missing\n")
        sys.__excepthook__(kind, problem, place)
        return 1
    try:
        hook(kind, problem, place)
    except SystemExit as stop:
        return status_of(stop)
    except BaseException as broken:
        without_ours(broken)
        _write("Error in sys.excepthook:\n" + "".join(traceback.format_exception(broken)))
        _write("\nOriginal exception was:\n")
        sys.__excepthook__(kind, problem, place)
    return 1


def show_ignored(problem: BaseException, owner: object) -> None:
    """Tell of an exception that Python goes on after, as it does itself when it waits for threads at its end."""
    without_ours(problem)
    if sys.unraisablehook is not sys.__unraisablehook__:
        # The class that Python passes is not to be had.
        given = SimpleNamespace(
            exc_type=type(problem), exc_value=problem, exc_traceback=problem.__traceback__, err_msg=None, object=owner
        )
        sys.unraisablehook(given)
        return
    frames = "".join(traceback.format_tb(problem.__traceback__))
    _write(
        f"Exception ignored in: {owner!r}\nTraceback (most recent call last):\n{frames}{type(problem).__name__}: {problem}\n"
    )


def status_of(stop: SystemExit) -> int:
    """The exit status that `SystemExit` asks for; a message is printed to standard error."""
    code = stop.code
    if code is None:
        return 0
    if isinstance(code, int):
        # C takes what fits into a long, and -1 for what does not.
        return int(code) if -(2**63) <= code < 2**63 else -1
    try:
        text = str(code)
    except Exception:
        text = ""
    _write(text)
    _write("\n")
    return 1


def is_ours(code: CodeType) -> bool:
    """Whether code is gradwhy's own, be it in the user's name."""
    return code.co_filename.startswith(_OURS) or code.co_qualname == STAND_IN


def _stripped(place: TracebackType | None) -> TracebackType | None:
    kept = []
    while place is not None:
        if not is_ours(place.tb_frame.f_code):
            kept.append(place)
        place = place.tb_next
    for outer, inner in pairwise([*kept, None]):
        if outer is not None:
            outer.tb_next = inner
    return kept[0] if kept else None


def _write(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):
        # The program has taken it away or closed it; Python then writes to the file that it stood for.
        with suppress(OSError):
            if sys.stderr is None or text == "\n":
                os.write(2, text.encode("utf-8", "backslashreplace"))

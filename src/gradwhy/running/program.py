"""The user's program, run in this process as `python` runs it."""

from __future__ import annotations

import atexit
import builtins
import importlib.machinery
import os
import pkgutil
import runpy
import subprocess
import sys
import threading
import tokenize
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO
from types import CodeType, MappingProxyType, ModuleType

from gradwhy.running.tracebacks import show_ignored, show_uncaught, status_of
from gradwhy.source import files

INTERRUPTED = 130
"""What a shell reports of a program that died of an interrupt."""


@dataclass(frozen=True, slots=True)
class Program:
    """What stands on the command line: `target` is a script, a folder or archive with a `__main__.py`, `-`, or a module."""

    target: str
    arguments: tuple[str, ...] = ()
    is_module: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a program ended: its exit status, and the exception that nobody caught, but for SystemExit.

    `has_started` is False where not a line of it ran: it is not there, or is not Python.
    """

    status: int
    problem: BaseException | None = None
    has_started: bool = True


class _CannotStartError(Exception):
    """The program is not there; what there is to say has been printed."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def run(program: Program, texts: Mapping[str, bytes] = MappingProxyType({})) -> Outcome:
    """Run the program to the end of its main thread; an uncaught exception has then been shown, as Python shows it.

    `sys.argv`, `sys.path[0]` and `sys.modules["__main__"]` are the program's from here on. Its other threads may still run
    and its exit handlers have not: `wind_down` waits for them. `texts` are read in the stead of the files of those real paths.
    """
    if folder := _working_folder():
        files.start_in(folder)
    try:
        start = _prepared(program, texts)
    except _CannotStartError as missing:
        return Outcome(missing.status, has_started=False)
    except SyntaxError as problem:
        return Outcome(show_uncaught(problem), problem, has_started=False)
    return _outcome_of(start)


def wind_down() -> None:
    """Wait for the program's threads and call its exit handlers: what Python does before it takes itself down.

    Python would call them itself once we return, too late for their questions to be in the report. It finds nothing left to
    do then. What the program does later still, in `__del__` methods while modules are torn down, is not observed.
    """
    for step in (getattr(threading, "_shutdown", None), getattr(atexit, "_run_exitfuncs", None)):
        try:
            if step is not None:
                step()
        except BaseException as problem:
            show_ignored(problem, threading)


def leave(outcome: Outcome) -> int:
    """The exit status to end with. An interrupted program dies of the signal, as under Python: this raises KeyboardInterrupt.

    The traceback has been shown already, so that nothing is printed on the way out.
    """
    # Not so for a class derived from it: only the class itself makes Python end by the signal.
    if type(outcome.problem) is KeyboardInterrupt:
        sys.excepthook = lambda *_: None
        raise KeyboardInterrupt
    return outcome.status


def _outcome_of(start: Callable[[], None]) -> Outcome:
    # The program must not run inside a handler: its exceptions would be chained to the handled one.
    problem: BaseException | None = None
    try:
        start()
    except SystemExit as stop:
        return Outcome(status_of(stop))
    except BaseException as uncaught:
        problem = uncaught
    if problem is None:
        return Outcome(0)
    status = show_uncaught(problem)
    return Outcome(INTERRUPTED if type(problem) is KeyboardInterrupt else status, problem)


def _prepared(program: Program, texts: Mapping[str, bytes]) -> Callable[[], None]:
    """Set the scene for the program, and give what runs it."""
    if program.is_module:
        sys.argv[:] = ["-m", *program.arguments]
        _lead_path(_working_folder())
        _fresh_main()
        # What Python itself calls for `-m`; it runs the module in `sys.modules["__main__"]`, and leaves it there.
        return lambda: runpy._run_module_as_main(program.target)  # type: ignore[attr-defined]
    sys.argv[:] = [program.target, *program.arguments]
    if program.target == "-":
        return _standard_input()
    # Python makes the path absolute without tidying it up.
    path = _working_folder() if program.target in ("", ".") else os.path.join(_working_folder(), program.target)
    if pkgutil.get_importer(path) is not None:
        _lead_path(path, always=True)
        _fresh_main()
        return lambda: runpy._run_module_as_main("__main__", False)  # type: ignore[attr-defined]
    return _script(path, texts)


def _script(path: str, texts: Mapping[str, bytes]) -> Callable[[], None]:
    try:
        with open(path, "rb") as stream:
            content = texts.get(os.path.realpath(path), b"") or stream.read()
    except OSError as missing:
        print(
            f"{sys.executable}: can't open file {path!r}: [Errno {missing.errno}] {missing.strerror}", file=sys.stderr
        )
        raise _CannotStartError(2) from None
    _lead_path(os.path.dirname(os.path.realpath(path)))
    if path.endswith(".pyc"):
        compiled = importlib.machinery.SourcelessFileLoader("__main__", path)
        return _main_of(compiled.get_code("__main__"), _fresh_main(compiled, path))
    main = _fresh_main(importlib.machinery.SourceFileLoader("__main__", path), path)
    files.supply(path, content)
    return _main_of(_compiled(content, path), main)


def _standard_input() -> Callable[[], None]:
    content = sys.stdin.buffer.read()
    _lead_path("")
    files.supply("<stdin>", content)
    return _main_of(_compiled(content, "<stdin>"), _fresh_main())


def _compiled(content: bytes, path: str) -> CodeType:
    problem = None
    try:
        return compile(content, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as wrong:
        problem = wrong
    if path != "<stdin>" and not _is_text(content):
        # Python words it otherwise for a file than for bytes, in each version anew: let it say so itself. It runs nothing.
        raise _CannotStartError(subprocess.run([sys.executable, path], check=False).returncode)
    problem.__traceback__ = None
    raise problem if isinstance(problem, SyntaxError) else SyntaxError(str(problem))


def _is_text(content: bytes) -> bool:
    try:
        encoding, _ = tokenize.detect_encoding(BytesIO(content).readline)
        return "\0" not in content.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError):
        return False


def _main_of(code: CodeType | None, main: ModuleType) -> Callable[[], None]:
    names = vars(main)

    def start() -> None:
        try:
            exec(code or "", names)
        finally:
            # Python takes these away, too, before it calls the exit handlers.
            names.pop("__file__", None)
            names.pop("__cached__", None)

    return start


def _fresh_main(loader: object = importlib.machinery.BuiltinImporter, path: str | None = None) -> ModuleType:
    """A `__main__` like the one that Python makes, in the place of ours."""
    main = ModuleType("__main__")
    names = vars(main)
    names["__loader__"] = loader
    if sys.version_info < (3, 14):
        names["__annotations__"] = {}
    names["__builtins__"] = builtins
    if path is not None:
        names["__file__"] = path
        names["__cached__"] = None
    sys.modules["__main__"] = main
    return main


def _lead_path(folder: str, *, always: bool = False) -> None:
    """Put `folder` where Python puts the program's: in the place of the one that our own start put there."""
    if sys.flags.safe_path:
        # Neither has our own start put one there.
        if always:
            sys.path.insert(0, folder)
    elif sys.path:
        sys.path[0] = folder
    else:
        sys.path.append(folder)


def _working_folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""

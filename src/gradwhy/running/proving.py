"""Running a changed program again, in a process of its own and without a change on the disk."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from gradwhy.fix.verdict import AnswerSeen
from gradwhy.flow import ModelError, Numbers, Status, Text, from_json
from gradwhy.running.occasions import Occasion
from gradwhy.running.program import Program

# The program's folder takes the place of the first entry, as it does in a run from the command line.
_START = "import sys; sys.path[0] = sys.exec_prefix; from gradwhy.running.rehearsal import main; main(int(sys.argv[1]))"


@dataclass(frozen=True, slots=True)
class Setting:
    """How a program was started: in which folder, with which environment."""

    program: Program
    folder: str
    environment: Mapping[str, str]

    @staticmethod
    def now(program: Program) -> Setting:
        return Setting(program, os.getcwd(), dict(os.environ))


def rehearse(setting: Setting, texts: Mapping[str, bytes], occasion: Occasion, seconds: float) -> AnswerSeen | Text:
    """What is answered to the question when the program runs with these texts, by path; else why there is no answer.

    The process, and all that it started, is gone when this returns, whatever happens.
    """
    program = setting.program
    instructions = {
        "target": program.target,
        "arguments": list(program.arguments),
        "is_module": program.is_module,
        "occasion": asdict(occasion),
        "texts": {path: base64.b64encode(text).decode() for path, text in texts.items()},
    }
    read_end, write_end = os.pipe()
    try:
        with _Child(setting, write_end) as child:
            os.close(write_end)
            write_end = -1
            _feed(child, json.dumps(instructions).encode())
            return _told(_read_all(read_end, seconds), seconds)
    except OSError as problem:
        return Text("fixes/reason/not-proved", {"problem": str(problem)})
    finally:
        for end in (read_end, write_end):
            if end >= 0:
                os.close(end)


class _Child(contextlib.AbstractContextManager["subprocess.Popen[bytes]"]):
    """The child in a session of its own, killed with all its children on the way out."""

    def __init__(self, setting: Setting, report: int) -> None:
        flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
        self._child = subprocess.Popen(
            [sys.executable, *flags, "-c", _START, str(report)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=setting.folder,
            env=dict(setting.environment),
            pass_fds=(report,),
            start_new_session=True,
        )

    def __enter__(self) -> subprocess.Popen[bytes]:
        return self._child

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            os.killpg(self._child.pid, signal.SIGKILL)
        if self._child.stdin is not None:
            with contextlib.suppress(OSError):
                self._child.stdin.close()
        self._child.wait()


def _feed(child: subprocess.Popen[bytes], instructions: bytes) -> None:
    def write() -> None:
        assert child.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            child.stdin.write(instructions)
            child.stdin.close()

    threading.Thread(target=write, daemon=True).start()


def _read_all(end: int, seconds: float) -> bytes | None:
    """All that is written to a pipe; None where it stays open for longer than that."""
    until = time.monotonic() + seconds
    pieces: list[bytes] = []
    while True:
        left = until - time.monotonic()
        if left <= 0 or not select.select([end], [], [], left)[0]:
            return None
        piece = os.read(end, 1 << 16)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)


def _told(raw: bytes | None, seconds: float) -> AnswerSeen | Text:
    if raw is None:
        return Text("fixes/reason/time-limit", {"seconds": f"{seconds:g}"})
    try:
        told: dict[str, Any] = json.loads(raw)
        if "problem" in told:
            problem = told["problem"]
            return Text("fixes/problem/failed", {"error": problem}) if problem else Text("fixes/problem/never-asked")
        return AnswerSeen(
            tuple(told["names"]),
            tuple(map(Status, told["statuses"])),
            tuple(map(_numbers, told["gradients"])),
            _numbers(told["target"]),
        )
    except (ValueError, KeyError, TypeError, ModelError):
        return Text("fixes/problem/broken")


def _numbers(raw: Any) -> Numbers | None:
    return None if raw is None else from_json(Numbers, raw)

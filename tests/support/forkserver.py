"""Run many programs, each in a process of its own, and import a framework only once.

A server process imports the framework and forks for each program. A framework that was only imported has started no
threads yet, so that the child is as good as a fresh process. `python forkserver.py` is the server; `ForkServer` asks it.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PRELOADED = {
    "tensorflow": ("tensorflow", "keras", "tensorflow.keras", "numpy"),
    # The first optimizer imports `torch._dynamo`, which takes a second (seen in PyTorch 2.13).
    "torch": ("torch", "torch.nn.functional", "torch._dynamo", "numpy"),
    "jax": ("jax", "jax.numpy", "numpy"),
}
OURS = (
    "gradwhy.causes.discover",
    "gradwhy.cli.main",
    "gradwhy.cli.run",
    "gradwhy.diagnose",
    "gradwhy.host.links",
    "gradwhy.render.json",
    "gradwhy.render.terminal",
    "gradwhy.session",
)
"""What `gradwhy run` imports, but for the backends: those are imported when the framework is."""

ENVIRONMENT = {
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TF_NUM_INTRAOP_THREADS": "1",
    "TF_NUM_INTEROP_THREADS": "1",
    "CUDA_VISIBLE_DEVICES": "",
    "JAX_PLATFORMS": "cpu",
    # Compiling takes a third of the time.
    "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    "OMP_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "NO_COLOR": "1",
    "COLUMNS": "100",
    "LC_ALL": "C.UTF-8",
}
TIMED_OUT = 124
INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Finished:
    """How a program ended, and what it wrote."""

    status: int
    out: str
    err: str
    folder: Path
    seconds: float = 0.0


class ForkServer:
    """Programs run under one framework, as many at a time as there are processors."""

    def __init__(self, framework: str) -> None:
        self.framework = framework
        self._folder = tempfile.TemporaryDirectory(prefix="gradwhy-")
        self._asked: dict[int, tuple[Path, Future[Finished]]] = {}
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, __file__, framework],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **ENVIRONMENT},
            text=True,
        )
        threading.Thread(target=self._receive, daemon=True).start()

    def submit(
        self, entry: str, program: Path | str, *arguments: str, name: str = "program.py", timeout: float = 120
    ) -> Future[Finished]:
        """Call `entry`, "MODULE:FUNCTION", on the program's name in an empty folder that holds a copy of it.

        `program` is a file or the text itself. The function gets the name and `arguments`, and gives an exit status.
        """
        with self._lock:
            number = len(self._asked)
            folder = Path(self._folder.name, str(number))
            folder.mkdir()
            text = program.read_bytes() if isinstance(program, Path) else program.encode()
            (folder / name).write_bytes(text)
            future: Future[Finished] = Future()
            self._asked[number] = folder, future
            request = {"number": number, "entry": entry, "folder": str(folder), "timeout": timeout}
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps({**request, "arguments": [name, *arguments]}) + "\n")
            self._process.stdin.flush()
        return future

    def run(self, entry: str, program: Path | str, *arguments: str, **options: Any) -> Finished:
        return self.submit(entry, program, *arguments, **options).result()

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._folder.cleanup()

    def _receive(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            answer = json.loads(line)
            folder, future = self._asked[answer["number"]]
            out, err = ((folder / f".{kind}").read_text("utf-8", "replace") for kind in ("out", "err"))
            future.set_result(Finished(answer["status"], out, err, folder, answer["seconds"]))
        for _, future in self._asked.values():
            if not future.done():
                future.set_exception(RuntimeError(f"the {self.framework} server ended"))


# --- the server


@dataclass
class Child:
    number: int
    start: float
    deadline: float
    has_timed_out: bool = False


class Server:
    def __init__(self, *, answers: int, at_a_time: int) -> None:
        self._answers = answers
        self._at_a_time = at_a_time
        self._waiting: deque[dict[str, Any]] = deque()
        self._children: dict[int, Child] = {}
        self._unread = b""

    def serve(self) -> Callable[[], int] | None:
        """Answer until the other side hangs up. In a child: what it must run."""
        woken, wakes = os.pipe()
        os.set_blocking(wakes, False)
        signal.set_wakeup_fd(wakes)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        is_open = True
        while is_open or self._waiting or self._children:
            while self._waiting and len(self._children) < self._at_a_time:
                if task := self._start(self._waiting.popleft()):
                    return task
            ready, _, _ = select.select([woken, *([0] if is_open else [])], [], [], 1.0)
            if 0 in ready:
                is_open = self._read()
            if woken in ready:
                os.read(woken, 4096)
            self._reap()
        return None

    def _read(self) -> bool:
        piece = os.read(0, 1 << 16)
        *lines, self._unread = (self._unread + piece).split(b"\n")
        self._waiting.extend(json.loads(line) for line in lines)
        return bool(piece)

    def _start(self, request: dict[str, Any]) -> Callable[[], int] | None:
        pid = os.fork()
        if pid == 0:
            os.setpgid(0, 0)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            return lambda: run_child(request)
        now = time.monotonic()
        self._children[pid] = Child(request["number"], now, now + request["timeout"])
        return None

    def _reap(self) -> None:
        for pid, child in list(self._children.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                del self._children[pid]
                code = TIMED_OUT if child.has_timed_out else os.waitstatus_to_exitcode(status)
                answer = {"number": child.number, "status": code, "seconds": time.monotonic() - child.start}
                os.write(self._answers, json.dumps(answer).encode() + b"\n")
            elif time.monotonic() > child.deadline and not child.has_timed_out:
                child.has_timed_out = True
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)


def run_child(request: dict[str, Any]) -> int:
    os.chdir(request["folder"])
    redirect(os.open(os.devnull, os.O_RDONLY), 0)
    redirect(os.open(".out", os.O_WRONLY | os.O_CREAT | os.O_APPEND), 1)
    redirect(os.open(".err", os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
    sys.stdin = open(0, encoding="utf-8", closefd=False)
    module, function = request["entry"].split(":")
    return ending(lambda: getattr(importlib.import_module(module), function)(*request["arguments"]))


def ending(body: Callable[[], int | None]) -> int:
    """The exit status of `body`, which may raise as a program does."""
    try:
        return body() or 0
    except SystemExit as stop:
        if stop.code is None or isinstance(stop.code, int):
            return stop.code or 0
        print(stop.code, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        # What shows it has shown it.
        return INTERRUPTED
    except BaseException:
        traceback.print_exc()
        return 1


def redirect(source: int, target: int) -> None:
    os.dup2(source, target)
    os.close(source)


def main(framework: str) -> None:
    answers = os.dup(1)
    os.set_inheritable(answers, False)
    redirect(os.open(os.devnull, os.O_WRONLY), 1)
    for name in (*PRELOADED[framework], *OURS):
        importlib.import_module(name)
    task = Server(answers=answers, at_a_time=os.cpu_count() or 1).serve()
    if task is None:
        return
    os.close(answers)
    status = task()
    # What the interpreter does at its end, without taking down a framework that another process imported.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


if __name__ == "__main__":
    main(sys.argv[1])

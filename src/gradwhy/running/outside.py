"""What a program does to the world outside it, which a second run would do again."""

from __future__ import annotations

import os
import sys
import tempfile
from types import FrameType
from typing import Any

from gradwhy import version
from gradwhy.flow import Text
from gradwhy.source.files import shown_path
from gradwhy.source.positions import is_user_code

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC
_CHANGING = frozenset({"os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.truncate", "shutil.rmtree", "shutil.move"})
_STARTING = frozenset({"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn"})


_REPORTING = os.path.join(os.path.dirname(version.__file__), "render", "")


class Outside:
    """Notes the first act of the user's code outside the process: a file written, a connection, another program.

    Python's audit events tell them. They do not tell what a framework's own C++ code writes. An audit hook stays for good:
    after `close` it does nothing.
    """

    def __init__(self) -> None:
        self.act: Text | None = None
        self._is_open = True
        self._scratch = os.path.join(os.path.realpath(tempfile.gettempdir()), "")
        self._home = os.path.join(os.path.realpath(os.getcwd()), "")
        sys.addaudithook(self._heard)

    def close(self) -> None:
        self._is_open = False

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._is_open or self.act is not None:
            return
        act = self._act_of(event, arguments)
        if act is not None and _is_by_user(sys._getframe(1)):
            self.act = act

    def _act_of(self, event: str, arguments: tuple[Any, ...]) -> Text | None:
        if event == "open":
            path, mode, flags = arguments
            writes = any(c in mode for c in "wax+") if isinstance(mode, str) else bool((flags or 0) & _WRITING)
            return self._wrote(path) if writes else None
        if event in _CHANGING:
            return self._wrote(arguments[0])
        if event == "socket.connect":
            return Text("fixes/act/connected", {"address": str(arguments[1])})
        return Text("fixes/act/started") if event in _STARTING else None

    def _wrote(self, path: object) -> Text | None:
        if not isinstance(path, (str, bytes)):
            return None
        named = os.path.realpath(os.fsdecode(path))
        # The folder itself is opened for a file without a name, as AutoGraph does.
        is_scratch = os.path.join(named, "").startswith(self._scratch) and not named.startswith(self._home)
        return None if is_scratch or named == os.devnull else Text("fixes/act/wrote", {"file": shown_path(named)})


def _is_by_user(frame: FrameType | None) -> bool:
    """Whether the user's own code called for it: not what a library writes while it is imported, nor our report."""
    while frame is not None:
        if frame.f_code.co_filename.startswith(("<frozen importlib", _REPORTING)):
            return False
        if is_user_code(frame.f_code):
            return True
        frame = frame.f_back
    return False

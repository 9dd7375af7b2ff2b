"""A changed program runs again where it stood, without a change on the disk, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from gradwhy.flow import Text
from gradwhy.running.occasions import Occasion
from gradwhy.running.program import Program
from gradwhy.running.proving import Setting, rehearse

OCCASION = Occasion("tape.gradient", "p.py", "<module>", 0, 1)


def rehearsed(folder: Path, text: str, *arguments: str, seconds: float = 60.0, **beside: str) -> Text:
    """What is told of a program that asks nothing; `beside` are modules, changed as the program itself is."""
    changed = {"p": text, **beside}
    for name in changed:
        (folder / f"{name}.py").write_text("raise AssertionError('as it was')\n", encoding="utf-8")
    setting = Setting(Program("p.py", arguments), str(folder), {**os.environ, "GRADWHY_TEST": "kept"})
    texts = {str(folder / f"{name}.py"): content.encode() for name, content in changed.items()}
    told = rehearse(setting, texts, OCCASION, seconds)
    assert isinstance(told, Text)
    assert all("as it was" in (folder / f"{name}.py").read_text(encoding="utf-8") for name in changed)
    assert not (folder / "__pycache__").exists()
    return told


def test_changed_text_runs_in_the_place_of_the_file_and_of_a_module_beside_it(tmp_path: Path) -> None:
    told = rehearsed(tmp_path, "import other\nraise ValueError(other.word)\n", other="word = 'changed'\n")
    assert told == Text("fixes/problem/failed", {"error": "ValueError: changed"})


def test_program_sees_its_arguments_folder_environment_and_an_empty_standard_input(tmp_path: Path) -> None:
    text = """
import inspect, os, sys

def here():
    return inspect.getsource(here).splitlines()[-1].strip()

assert sys.argv == ["p.py", "--rate", "1"]
assert os.getcwd() == sys.path[0] == os.path.dirname(os.path.abspath(__file__))
assert os.environ["GRADWHY_TEST"] == "kept"
assert sys.stdin.read() == "" and __name__ == "__main__"
# What compiles a function from its source reads the text that runs.
assert here().startswith("return inspect")
"""
    assert rehearsed(tmp_path, text, "--rate", "1") == Text("fixes/problem/never-asked")


def test_program_that_takes_too_long_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    text = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open("pid", "w").write(str(child.pid))
time.sleep(600)
"""
    started = time.monotonic()
    assert rehearsed(tmp_path, text, seconds=4.0) == Text("fixes/reason/time-limit", {"seconds": "4"})
    assert time.monotonic() - started < 60
    pid = int((tmp_path / "pid").read_text(encoding="utf-8"))
    assert not is_running(pid)


def test_program_that_dies_is_told_as_broken(tmp_path: Path) -> None:
    assert rehearsed(tmp_path, "import os\nos._exit(3)\n") == Text("fixes/problem/broken")


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_interrupt_while_a_fix_is_proved_ends_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("print('done')\n", encoding="utf-8")
    code = """
from gradwhy.cli import main, mending

def interrupted(self):
    raise KeyboardInterrupt

mending.Mending.mend = interrupted
main.main(["run", "--fix", "p.py"])
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "done\n", "")

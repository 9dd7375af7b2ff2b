"""What a program does to the world outside it is noticed, and what a second run may do again is not held against it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("code", "act"),
    [
        ("open('a.txt', 'w')", "fixes/act/wrote a.txt"),
        ("import os; os.mkdir('folder')", "fixes/act/wrote folder"),
        ("import subprocess; subprocess.run(['true'])", "fixes/act/started"),
        ("import socket; socket.socket().connect_ex(('127.0.0.1', 9))", "fixes/act/connected"),
        ("open('p.py').read()", "none"),
        ("import tempfile; tempfile.TemporaryFile().write(b'x')", "none"),
        ("import json.tool, email.mime.text", "none"),
    ],
)
def test_first_act_outside_is_named(code: str, act: str, tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(code, encoding="utf-8")
    start = """
from gradwhy.running.outside import Outside
outside = Outside()
exec(compile(open("p.py").read(), "p.py", "exec"), {})
print(outside.act.key if outside.act else "none", (outside.act.values if outside.act else {}).get("file", ""))
"""
    done = subprocess.run([sys.executable, "-c", start], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == act

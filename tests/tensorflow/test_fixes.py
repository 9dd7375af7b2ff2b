"""The fixes of real programs: small, where they say, and never in secret against what the author wrote."""

from __future__ import annotations

import ast
import difflib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from forkserver import ENVIRONMENT, ForkServer
from gradwhy.diagnose import explain
from gradwhy.fix.locality import is_local
from gradwhy.fix.patch import changed_by
from gradwhy.fix.proposals import proposals
from gradwhy.fix.situation import Proposal, Situation
from gradwhy.flow import Applicability, FlowGraph, Question, from_json
from gradwhy.source import files

BANK = Path(__file__).parents[1] / "cases" / "tf"
CASES = json.loads((BANK / "manifest.json").read_text(encoding="utf-8"))
MOST_LINES = 12
# What to ask about instead of token ids, and how to scale an input, is a choice of the model's author.
ADVICE = {"tf-watched-token-ids", "tf-sigmoid-raw-pixels"}
STOPPING = frozenset({"stop_gradient", "stop_recording", "detach", "no_grad"})


@pytest.fixture(scope="module")
def proposed(server_of: Callable[[str], ForkServer]) -> dict[str, list[Proposal]]:
    """The fixes of every program of the bank, by the program's id."""
    server = server_of("tensorflow")
    runs = {
        case["id"]: server.submit("entries:keeping_graphs", BANK / case["file"], name=case["file"], timeout=300)
        for case in CASES
    }
    folder = files.working_folder()
    files.start_in(str(BANK))
    try:
        return {name: list(fixes_of(run.result().folder)) for name, run in runs.items()}
    finally:
        files.start_in(folder)


def fixes_of(folder: Path) -> Iterator[Proposal]:
    for raw_question, raw_graph in json.loads((folder / "asked.json").read_text(encoding="utf-8")):
        question, graph = from_json(Question, raw_question), from_json(FlowGraph, raw_graph)
        for finding in explain(question, graph, 0):
            yield from proposals(Situation(finding, question, lambda file: (BANK / file).read_bytes()))[0]


def changed(case: dict[str, str], proposal: Proposal) -> tuple[bytes, bytes]:
    before = (BANK / case["file"]).read_bytes()
    return before, changed_by(before, proposal.edits)


def test_every_mechanical_program_has_a_small_local_fix(proposed: dict[str, list[Proposal]]) -> None:
    without = {case["id"] for case in CASES if case["mechanical"] and not proposed[case["id"]]}
    assert without == ADVICE
    for case in CASES:
        for proposal in proposed[case["id"]]:
            before, after = changed(case, proposal)
            assert is_local(before, after, proposal.edits), case["id"]
            lines = difflib.ndiff(before.decode().splitlines(), after.decode().splitlines())
            assert sum(line.startswith(("+", "-")) for line in lines) <= MOST_LINES, case["id"]


def test_no_safe_fix_narrows_a_stop_a_pause_or_a_freeze(proposed: dict[str, list[Proposal]]) -> None:
    graded = {p.applicability for found in proposed.values() for p in found}
    assert graded == {Applicability.SAFE, Applicability.UNSAFE}
    for case in CASES:
        for proposal in proposed[case["id"]]:
            before, after = changed(case, proposal)
            if proposal.applicability is Applicability.SAFE:
                assert written_stops(before) == written_stops(after), case["id"]


def written_stops(content: bytes) -> list[str]:
    """Everything in a program that its author wrote to keep a gradient away, with what it covers."""
    found: list[str] = []
    for part in ast.walk(ast.parse(content)):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in STOPPING:
            found.append(ast.dump(part))
        if isinstance(part, ast.With) and "stop_recording" in ast.dump(part.items[0]):
            found.append(ast.dump(part))
        if isinstance(part, ast.keyword) and part.arg == "trainable":
            found.append(ast.dump(part))
        if isinstance(part, ast.Assign) and ast.unparse(part.targets[0]).endswith(".trainable"):
            found.append(ast.dump(part))
    return sorted(found)


def gradwhy(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gradwhy", "run", *arguments]
    environment = {**os.environ, **ENVIRONMENT}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_fix_is_proved_and_written_and_a_second_one_changes_nothing(tmp_path: Path) -> None:
    shutil.copy(BANK / "mask_outside_tape.py", tmp_path / "mask.py")
    original = (tmp_path / "mask.py").read_text(encoding="utf-8")
    first = gradwhy("--fix", "mask.py", folder=tmp_path)
    assert first.returncode == 0
    assert "the gradient of `x` is there" in first.stderr and "`loss` keeps its value" in first.stderr
    fixed = (tmp_path / "mask.py").read_text(encoding="utf-8")
    assert fixed == original.replace("x_ = x @ mask\n", "").replace("    y = layer", "    x_ = x @ mask\n    y = layer")
    second = gradwhy("--fix", "mask.py", folder=tmp_path)
    assert "there is no fix to apply" in second.stderr
    assert (tmp_path / "mask.py").read_text(encoding="utf-8") == fixed
    assert os.listdir(tmp_path) == ["mask.py"]


def test_program_that_writes_files_is_proved_only_when_that_is_allowed(tmp_path: Path) -> None:
    text = "open('log.txt', 'a').write('run\\n')\n" + (BANK / "mask_outside_tape.py").read_text(encoding="utf-8")
    (tmp_path / "mask.py").write_text(text, encoding="utf-8")
    refused = gradwhy("--prove", "mask.py", folder=tmp_path)
    assert "writes the file log.txt" in refused.stderr and "`--yes` allows it" in refused.stderr
    assert (tmp_path / "log.txt").read_text(encoding="utf-8") == "run\n"
    proved = gradwhy("--prove", "--yes", "mask.py", folder=tmp_path)
    assert "the gradient of `x` is there" in proved.stderr
    assert (tmp_path / "mask.py").read_text(encoding="utf-8") == text


def test_module_beside_the_program_is_proved_without_a_change_on_the_disk(tmp_path: Path) -> None:
    text = (BANK / "mask_outside_tape.py").read_text(encoding="utf-8")
    (tmp_path / "mask.py").write_text(text, encoding="utf-8")
    (tmp_path / "main.py").write_text("import mask\n\nprint('after')\n", encoding="utf-8")
    proved = gradwhy("--prove", "--format", "json", "--output", "report.json", "main.py", folder=tmp_path)
    (fix,) = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["findings"][0]["fixes"]
    assert fix["applicability"] == "safe" and fix["diff"].startswith("--- a/mask.py\n+++ b/mask.py\n")
    assert fix["proof"]["sources"]["x"]["status"] == "ok" and fix["proof"]["target_unchanged"] is True
    assert (tmp_path / "mask.py").read_text(encoding="utf-8") == text
    # What comes after the first wrong answer does not run.
    assert "after" not in proved.stdout


def test_program_that_goes_on_for_minutes_is_proved_as_soon_as_it_asks(tmp_path: Path) -> None:
    text = (BANK / "mask_outside_tape.py").read_text(encoding="utf-8")
    (tmp_path / "mask.py").write_text(f"{text}\nimport time\ntime.sleep(1200)\n", encoding="utf-8")
    started = time.monotonic()
    proved = gradwhy("--fix", "mask.py", folder=tmp_path)
    assert "the gradient of `x` is there" in proved.stderr
    assert time.monotonic() - started < 600


@pytest.mark.parametrize(
    ("text", "line", "changed"),
    [
        (
            "@tf.function\ndef step(x):\n    with tf.GradientTape() as tape:\n        y = tf.stop_gradient(w * x) + 1.0\n"
            "        loss = tf.reduce_sum(y)\n    return tape.gradient(loss, w)\n\nprint(step(tf.constant(2.0)))\n",
            "tf.stop_gradient(w * x)",
            "(w * x)",
        ),
        (
            "with tf.GradientTape() as a_tape:\n    a = w * w\nwith tf.GradientTape() as b_tape:\n    b = 2.0 * w\n"
            "print(b_tape.gradient(a, w))\n",
            "b_tape.gradient(a",
            "a_tape.gradient(a",
        ),
        (
            "state = tf.Variable(0.0)\nwith tf.GradientTape() as tape:\n    state.assign(w * 2.0)\n    loss = state ** 2\n"
            "print(tape.gradient(loss, w))\n",
            "    state.assign(w * 2.0)\n    loss = state",
            "    new_state = w * 2.0\n    state.assign(new_state)\n    loss = new_state",
        ),
        (
            "for step in range(2):\n    with tf.GradientTape() as tape:\n        loss = w * w\n"
            "    g = tape.gradient(loss, w)\n    print(g is None)\n    w = w - (g or 0.0)\n",
            "w = w - (g or 0.0)",
            "w.assign_sub(g or 0.0)",
        ),
        (
            "import keras\nclass Scale(keras.layers.Layer):\n    def __init__(self):\n        super().__init__()\n"
            "        self.scale = tf.Variable(1.0)\n    def call(self, x):\n        return x * self.scale\n"
            "model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1), Scale()])\n"
            "model.compile('sgd', 'mse')\nmodel.fit(tf.ones((4, 2)), tf.ones((4, 1)), verbose=0)\n",
            "tf.Variable(1.0)\n    def",
            "keras.Variable(1.0)\n    def",
        ),
        (
            "def encode(x):\n    return x * 3.0\ndef train(v, h):\n    with tf.GradientTape() as tape:\n        loss = h * h\n"
            "    return tape.gradient(loss, v)\ndef main():\n    u = w\n    h = encode(u)\n    print(train(u, h))\nmain()\n",
            "        loss = h * h\n",
            "        h = encode(v)\n        loss = h * h\n",
        ),
    ],
    ids=["compiled", "two tapes", "written", "name given away", "not tracked", "across functions"],
)
def test_unsafe_fix_is_proved_and_written(text: str, line: str, changed: str, tmp_path: Path) -> None:
    text = f"import tensorflow as tf\n\nw = tf.Variable(1.5)\n\n{text}"
    (tmp_path / "program.py").write_text(text, encoding="utf-8")
    run = gradwhy("--fix", "--unsafe", "--to-end", "program.py", folder=tmp_path)
    assert (tmp_path / "program.py").read_text(encoding="utf-8") == text.replace(line, changed), run.stderr

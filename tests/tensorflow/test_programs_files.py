"""Programs of several files, threads and encodings, and programs that TensorFlow ends for want of a gradient."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from forkserver import ENVIRONMENT, ForkServer
from programs import Program, Runs, Said, faults_of, misjudged, report_in

TRAIN = """
import tensorflow as tf

from pkg.features import embed
from .layers import Head

table = tf.Variable([[0.1, 0.2], [0.3, 0.4]])
head = Head()
with tf.GradientTape() as tape:
    loss = tf.reduce_mean(head(embed(table, [0, 1])) ** 2)
gradients = tape.gradient(loss, [table, head.weight])
print([g is None for g in gradients])
"""
FEATURES = """
import tensorflow as tf


def embed(weights, tokens):
    rows = tf.gather(weights, tokens)
    return tf.constant(rows.numpy() / 2.0)  # cut
"""
LAYERS = """
import tensorflow as tf


class Head(tf.Module):
    def __init__(self):
        self.weight = tf.Variable([[1.0], [2.0]])

    def __call__(self, inputs):
        return inputs @ self.weight
"""


def test_cut_in_another_module_of_a_package_is_told_there(tmp_path: Path) -> None:
    """In a process of its own, as `gradwhy run -m pkg.train`."""
    package = tmp_path / "pkg"
    package.mkdir()
    texts = {"__init__.py": "", "train.py": TRAIN, "features.py": FEATURES, "layers.py": LAYERS}
    for name, text in texts.items():
        (package / name).write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "gradwhy", "run", "--format", "json", "--output", "report.json", "-m", "pkg.train"]
    ran = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0 and ran.stdout == "[True, False]\n"
    report = report_in(tmp_path)
    said = [Said("error", "left-framework", ("table",))]
    assert misjudged(report, said, {f"pkg/{name}": text for name, text in texts.items()}) == []
    (finding,) = report.findings
    assert finding.place is not None and finding.place.file == "pkg/features.py"
    assert finding.graph is not None and (report.program, finding.target) == ("pkg.train", "loss")


THREADS = (
    """
import threading

import tensorflow as tf

sources = [tf.Variable([1.0, 2.0 + n]) for n in range(8)]
start = threading.Barrier(8)
found = {}
"""
    + "".join(
        f"""

def work_{n}():
    own_{n} = sources[{n}]
    start.wait()
    for step in range(3):
        with tf.GradientTape() as tape:
            first = tf.exp(own_{n})
            {"stopped = tf.stop_gradient(first)" if n % 2 else "stopped = tf.round(first)"}  # cut {n}
            loss_{n} = tf.reduce_sum(stopped * 2.0)
        found[{n}] = tape.gradient(loss_{n}, own_{n})
"""
        for n in range(8)
    )
    + """

threads = [threading.Thread(target=globals()[f"work_{n}"]) for n in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sorted(found.items()))
"""
)

# TensorFlow has no gradient for this op, and says so in one way where a tape is asked, in another where a function is called.
EAGER_LOOKUP = """
import tensorflow as tf

x = tf.Variable([0.5, 1.5, 0.5])
with tf.GradientTape() as tape:
    values, places = tf.unique(x * 2.0)  # cut
    loss = tf.reduce_sum(values)
print(tape.gradient(loss, x))
"""

CALLED_LOOKUP = """
import tensorflow as tf

x = tf.Variable([0.5, 1.5, 0.5])


@tf.function
def total(given):
    values, places = tf.unique(given * 2.0)  # cut
    return tf.reduce_sum(values)


with tf.GradientTape() as tape:
    loss = total(x)
print(tape.gradient(loss, x))
"""

GRAPH_LOOKUP = """
import tensorflow as tf

x = tf.Variable([0.5, 1.5, 0.5])


@tf.function
def slope():
    with tf.GradientTape() as tape:
        values, places = tf.unique(x * 2.0)  # cut
        loss = tf.reduce_sum(values)
    return tape.gradient(loss, x)


print(slope())
"""

PREVENTED = """
import tensorflow as tf

x = tf.Variable([0.5, 1.5])
with tf.GradientTape() as tape:
    kept = tf.raw_ops.PreventGradient(input=x * 2.0, message="not here")  # cut
    loss = tf.reduce_sum(kept)
print(tape.gradient(loss, x))
"""

PROGRAMS = [
    Program(
        "threads",
        THREADS,
        tuple(
            Said("error", "detached" if n % 2 else "non-differentiable-op", (f"own_{n}",), f"cut {n}") for n in range(8)
        ),
    ),
    Program(
        "eager-lookup",
        EAGER_LOOKUP,
        (Said("error", "no-gradient-registered", ("x",)),),
        "LookupError: gradient registry has no entry for: Unique",
    ),
    Program(
        "called-lookup",
        CALLED_LOOKUP,
        (Said("error", "no-gradient-registered", ("x",)),),
        "LookupError: No gradient defined for operation",
    ),
    Program(
        "graph-lookup",
        GRAPH_LOOKUP,
        (Said("error", "no-gradient-registered", ("x",)),),
        "LookupError: gradient registry has no entry for: Unique",
    ),
    Program(
        "prevented",
        PREVENTED,
        (Said("error", "detached", ("x",)),),
        "LookupError: Gradient explicitly disabled. Reason: b'not here'",
    ),
]


@pytest.fixture(scope="module")
def runs(server_of: Callable[[str], ForkServer]) -> Runs:
    return Runs(server_of("tensorflow"), PROGRAMS)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.id)
def test_program_is_told_what_happened(program: Program, runs: Runs) -> None:
    assert faults_of(program, runs.of(program)) == []


CHINESE = """# -*- coding: gbk -*-
import tensorflow as tf

权重 = tf.Variable([1.0, 2.0], name="weights")
with tf.GradientTape() as 磁带:
    损失 = tf.reduce_sum(tf.floor(权重) * 2.0)  # 取整 cut
print(磁带.gradient(损失, 权重))
"""


def test_source_in_another_encoding_is_quoted_as_it_is_written(
    server_of: Callable[[str], ForkServer], tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_bytes(CHINESE.encode("gbk"))
    ran = server_of("tensorflow").run("entries:observed", program)
    report = report_in(ran.folder)
    said = [Said("error", "non-differentiable-op", ("权重",), "取整 cut")]
    assert ran.status == 0 and ran.out == "None\n"
    assert misjudged(report, said, {"program.py": CHINESE}) == []
    (finding,) = report.findings
    line = CHINESE.split("\n")[5]
    assert finding.place is not None and finding.place.column == line.index("tf.floor") + 1
    assert finding.place.end_column == line.index(" * 2.0") + 1
    assert finding.target == "损失" and line in report.files["program.py"].lines.values()

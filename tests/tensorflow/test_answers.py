"""What is said of small programs, each of one kind: the cause and the line, or nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import Future
from textwrap import dedent

import pytest

from forkserver import Finished, ForkServer
from gradwhy.flow import Report, from_json

DECIDED = {
    "a comparison under `if` has no derivative": (
        "non-differentiable-op",
        3,
        """\
        with tf.GradientTape() as tape:
            score = w * 0.3
            if score > v:
                loss = score * score
            else:
                loss = score + 1.0
        """,
    ),
    "a variable that is a condition by itself has none either": (
        "non-differentiable-op",
        2,
        """\
        with tf.GradientTape() as tape:
            loss = w * 2.0 if v else w
        """,
    ),
    "a function that returns early was left because of it": (
        "non-differentiable-op",
        2,
        """\
        def early(x):
            if x < v:
                return x
            return x * 2.0
        with tf.GradientTape() as tape:
            loss = early(w)
        """,
    ),
    "Python's `max` takes one of the two": (
        "non-differentiable-op",
        2,
        """\
        with tf.GradientTape() as tape:
            loss = w * max(v, 9.0)
        """,
    ),
    "a number of turns is a plain number": (
        "left-framework",
        3,
        """\
        with tf.GradientTape() as tape:
            loss = w * 1.0
            for _ in range(int(v)):
                loss = loss * 0.9
        """,
    ),
    "so it is under a name, and in another function": (
        "left-framework",
        6,
        """\
        def unroll(x, steps):
            for _ in range(steps):
                x = x * 0.9
            return x
        with tf.GradientTape() as tape:
            steps = int(v)
            loss = unroll(w, steps)
        """,
    ),
    "a position is a plain number": (
        "left-framework",
        3,
        """\
        data = tf.constant([1.0, 2.0, 3.0])
        with tf.GradientTape() as tape:
            loss = w * data[int(v)]
        """,
    ),
    "what is only printed or checked decides nothing": (
        "unused",
        4,
        """\
        with tf.GradientTape() as tape:
            if v > 0.0:
                print("positive")
            assert v > 0.0
            loss = w * 2.0
        """,
    ),
}
ROUND_TRIPS = {
    "a global array that was computed from it": (
        "outside-tape",
        1,
        """\
        table = np.linspace(0.0, 1.0, 6) ** v.numpy()
        def loss_of(x):
            return tf.reduce_sum(x * table.astype("float32") * w)
        with tf.GradientTape() as tape:
            loss = loss_of(tf.ones([6]))
        """,
    ),
    "a global number that became a constant of a compiled function": (
        "outside-tape",
        1,
        """\
        k = float(v) * 2.37
        @tf.function
        def loss_of(x):
            return x * k * w
        with tf.GradientTape() as tape:
            loss = loss_of(tf.constant(1.0))
        """,
    ),
    "an array that an object was made with": (
        "outside-tape",
        7,
        """\
        class Loss:
            def __init__(self, temperature):
                self.scale = np.exp(temperature)
            def __call__(self, x):
                return tf.reduce_sum(x * self.scale) * w
        def main():
            criterion = Loss(temperature=v.numpy() * np.ones(3, "float32"))
            with tf.GradientTape() as tape:
                return tape, criterion(tf.ones([3]))
        tape, loss = main()
        """,
    ),
    "an argument that the caller computed with NumPy": (
        "left-framework",
        6,
        """\
        def loss_of(x, rates):
            twice = rates * 2.0
            return tf.reduce_sum(x * twice) * w
        def main():
            with tf.GradientTape() as tape:
                rates = np.exp(v.numpy() * np.ones(3, "float32"))
                return tape, loss_of(tf.ones([3]), rates)
        tape, loss = main()
        """,
    ),
    "a number that left and is not what the target reads": (
        "unused",
        -1,
        """\
        table = np.arange(3.0)
        scale = float(v) * 2.37
        def loss_of(x):
            return tf.reduce_sum(x * table.astype("float32") * w)
        with tf.GradientTape() as tape:
            loss = loss_of(tf.ones([3]))
        """,
    ),
}
MADE_BESIDE = {
    "a slice is not what the target was computed with": (
        "rebound",
        4,
        """\
        points = tf.random.uniform([4, 2])
        with tf.GradientTape() as tape:
            tape.watch(points)
            v, t = points[:, :1], points[:, 1:]
            loss = tf.reduce_sum(tf.sin(points @ tf.ones([2, 1]) * w))
        """,
    ),
}
REFUSED = {
    "a tape that no `with` opened has nothing to watch with": (
        "wrong-tape",
        2,
        """\
        tape = tf.GradientTape()
        tape.watch(v)
        loss = v * w
        """,
    ),
    "nor has it recorded anything": (
        "wrong-tape",
        3,
        """\
        tape = tf.GradientTape(persistent=True)
        loss = v * 2.0
        print(tape.gradient(loss, v))
        """,
    ),
    "an array is no Keras variable": (
        "not-watched",
        3,
        """\
        v = np.ones(3, "float32")
        with tf.GradientTape() as tape:
            tape.watch(v)
            loss = tf.reduce_sum(v * w)
        """,
    ),
}
HEAD = "import numpy as np, tensorflow as tf\nv = tf.Variable(1.5)\nw = tf.Variable(2.0)\n"
TAIL = "print(tape.gradient(loss, [w, v]))\n"
PROGRAMS = DECIDED | ROUND_TRIPS | REFUSED | MADE_BESIDE


@pytest.fixture(scope="module")
def answered(server_of: Callable[[str], ForkServer]) -> dict[str, Future[Finished]]:
    server = server_of("tensorflow")
    return {
        name: server.submit("entries:observed", HEAD + dedent(text) + TAIL, timeout=300)
        for name, (_, _, text) in PROGRAMS.items()
    }


@pytest.mark.parametrize("name", PROGRAMS)
def test_only_the_lost_source_is_blamed_and_where_it_was_lost(name: str, answered: dict[str, Future[Finished]]) -> None:
    cause, line, _ = PROGRAMS[name]
    findings = report_of(answered[name].result()).findings
    found = [(f.cause, [s.name for s in f.sources], f.place.line if f.place else None) for f in findings]
    assert found == [(cause, ["v"], line + HEAD.count("\n"))]


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_is_told_of_what_was_passed(name: str, answered: dict[str, Future[Finished]]) -> None:
    finding = report_of(answered[name].result()).findings[0]
    expected = {"wrong-tape": "wrong-tape/help/enter", "not-watched": "not-watched/help/tensor-first"}
    assert finding.help.key == expected[finding.cause]


def test_a_part_is_told_from_an_object_of_the_same_name(answered: dict[str, Future[Finished]]) -> None:
    finding = report_of(answered[next(iter(MADE_BESIDE))].result()).findings[0]
    assert finding.labels[0].text.key == "rebound/labels/derived"
    assert finding.help.key == "rebound/help/derived"


def report_of(run: Finished) -> Report:
    return from_json(Report, json.loads((run.folder / "report.json").read_text(encoding="utf-8")))

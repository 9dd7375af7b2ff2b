"""Of two tapes the one that recorded is named, where the asked one held nothing of the path."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from forkserver import ForkServer

HEAD = "import tensorflow as tf\na, b = tf.Variable(2.0), tf.Variable(3.0)\n"
SWAPPED = """\
with tf.GradientTape() as a_tape:
    la = a * a
with tf.GradientTape() as b_tape:
    lb = b * b
print(b_tape.gradient(la, a), a_tape.gradient(lb, b))
"""
NESTED = """\
with tf.GradientTape() as outer:
    with tf.GradientTape() as inner:
        y = a * a
    z = y * b
print(inner.gradient(z, a))
"""
LATE = """\
with tf.GradientTape() as outer:
    y = a * a
    with tf.GradientTape() as inner:
        z = b * b
print(inner.gradient(y, a))
"""
REUSED = """\
for step in range(2):
    with tf.GradientTape() as tape:
        loss = kept if step else a * a
        kept = loss
    print(tape.gradient(loss, a))
"""


def found(server_of: Callable[[str], ForkServer], text: str) -> list[tuple[str, str, set[int]]]:
    """The cause, the key of the help, and the lines of the cuts of every finding."""
    run = server_of("tensorflow").run("entries:observed", HEAD + text)
    report = json.loads((run.folder / "report.json").read_text(encoding="utf-8"))
    return [
        (f["cause"], f["help"]["key"].rpartition("/")[2], {cut["span"]["line"] for cut in f["cuts"]})
        for f in report["findings"]
    ]


def test_each_of_two_swapped_tapes_is_named(server_of: Callable[[str], ForkServer]) -> None:
    first, second = found(server_of, SWAPPED)
    assert first == ("wrong-tape", "ask", {4, 7})
    assert second == ("wrong-tape", "ask", {6, 7})


@pytest.mark.parametrize(
    ("text", "cause"), [(NESTED, "after-tape"), (LATE, "outside-tape"), (REUSED, "wrong-tape")], ids=["nested", "late", "kept"]
)  # fmt: skip
def test_tape_around_the_asked_one_or_of_its_name_is_not_the_one_to_ask(
    text: str, cause: str, server_of: Callable[[str], ForkServer]
) -> None:
    ((named, help, _),) = found(server_of, text)
    assert (named, help != "ask") == (cause, True)

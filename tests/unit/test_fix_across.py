"""What a caller computed is computed under the recording of the function that it calls, by that one's names."""

from __future__ import annotations

import pytest

from gradwhy.fix.across import compute_inside
from gradwhy.fix.patch import changed_by
from gradwhy.fix.situation import NoFixError, Situation
from gradwhy.flow import (
    Applicability,
    Asked,
    FlowGraph,
    Input,
    Op,
    Place,
    Question,
    Scope,
    ScopeRole,
    Source,
    Status,
    Value,
    ValueKind,
)
from situations import situation_of, span_in

PROGRAM = """\
import tensorflow as tf
from nets import encode
MASK = tf.constant(1.0)

def train(source, features, rate=0.1):
    with tf.GradientTape() as tape:
        loss = f(features)
    return tape.gradient(loss, source)

def main():
    x = tf.Variable(1.0)
    h = encode(x, MASK)
    train(x, features=h)
"""


def situated(text: str) -> Situation:
    called = next(line.strip() for line in text.splitlines() if line.strip().startswith(("train(", "t.train(")))
    made = Place(span_in(text, "encode(x, MASK)"), "main")
    used = Place(span_in(text, "f(features)"), "train")
    ops = (
        Op(1, "Mul", 1, (Input(0),), (1,), (made,)),
        Op(2, "Sum", 5, (Input(1),), (2,), (used,), (1,)),
    )
    scope = Scope(1, "GradientTape", ScopeRole.RECORDS, 3, 10, span_in(text, "tf.GradientTape()"), name="tape")
    asked = (Asked(Source("source"), 0, Status.NONE),)
    places = (Place(span_in(text, "tape.gradient(loss, source)"), "train"), Place(span_in(text, called), "main"))
    question = Question("tape.gradient", "tensorflow", places, 11, "loss", (2,), asked, recording=1)
    graph = FlowGraph(
        values=tuple(Value(n, ValueKind.TENSOR, "float32", ()) for n in range(3)), ops=ops, scopes=(scope,)
    )
    return situation_of(text, question, made.span, graph=graph, cause="outside-tape")


def changed(text: str) -> str:
    proposal = compute_inside(situated(text))
    assert proposal.applicability is Applicability.UNSAFE
    return changed_by(text.encode(), proposal.edits).decode()


def test_value_is_computed_under_the_recording_by_the_names_of_the_parameters() -> None:
    inside = "as tape:\n        features = encode(source, MASK)\n"
    assert changed(PROGRAM) == PROGRAM.replace("as tape:\n", inside)


def test_method_that_records_is_called_with_one_argument_less() -> None:
    text = PROGRAM.replace("train(x, features=h)", "t.train(x, h)").replace("def train(", "def train(self, ")
    head, _, rest = text.partition("def train")
    body, _, end = rest.partition("\ndef main")
    method = "class T:\n" + "".join(f"    {line}\n" for line in f"def train{body}".splitlines())
    text = f"{head}{method}\ndef main{end}"
    assert "            features = encode(source, MASK)\n" in changed(text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("train(x, features=h)", "train(*[x, h])"),
        ("train(x, features=h)", "train(x, features=h + 1)"),
        ("train(x, features=h)", "train(y, features=h)"),
        ("    with tf", "    print(features)\n    with tf"),
        ("    with tf", "    MASK = 2.0\n    with tf"),
        ("    h = encode(x, MASK)", "    h, k = encode(x, MASK), 1"),
    ],
    ids=["spread", "changed on the way", "another source", "used before", "hidden name", "no plain assignment"],
)
def test_nothing_is_computed_again_where(old: str, new: str) -> None:
    with pytest.raises(NoFixError):
        compute_inside(situated(PROGRAM.replace(old, new)))

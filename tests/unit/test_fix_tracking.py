"""The tape that recorded is asked, and a layer's variable is one that Keras keeps track of; nothing where that is not certain."""

from __future__ import annotations

import pytest

from gradwhy.fix.patch import changed_by
from gradwhy.fix.situation import NoFixError, Situation
from gradwhy.fix.tracking import ask_recording_tape, track_variable
from gradwhy.flow import (
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

TAPES = "with tf.GradientTape() as a:\n    y = x * x\nwith tf.GradientTape() as b:\n    z = 1\ng = b.gradient(y, x)\n"


def situated(
    text: str, *, definition: str = "", asks: str = "", held_by: tuple[int, ...] = (), own: str = "b"
) -> Situation:
    made = span_in(text, definition) if definition else None
    op = Op(1, "Mul", 1, (Input(0),), (1,), (Place(span_in(text, "x * x"), "<module>"),), held_by) if asks else None
    scopes = tuple(
        Scope(n, "GradientTape", ScopeRole.RECORDS, n, n + 1, None, name=name) for n, name in enumerate("abc", 1)
    )
    graph = FlowGraph(
        values=tuple(Value(n, ValueKind.TENSOR, "float32", ()) for n in range(2)),
        ops=(op,) if op else (),
        scopes=scopes,
    )
    asked = (Asked(Source("x"), 0, Status.NONE, definition=made),)
    places = (Place(span_in(text, asks), "<module>"),) if asks else ()
    recording = "abc".index(own) + 1
    question = Question("tape.gradient", "tensorflow", places, 11, "y", (1,), asked, recording=recording)
    return situation_of(text, question, graph=graph)


def test_tape_that_recorded_all_of_the_path_is_asked() -> None:
    proposal = ask_recording_tape(situated(TAPES, asks="b.gradient(y, x)", held_by=(1,)))
    assert changed_by(TAPES.encode(), proposal.edits).decode() == TAPES.replace("b.gradient", "a.gradient")


@pytest.mark.parametrize("held_by", [(), (2,), (1, 3)], ids=["recorded nowhere", "by this one", "by two others"])
def test_no_other_tape_is_asked_where(held_by: tuple[int, ...]) -> None:
    with pytest.raises(NoFixError):
        ask_recording_tape(situated(TAPES, asks="b.gradient(y, x)", held_by=held_by))


LAYER = """\
import keras
class Scale(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.scale = tf.Variable(tf.ones((3,)), name="scale")
"""
MADE = 'tf.Variable(tf.ones((3,)), name="scale")'


@pytest.mark.parametrize(
    ("header", "keras"), [("import keras", "keras"), ("import keras as k", "k"), ("from tensorflow import keras", "keras"), ("", "tf.keras")]
)  # fmt: skip
def test_variable_of_a_layer_becomes_one_of_keras(header: str, keras: str) -> None:
    text = LAYER.replace("import keras", header)
    proposal = track_variable(situated(text, definition=MADE))
    assert changed_by(text.encode(), proposal.edits).decode() == text.replace("tf.Variable", f"{keras}.Variable")


@pytest.mark.parametrize(
    ("made", "other"),
    [
        (MADE, "tf.Variable(tf.ones((3,)), shape=(3,))"),
        ("self.scale = tf", "scale = tf"),
        (MADE, "self.add_weight(shape=(3,))"),
    ],
    ids=["made with more", "no attribute", "no variable"],
)
def test_variable_is_left_alone_where(made: str, other: str) -> None:
    text = LAYER.replace(made, other)
    definition = text[text.index("= ", text.index("scale =")) + 2 :].strip()
    with pytest.raises(NoFixError):
        track_variable(situated(text, definition=definition))

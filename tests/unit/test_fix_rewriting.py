"""One expression is rewritten, in place, and only where its meaning is certain."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gradwhy.fix import once, rewriting
from gradwhy.fix.patch import changed_by
from gradwhy.fix.proposals import Maker, makers_of
from gradwhy.fix.situation import NoFixError, Situation
from gradwhy.flow import (
    Applicability,
    Asked,
    Failure,
    FlowGraph,
    Place,
    Question,
    Scope,
    ScopeRole,
    Source,
    Status,
    Watch,
)
from gradwhy.texts import slugs
from situations import FILE, situation_of, span_in


def situated(
    text: str, place: str = "", *, asks: str = "", sources: tuple[str, ...] = ("x",), failure: Failure | None = None
) -> Situation:
    """A situation whose cut, and whose source, was made by the call `place`, and whose question is the call `asks`."""
    made = span_in(text, place, is_last=True) if place else None
    asked = tuple(Asked(Source(name), number, Status.NONE, definition=made) for number, name in enumerate(sources))
    question_span = span_in(text, asks, is_last=True) if asks else None
    places = (Place(question_span, "<module>"),) if question_span else ()
    scopes = ()
    if "GradientTape" in text:
        watches = tuple(
            Watch(0, 9, span_in(text, line.strip(), is_last=True))
            for line in text.splitlines()
            if line.strip().startswith("tape.watch(x")
        )
        scopes = (
            Scope(
                1,
                "GradientTape",
                ScopeRole.RECORDS,
                1,
                10,
                span_in(text, "tf.GradientTape()", is_last=True),
                (),
                watches,
                name="tape",
            ),
        )
    question = Question(
        "tape.gradient", "tensorflow", places, 11, "loss", (), asked, recording=1 if scopes else None, failure=failure
    )
    return situation_of(text, question, made, graph=FlowGraph(scopes=scopes))


def changed(maker: Maker, situation: Situation) -> str:
    content = situation.content(FILE)
    assert content is not None
    return changed_by(content, maker(situation).edits).decode()


@pytest.mark.parametrize(
    ("maker", "text", "place", "after"),
    [
        (rewriting.drop_stop, "y = tf.stop_gradient(a + b)\n", "tf.stop_gradient(a + b)", "y = a + b\n"),
        (rewriting.drop_stop, "y = 2 * tf.stop_gradient(a + b)\n", "tf.stop_gradient(a + b)", "y = 2 * (a + b)\n"),
        (rewriting.unwrap, "h = tf.Variable(w - g)\n", "tf.Variable(w - g)", "h = w - g\n"),
        (
            rewriting.make_float,
            "p = tf.Variable([10, [-4]], dtype=tf.int32)\n",
            "tf.Variable([10, [-4]], dtype=tf.int32)",
            "p = tf.Variable([10.0, [-4.0]], dtype=tf.float32)\n",
        ),
        (
            rewriting.make_trainable,
            "w = tf.Variable(1.0, trainable=False)\n",
            "tf.Variable(1.0, trainable=False)",
            "w = tf.Variable(1.0, trainable=True)\n",
        ),
        (
            rewriting.stay_in_framework,
            "import numpy as np\nimport tensorflow as tf\ny = tf.constant(np.mean(h, axis=0)) + 1\n",
            "np.mean(h, axis=0)",
            "import numpy as np\nimport tensorflow as tf\ny = tf.reduce_mean(h, axis=0) + 1\n",
        ),
        (rewriting.stay_in_framework, "y = (a + b).numpy() * 2\n", "(a + b).numpy()", "y = (a + b) * 2\n"),
        (rewriting.stay_in_framework, "y = f(float(h))\n", "float(h)", "y = f(h)\n"),
    ],
)
def test_call_at_the_cut_is_rewritten(maker: Maker, text: str, place: str, after: str) -> None:
    situation = situated(text, place)
    assert changed(maker, situation) == after
    assert maker(situation).applicability is Applicability.UNSAFE


@pytest.mark.parametrize(
    ("maker", "text", "place"),
    [
        (rewriting.drop_stop, "y = stop_all(*values)\n", "stop_all(*values)"),
        (rewriting.unwrap, "h = tf.Variable(w)\nh.assign(2)\n", "tf.Variable(w)"),
        (rewriting.unwrap, "h = tf.Variable(w, dtype=tf.float64)\n", "tf.Variable(w, dtype=tf.float64)"),
        (rewriting.make_float, "p = tf.Variable(sizes)\n", "tf.Variable(sizes)"),
        (rewriting.make_trainable, "w = tf.Variable(1.0, trainable=flag)\n", "tf.Variable(1.0, trainable=flag)"),
        (rewriting.stay_in_framework, "import numpy as np\ny = np.mean(h)\n", "np.mean(h)"),
        (
            rewriting.stay_in_framework,
            "import numpy as np\nimport tensorflow as tf\ny = np.mean(h, dtype=float)\n",
            "np.mean(h, dtype=float)",
        ),
        (
            rewriting.stay_in_framework,
            "import numpy as np\nimport tensorflow as tf\ny = np.fft.fft(h)\n",
            "np.fft.fft(h)",
        ),
    ],
)
def test_nothing_is_rewritten_where_the_meaning_is_not_certain(maker: Maker, text: str, place: str) -> None:
    with pytest.raises(NoFixError):
        maker(situated(text, place))


TAPE = """\
x = tf.constant([1.0])
with tf.GradientTape() as tape:
    y = f(x)
    loss = g(y)
grad = tape.gradient(loss, x)
"""


def test_watch_is_the_first_statement_of_the_block_and_safe() -> None:
    situation = situated(TAPE, asks="tape.gradient(loss, x)")
    assert changed(rewriting.watch_source, situation) == TAPE.replace("    y = f", "    tape.watch(x)\n    y = f")
    assert rewriting.watch_source(situation).applicability is Applicability.SAFE


def test_watch_follows_the_statement_that_makes_its_source() -> None:
    text = TAPE.replace("loss, x", "loss, y")
    situation = situated(text, asks="tape.gradient(loss, y)", sources=("y",))
    assert changed(rewriting.watch_source, situation) == text.replace("f(x)\n", "f(x)\n    tape.watch(y)\n")


def test_sources_that_the_question_does_not_spell_out_are_not_watched() -> None:
    text = TAPE.replace("loss, x", "loss, inputs + [x]")
    with pytest.raises(NoFixError):
        rewriting.watch_source(situated(text, asks="tape.gradient(loss, inputs + [x])"))


def test_late_watch_moves_above_the_first_use() -> None:
    text = TAPE.replace("    loss", "    tape.watch(x)\n    loss")
    situation = situated(text, asks="tape.gradient(loss, x)")
    assert changed(rewriting.watch_first, situation) == TAPE.replace("    y = f", "    tape.watch(x)\n    y = f")


def test_used_up_tape_is_made_persistent_and_another_is_not() -> None:
    used_up = situated(TAPE, asks="tape.gradient(loss, x)", failure=Failure("RuntimeError", "", "used-up"))
    assert "with tf.GradientTape(persistent=True) as tape:\n" in changed(rewriting.make_persistent, used_up)
    with pytest.raises(NoFixError):
        rewriting.make_persistent(situated(TAPE, asks="tape.gradient(loss, x)"))


def test_trainable_variables_are_asked_for_wherever_the_answer_is_paired_with_them() -> None:
    text = TAPE.replace("loss, x)", "loss, m.variables)\nopt.apply(zip(grad, m.variables))")
    situation = situated(text, asks="tape.gradient(loss, m.variables)")
    assert changed(rewriting.ask_trainable_only, situation) == text.replace("m.variables", "m.trainable_variables")


LAYER = """\
import keras

class Net(keras.Model):
    def __init__(self, n):
        super().__init__()
        self.n = n

    def call(self, x):
        return keras.layers.Dense(self.n, name="head")(x)
"""


def test_layer_made_in_a_call_is_made_once() -> None:
    situation = situated(LAYER, 'keras.layers.Dense(self.n, name="head")(x)')
    after = changed(once.create_once, situation)
    assert '        self.n = n\n        self.head = keras.layers.Dense(self.n, name="head")\n' in after
    assert "        return self.head(x)\n" in after


@pytest.mark.parametrize(
    "text",
    [
        LAYER.replace("self.n, name", "x.shape[-1], name"),
        LAYER.replace("__init__(self, n)", "setup(self, n)"),
        LAYER.replace('return keras.layers.Dense(self.n, name="head")(x)', 'return [keras.layers.Dense(self.n, name="head")(x) for x in x]'),
    ],
)  # fmt: skip
def test_layer_that_only_the_call_can_make_is_left_alone(text: str) -> None:
    place = text[text.index("keras.layers") : text.rindex("(x)") + 3]
    with pytest.raises(NoFixError):
        once.create_once(situated(text, place))


def test_every_maker_of_every_cause_can_be_imported() -> None:
    assert sum(bool(makers_of(slug)) for slug in slugs()) >= 10


def test_no_file_is_changed_that_cannot_be_read() -> None:
    situation = replace(situated("y = tf.stop_gradient(a)\n", "tf.stop_gradient(a)"), content=lambda file: None)
    with pytest.raises(NoFixError):
        rewriting.drop_stop(situation)

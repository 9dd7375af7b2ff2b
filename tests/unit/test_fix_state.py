"""What went through a variable is used itself, and what was given the variable's name is written into it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gradwhy.fix.patch import changed_by
from gradwhy.fix.proposals import Maker
from gradwhy.fix.situation import NoFixError, Situation
from gradwhy.fix.state import keep_value, update_in_place
from gradwhy.flow import Applicability, Asked, Question, Source, Status
from situations import situation_of, span_in

CARRIED = """\
def call(self, x):
    # what is remembered
    self.memory.assign(self.cell(x) + 1)  # for the next call
    print(self.memory.shape)
    y = self.memory @ self.w
    return y + self.memory.read_value()
"""
KEPT = """\
def call(self, x):
    new_memory = self.cell(x) + 1
    # what is remembered
    self.memory.assign(new_memory)  # for the next call
    print(self.memory.shape)
    y = new_memory @ self.w
    return y + new_memory
"""


def situated(text: str, place: str, framework: str = "tensorflow") -> Situation:
    asked = (Asked(Source("w"), 0, Status.NONE),)
    question = Question("tape.gradient", framework, (), 11, "loss", (), asked)
    return situation_of(text, question, span_in(text, place))


def changed(maker: Maker, text: str, place: str) -> str:
    proposal = maker(situated(text, place))
    assert proposal.applicability is Applicability.UNSAFE
    return changed_by(text.encode(), proposal.edits).decode()


def test_value_is_used_until_the_end_of_the_block_and_the_variable_is_written_as_before() -> None:
    assert changed(keep_value, CARRIED, "self.memory.assign(self.cell(x) + 1)") == KEPT


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("v.assign_add(a * b)\nloss = v ** 2\n", "new_v = v + (a * b)\nv.assign(new_v)\nloss = new_v ** 2\n"),
        ("v.assign_sub(step)\nloss = f(v)\n", "new_v = v - step\nv.assign(new_v)\nloss = f(new_v)\n"),
        ("new_v = 1\nv.assign(a)\nloss = v\n", "new_v = 1\nv_value = a\nv.assign(v_value)\nloss = v_value\n"),
    ],
)
def test_written_sum_is_the_value(before: str, after: str) -> None:
    place = next(line for line in before.splitlines() if ".assign" in line)
    assert changed(keep_value, before, place) == after


@pytest.mark.parametrize(
    "text",
    [
        "v.assign(a)\nv.assign(b)\nloss = v\n",
        "v.assign(a)\nloss = w\n",
        "v.assign(a, use_locking=True)\nloss = v\n",
        "v.assign(a)\nv = 2 * v\nloss = v\n",
        "for x in data:\n    h = v * x\n    v.assign(a)\n    loss = v\n",
        "vs[0].assign(a)\nloss = vs[0]\n",
    ],
    ids=["written again", "not read", "more arguments", "given anew", "read by the next step", "no plain name"],
)
def test_no_value_is_kept_where(text: str) -> None:
    place = next(line.strip() for line in text.splitlines() if ".assign" in line)
    with pytest.raises(NoFixError):
        keep_value(situated(text, place))


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("w = w - rate * g  # a step", "w.assign_sub(rate * g)  # a step"),
        ("w -= rate * g", "w.assign_sub(rate * g)"),
        ("w = w + g", "w.assign_add(g)"),
        ("w = tf.clip_by_value(w, 0, 1)", "w.assign(tf.clip_by_value(w, 0, 1))"),
    ],
)
def test_variable_is_updated_in_place(line: str, after: str) -> None:
    text = f"w = tf.Variable(1.0)\nfor step in range(3):\n    g = f(w)\n    {line}\n"
    place = line.partition("  #")[0].partition("= ")[2]
    assert changed(update_in_place, text, place) == text.replace(line, after)


def test_name_that_is_given_to_something_else_is_left_alone() -> None:
    text = "w = tf.Variable(1.0)\nw = w - g\nw = w * 2\n"
    with pytest.raises(NoFixError):
        update_in_place(situated(text, "w - g"))


def test_only_tensorflow_variables_are_written_in_place() -> None:
    text = "w = torch.ones(2)\nw = w - g\n"
    with pytest.raises(NoFixError):
        update_in_place(situated(text, "w - g", "torch"))


def test_file_that_cannot_be_read_is_left_alone() -> None:
    situation = replace(situated("v.assign(a)\nloss = v\n", "v.assign(a)"), content=lambda file: None)
    with pytest.raises(NoFixError):
        keep_value(situation)

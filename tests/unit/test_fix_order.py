"""Several fixes of one file: in any order the same text, only their own lines changed, and nothing left to change."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradwhy.fix import rewriting
from gradwhy.fix.choose import choose, crosses
from gradwhy.fix.locality import is_local
from gradwhy.fix.patch import changed_by
from gradwhy.fix.proposals import Maker
from gradwhy.fix.situation import NoFixError, Proposal, Situation
from gradwhy.flow import Asked, Question, Source, Span, Status
from situations import FILE, situation_of

BROKEN: tuple[tuple[Maker, str], ...] = (
    (rewriting.drop_stop, "y{n} = tf.stop_gradient(a + b) * 2  # kept"),
    (rewriting.drop_stop, "loss{n} = f(\n    tf.stop_gradient(h),\n    2,  # two\n)"),
    (rewriting.unwrap, "h{n} = tf.Variable(w - g)"),
    (rewriting.make_float, "p{n} = tf.Variable([10, -4])"),
    (rewriting.make_trainable, "w{n} = tf.Variable(1.0, trainable=False); # gelernt, 学习"),
    (rewriting.stay_in_framework, "z{n} = tf.reduce_sum(q.numpy())"),
)
BETWEEN = (
    "",
    "# stop_gradient, 注释",
    "print('x')",
    "s = '''tf.stop_gradient(a)\n  numpy'''",
    "if a:\n\tb = 1",
    "class A: pass",
)
CALLS = frozenset({"stop_gradient", "Variable", "numpy"})

programs = st.lists(
    st.one_of(st.sampled_from(BROKEN), st.sampled_from(BETWEEN).map(lambda text: (None, text))), min_size=1, max_size=9
)


@settings(deadline=None)
@given(program=programs, end=st.sampled_from(["\n", "\r\n"]), data=st.data())
def test_fixes_of_a_file_give_the_same_text_in_any_order(
    program: list[tuple[Maker | None, str]], end: str, data: st.DataObject
) -> None:
    text = "\n".join(line.format(n=n) if maker else line for n, (maker, line) in enumerate(program)) + "\n"
    content = text.replace("\n", end).encode()
    makers = [maker for maker, _ in program if maker is not None]
    found = proposals_of(content, makers)
    kept: list[Proposal] = []
    for proposal in found:
        if not any(crosses(proposal.edits, other.edits) for other in kept):
            kept.append(proposal)
    shuffled = data.draw(st.permutations(kept))
    changed = changed_by(content, [edit for proposal in kept for edit in proposal.edits])
    assert changed_by(content, [edit for proposal in shuffled for edit in proposal.edits]) == changed
    one_by_one = content
    for proposal in reversed(kept):
        one_by_one = changed_by(one_by_one, proposal.edits)
    assert one_by_one == changed
    assert is_local(content, changed, [edit for proposal in kept for edit in proposal.edits])
    untouched = set(content.splitlines()) - {
        line for proposal in kept for edit in proposal.edits for line in lines_at(content, edit.span)
    }
    assert untouched <= set(changed.splitlines())


@settings(deadline=None)
@given(broken=st.sampled_from(BROKEN), count=st.integers(1, 4), end=st.sampled_from(["\n", "\r\n"]))
def test_fixed_file_has_nothing_left_to_fix(broken: tuple[Maker, str], count: int, end: str) -> None:
    maker, line = broken
    content = "".join(line.format(n=n) + "\n\n" for n in range(count)).replace("\n", end).encode()
    edits = [edit for proposal in proposals_of(content, [maker] * count) for edit in proposal.edits]
    assert len(edits) == count
    changed = changed_by(content, edits)
    for call in calls_of(changed):
        with pytest.raises(NoFixError):
            maker(situated(changed, call))


def test_first_of_two_fixes_that_touch_the_same_line_is_taken_and_the_other_named() -> None:
    content = b"y = tf.stop_gradient(a) + tf.stop_gradient(b)\n"
    first, second = (situated(content, call) for call in calls_of(content))
    told = [(replace(situation.finding, cause="detached"), situation.question) for situation in (first, second)]
    chosen, left_out = choose(told, lambda file: content, takes_unsafe=True)
    assert [changed_by(content, choice.edits) for choice in chosen] == [b"y = a + tf.stop_gradient(b)\n"]
    assert [left.reason.key for left in left_out] == ["fixes/reason/overlaps"]


def proposals_of(content: bytes, makers: list[Maker]) -> list[Proposal]:
    calls = calls_of(content)
    assert len(calls) == len(makers)
    return [maker(situated(content, call)) for maker, call in zip(makers, calls, strict=True)]


def calls_of(content: bytes) -> list[ast.Call]:
    """The calls that cut, in the order of the text."""
    found = [
        part
        for part in ast.walk(ast.parse(content))
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in CALLS
    ]
    return sorted(found, key=lambda call: (call.lineno, call.col_offset))


def situated(content: bytes, call: ast.Call) -> Situation:
    """A finding at a call, of ASCII up to its end."""
    span = Span(FILE, call.lineno, call.col_offset + 1, call.end_lineno, (call.end_col_offset or 0) + 1)
    asked = (Asked(Source("x"), 0, Status.NONE, definition=span),)
    question = Question("tape.gradient", "tensorflow", (), 11, "loss", (), asked)
    return situation_of(content, question, span)


def lines_at(content: bytes, span: Span) -> list[bytes]:
    return content.splitlines()[span.line - 1 : span.end_line or span.line]

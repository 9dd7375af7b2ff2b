"""Statements move with what they depend on, and a change that is not sure to be right is not offered."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradwhy.fix.locality import is_local
from gradwhy.fix.moving import into_recording, out_of_pause, under_recording
from gradwhy.fix.patch import changed_by
from gradwhy.fix.situation import NoFixError, Proposal
from gradwhy.flow import Applicability
from situations import carrying_lines, run, situation

MAKERS = {"outside-tape": into_recording, "after-tape": under_recording, "paused": out_of_pause}


def mended(text: str, cause: str) -> tuple[Proposal, str]:
    proposal = MAKERS[cause](situation(text, cause))
    changed = changed_by(text.encode(), proposal.edits)
    assert is_local(text.encode(), changed, proposal.edits)
    return proposal, changed.decode()


def test_statement_and_what_needs_it_move_into_the_block() -> None:
    text = """\
x = v("x")
c = v("c")
h = f(x)
d = f(c)
k = f(h, d)
say(c)
with tape() as t:
    y = f(k)
ask(y, x)
"""
    proposal, changed = mended(text, "outside-tape")
    assert proposal.applicability is Applicability.SAFE
    assert (
        changed
        == """\
x = v("x")
c = v("c")
d = f(c)
say(c)
with tape() as t:
    h = f(x)
    k = f(h, d)
    y = f(k)
ask(y, x)
"""
    )


def test_what_comes_between_and_needs_the_moved_goes_along() -> None:
    text = 'x = v("x")\nh = f(x)\nsay(h)\nn = 1\nwith tape() as t:\n    y = f(h)\nask(y, x)\n'
    _, changed = mended(text, "outside-tape")
    assert changed == 'x = v("x")\nn = 1\nwith tape() as t:\n    h = f(x)\n    say(h)\n    y = f(h)\nask(y, x)\n'


def test_name_that_is_bound_again_keeps_its_order() -> None:
    text = 'x = v("x")\na = f(x)\nk = f(a)\na = v("a")\nwith tape() as t:\n    y = f(k, a)\nask(y, x)\n'
    _, changed = mended(text, "outside-tape")
    assert (
        changed
        == 'x = v("x")\nwith tape() as t:\n    a = f(x)\n    k = f(a)\n    a = v("a")\n    y = f(k, a)\nask(y, x)\n'
    )


def test_helper_is_called_inside_and_its_body_stays() -> None:
    text = """\
def encode(x):
    h = f(x)
    return f(h)

def step(x):
    h = encode(x)
    with tape() as t:
        y = f(h)
    ask(y, x)

step(v("x"))
"""
    _, changed = mended(text, "outside-tape")
    assert "    with tape() as t:\n        h = encode(x)\n        y = f(h)\n" in changed
    assert "def step(x):\n    with" in changed


def test_loop_and_comprehension_move_as_a_whole() -> None:
    text = """\
xs = [v("x"), v("y")]
hs = [f(x) for x in xs]
ks = []
for h in hs:
    ks.append(f(h))
with tape() as t:
    y = f(*ks)
ask(y, *xs)
"""
    _, changed = mended(text, "outside-tape")
    assert (
        changed
        == """\
xs = [v("x"), v("y")]
ks = []
with tape() as t:
    hs = [f(x) for x in xs]
    for h in hs:
        ks.append(f(h))
    y = f(*ks)
ask(y, *xs)
"""
    )


def test_value_computed_before_a_loop_is_computed_in_every_step_and_is_unsafe() -> None:
    text = 'x = v("x")\nh = f(x)\nfor step in range(2):\n    with tape() as t:\n        y = f(h)\n    ask(y, x)\n'
    proposal, changed = mended(text, "outside-tape")
    assert proposal.applicability is Applicability.UNSAFE
    assert (
        changed
        == 'x = v("x")\nfor step in range(2):\n    with tape() as t:\n        h = f(x)\n        y = f(h)\n    ask(y, x)\n'
    )


def test_statements_after_the_block_are_taken_into_it() -> None:
    text = """\
x = v("x")
with tape() as t:
    h = f(x)

c = v("c")
# The penalty.
p = f(x, c)
total = f(h, p)
ask(total, x)
"""
    proposal, changed = mended(text, "after-tape")
    assert proposal.applicability is Applicability.SAFE
    assert (
        changed
        == """\
x = v("x")
with tape() as t:
    h = f(x)
    c = v("c")
    # The penalty.
    p = f(x, c)
    total = f(h, p)

ask(total, x)
"""
    )


def test_statement_leaves_the_pause_and_the_rest_stays_in_it() -> None:
    text = """\
x = v("x")
with tape() as t:
    with pause():
        say(x)
        h = f(x)
        say(h)
    y = f(h)
ask(y, x)
"""
    proposal, changed = mended(text, "paused")
    assert proposal.applicability is Applicability.UNSAFE
    assert "    h = f(x)\n    with pause():\n        say(x)\n        say(h)\n" in changed


def test_pause_that_would_be_empty_goes() -> None:
    text = 'x = v("x")\nwith tape() as t:\n    with pause():\n        h = f(x)\n    y = f(h)\nask(y, x)\n'
    _, changed = mended(text, "paused")
    assert changed == 'x = v("x")\nwith tape() as t:\n    h = f(x)\n    y = f(h)\nask(y, x)\n'


REFUSED = {
    "the question would be recorded": (
        "after-tape",
        'x = v("x")\nwith tape() as t:\n    h = f(x)\nask(f(h), x)\n',
    ),
    "it is made with what is asked about": (
        "outside-tape",
        'def make():\n    a = v("a")\n    return a, f(a)\nsource1, h = make()\nwith tape() as t:\n    y = f(h)\nask(y, source1)\n',
    ),
    "it would change from step to step": (
        "outside-tape",
        'x = v("x")\nh = f(x)\nfor i in range(2):\n    with tape() as t:\n        y = f(h)\n        h = f(y)\n    ask(y, x)\n',
    ),
    "it is used in another branch, too": (
        "outside-tape",
        'x = v("x")\nh = f(x)\nif True:\n    with tape() as t:\n        y = f(h)\n    ask(y, x)\nelse:\n    say(h)\nsay(h)\n',
    ),
    "the value was handed over by a caller": (
        "outside-tape",
        'def step(h, x):\n    with tape() as t:\n        y = f(h)\n    ask(y, x)\nx = v("x")\nstep(f(x), x)\n',
    ),
    "one statement of the line belongs elsewhere": (
        "outside-tape",
        'x = v("x")\nh = f(x); say(x)\nwith tape() as t:\n    y = f(h)\nask(y, x)\n',
    ),
    "the block returns": (
        "after-tape",
        "def g(x):\n    with tape() as t:\n        h = f(x)\n        if 0:\n            return h\n"
        '    y = f(h)\n    ask(y, x)\ng(v("x"))\n',
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_no_fix_is_offered_where(name: str) -> None:
    cause, text = REFUSED[name]
    with pytest.raises(NoFixError):
        MAKERS[cause](situation(text, cause))


NAMES = st.sampled_from(["x", "a", "b", "c"])
CALLS = st.builds("{} = f({}, {})".format, st.sampled_from(["a", "b", "c"]), NAMES, NAMES)
STATEMENTS = st.one_of(
    CALLS, st.builds("say({})".format, NAMES), st.builds('{} = v("n")'.format, st.sampled_from("abc"))
)


@settings(max_examples=150, deadline=None)
@given(st.lists(STATEMENTS, max_size=8), st.lists(CALLS, max_size=3), st.lists(STATEMENTS, max_size=5))
def test_moved_program_computes_the_same_and_records_every_carrying_statement(
    before: list[str], inside: list[str], after: list[str]
) -> None:
    start = ['x = v("x")', *(f'{name} = v("{name}")' for name in "abc")]
    held = [f"    {line}" for line in [*inside, "a = f(a, b)"]]
    text = "\n".join([*start, *before, "with tape() as t:", *held, *after, "ask(a, x)", ""])
    lines = carrying_lines(text)
    for cause in ("outside-tape", "after-tape"):
        block = len(start) + len(before) + 1
        is_mine = [line < block if cause == "outside-tape" else line > block + len(held) for line in lines]
        try:
            _, changed = mended(text, cause)
        except NoFixError:
            continue
        old, new = run(text), run(changed)
        assert new.asked[-1][0].text == old.asked[-1][0].text
        assert sorted(new.said) == sorted(old.said) and new.said == old.said
        assert any(is_mine)
        left = [line for line, recorded in carrying_lines(changed).items() if not recorded]
        assert all(is_mine) is False or not left

"""Which lines ran because a value was as it was."""

from __future__ import annotations

import pytest

from gradwhy.source.choices import chosen_lines
from source_texts import given, span

TEXT = """\
def step(x, limit, count):
    if x > limit:
        x = x * 2
    else:
        x = x + 1
    for _ in range(int(count)):
        x = x - 1
    turns = int(limit)
    y = x
    while turns > 0:
        turns -= 1
    z = x[int(y)]
    a = x if y < 3 else z
    assert bool(z)
    if done(x):
        return a
    b = a * 2
    return b
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x > limit", {(3, 3), (5, 5)}),
        ("int(count)", {(7, 7)}),
        ("int(limit)", {(8, 8), (11, 11)}),
        ("int(y)", {(12, 12), (13, 13), (16, 16), (17, 17), (18, 18)}),
        ("y < 3", {(13, 13), (16, 16), (17, 17), (18, 18)}),
        ("bool(z)", set()),
        ("done(x)", {(16, 16), (17, 18)}),
    ],
)
def test_a_value_chooses_the_lines_that_hang_on_it(text: str, expected: set[tuple[int, int]]) -> None:
    given(TEXT)
    assert set(chosen_lines(span(TEXT, text))) == expected

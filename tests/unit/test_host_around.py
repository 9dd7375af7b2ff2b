"""Where what a function reads from around it was computed."""

from __future__ import annotations

import pytest

from gradwhy.host.around import lines_around
from source_texts import given, span

TEXT = """\
scale = 2.0 * float(v)
other = 3
class Loss:
    def __init__(self, t, name=None):
        k = t * 2
        self.rate = np.exp(k)
    def forward(self, x):
        y = x * self.rate
        return y + scale
def double(a, b=1):
    c = a * b
    return c + 1
def main():
    other = np.sum(v)
    loss = Loss(other)
    return loss.forward(double(other, b=read(v)))
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("y + scale", {1, 5, 6, 14, 15, 16}),
        ("x * self.rate", {5, 6, 14, 15, 16}),
        ("a * b", {14, 16}),
        ("2.0 * float(v)", set()),
    ],
)
def test_what_a_function_reads_is_followed_out_of_it(text: str, expected: set[int]) -> None:
    given(TEXT)
    assert set(lines_around(span(TEXT, text))) == expected


def test_a_function_called_from_many_places_is_followed_to_none() -> None:
    text = "def f(a):\n    return a\n" + "".join(f"f(v{number})\n" for number in range(4))
    given(text)
    assert lines_around(span(text, "a", nth=1)) == frozenset()

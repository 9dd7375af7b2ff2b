"""What stands at a span."""

from __future__ import annotations

import ast

import pytest

from gradwhy.flow import Span
from gradwhy.source import statements as st
from gradwhy.source.files import read
from gradwhy.source.locate import call_at, path_to, span_of_syntax, text_of
from source_texts import given, piece, span

TEXT = """\
变 = "变量"
with tf.GradientTape() as tape, other(变) as (o, p):
    loss = f(x)
    self.g, (b, *c) = tape.gradient("变", loss, sources=[w,  self.v,
         u])
for g, v in zip(a, b):
    z += self.k * g
if (n := size(变)) > 3 and tf.reduce_any(变):
    pass
y = [q * 变 for q in z if q != t]
f = lambda m, *r, k=d: m + r + k + e
def 函数(a, b=变):
    return g.apply(a, *rest, b, name="x", **more)
@tf.function(jit_compile=True)
def step(x):
    while x > 0: x -= 1
class Own(Base): field: int = 3
import numpy.linalg, os as o
from a import b as c, d
x: int
x[0], y.z = 1, 2
await_me = (await get(x)).y
long = call(aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa + bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb + cccccccccc)
a.b.c(1)[2](x)
"""
CALL = 'tape.gradient("变", loss, sources=[w,  self.v,\n         u])'


@pytest.fixture(autouse=True)
def text() -> None:
    given(TEXT)


def at(words: str, nth: int = 0) -> Span:
    return span(TEXT, words, nth=nth)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (CALL, CALL),
        ("loss", "loss"),
        ("q * 变", "q * 变"),
        ("* 变", "q * 变"),
        ("[w,  self.v", "[w,  self.v,\n         u]"),
        ("size(变)", "size(变)"),
        ("other(变)", "other(变)"),
        ("m + r + k", "m + r + k"),
        ("tf.function(jit_compile=True)", "tf.function(jit_compile=True)"),
    ],
)
def test_expression_is_the_smallest_that_covers_the_span(words: str, expected: str) -> None:
    found = st.expression_at(at(words))
    file = read("given.py")
    assert found is not None and file is not None
    assert text_of(file, found) == expected
    assert piece(TEXT, span_of_syntax(file, found, "given.py")) == expected


@pytest.mark.parametrize("place", [Span("absent.py", 1, 1, 1, 2), Span("given.py", 4), Span("given.py", 99, 1, 99, 2)])
def test_no_expression_where_nothing_is_known(place: Span) -> None:
    assert st.expression_at(place) is None
    assert st.call_argument(place, 0, "x") is None
    assert st.with_header_span(place) is None


def test_statement_is_no_expression() -> None:
    assert st.expression_at(at("loss = f(x)")) is None


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (CALL, "self.g, (b, *c) = " + CALL),
        ("loss, sources", "self.g, (b, *c) = " + CALL),
        ("zip(a, b)", "g, v in zip(a, b)"),
        ("size(变)", "(n := size(变)) > 3 and tf.reduce_any(变)".removeprefix("(")),
        ("tf.GradientTape()", "tf.GradientTape() as tape, other(变)"),
        ("x > 0", "x > 0"),
        ("x -= 1", "x -= 1"),
    ],
)
def test_statement_of_a_block_is_its_header(words: str, expected: str) -> None:
    found = piece(TEXT, st.statement_span(at(words)))
    assert found is not None and found.removeprefix("(") == expected


def test_statement_is_found_by_its_line_alone() -> None:
    assert piece(TEXT, st.statement_span(Span("given.py", 3))) == "loss = f(x)"
    assert piece(TEXT, st.statement_span(Span("given.py", 5))) == "self.g, (b, *c) = " + CALL
    assert piece(TEXT, st.statement_span(Span("given.py", 2))) == "tf.GradientTape() as tape, other(变)"


@pytest.mark.parametrize(
    ("words", "position", "keyword", "expected"),
    [
        (CALL, 1, "target", "loss"),
        (CALL, 0, None, '"变"'),
        (CALL, 2, "sources", "[w, self.v, u]"),
        (CALL, 2, None, None),
        (CALL, None, "target", None),
        ("tape.gradient", 1, None, "loss"),
        ('g.apply(a, *rest, b, name="x", **more)', 0, None, "a"),
        ('g.apply(a, *rest, b, name="x", **more)', 1, None, None),
        ('g.apply(a, *rest, b, name="x", **more)', 2, None, None),
        ('g.apply(a, *rest, b, name="x", **more)', 9, "name", '"x"'),
        ("a.b.c(1)[2](x)", 0, None, "x"),
        ("a.b.c(1)", 0, None, "1"),
        ("await get(x)", 0, None, "x"),
        ("q * 变", 0, None, None),
    ],
)
def test_argument_of_a_call(words: str, position: int | None, keyword: str | None, expected: str | None) -> None:
    assert st.call_argument(at(words), position, keyword) == expected
    where = piece(TEXT, st.call_argument_span(at(words), position, keyword))
    assert (None if where is None else " ".join(where.split())) == expected


def test_long_argument_is_shortened() -> None:
    words = "call(" + TEXT.partition("long = call(")[2].partition("\n")[0]
    shown = st.call_argument(at(words), 0, None)
    assert shown is not None and len(shown) <= st.LONGEST_TEXT and shown.endswith("...")


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (CALL, ("self.g", "b", "c")),
        ("f(x)", ("loss",)),
        ("tf.GradientTape()", ("tape", "o", "p")),
        ("zip(a, b)", ("g", "v")),
        ("z += self.k * g", ("z",)),
        ("size(变)", ("n",)),
        ("def 函数(a, b=变):\n    return", ("函数",)),
        ("jit_compile=True", ("step",)),
        ("class Own", ("Own",)),
        ("import numpy.linalg, os as o", ("numpy", "o")),
        ("from a import b as c, d", ("c", "d")),
        ("x: int", ()),
        ("x[0], y.z = 1, 2", ("y.z",)),
        ("a.b.c(1)[2](x)", ()),
    ],
)
def test_names_that_a_statement_binds(words: str, names: tuple[str, ...]) -> None:
    assert st.assigned_names(at(words)) == names


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (CALL, ("tape.gradient", "loss", "w", "self.v", "u")),
        ("q * 变 for q in z if q != t", ("变", "z", "t")),
        ("lambda m, *r, k=d: m + r + k + e", ("d", "e")),
        ("z += self.k * g", ("z", "self.k", "g")),
        ("g, v in zip(a, b)", ("zip", "a", "b")),
        ("a.b.c(1)[2](x)", ("a.b.c", "x")),
    ],
)
def test_names_that_are_read(words: str, names: tuple[str, ...]) -> None:
    place = at("[" + words + "]") if "for q" in words else at(words)
    assert st.names_read(place) == names


def test_body_of_a_block_is_not_read_by_its_header() -> None:
    assert st.names_read(Span("given.py", 6)) == ("zip", "a", "b")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("tf.GradientTape()", "tf.GradientTape()"),
        ("tf.GradientTape", "tf.GradientTape()"),
        ("other(变)", "other(变)"),
        ("变) as", "other(变)"),
        ("tf.GradientTape() as tape, other(变)", "tf.GradientTape() as tape, other(变)"),
        ("loss = f(x)", None),
        (CALL, None),
        ("y = [", None),
    ],
)
def test_header_of_a_with_is_found_from_within_it(words: str, expected: str | None) -> None:
    words = words.removesuffix(" as") if words.endswith(" as") else words
    place = at("变", nth=2) if words == "变)" else at(words)
    assert piece(TEXT, st.with_header_span(place)) == expected


def test_header_of_a_with_is_found_by_its_line() -> None:
    assert piece(TEXT, st.with_header_span(Span("given.py", 2))) == "tf.GradientTape() as tape, other(变)"
    assert st.with_header_span(Span("given.py", 3)) is None


def test_call_is_found_by_its_callee() -> None:
    by_callee, by_itself = call_at(at("a.b.c")), call_at(at("a.b.c(1)"))
    assert by_callee is not None and by_callee is by_itself


def test_every_expression_is_found_at_its_own_span() -> None:
    file = read("given.py")
    assert file is not None and file.tree is not None
    for part in ast.walk(file.tree):
        if isinstance(part, (ast.expr, ast.stmt)):
            place = span_of_syntax(file, part, "given.py")
            found = path_to(place)[-1]
            assert span_of_syntax(file, found, "given.py") == place


def test_text_that_is_not_python_has_no_statements() -> None:
    given("x = (\n", "broken.py")
    place = Span("broken.py", 1, 1, 1, 2)
    assert path_to(place) == ()
    assert (st.statement_span(place), st.assigned_names(place), st.names_read(place)) == (None, (), ())

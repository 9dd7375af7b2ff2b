"""Whose code runs, and where."""

from __future__ import annotations

import asyncio
import collections
import dataclasses
import gc
import os
import sys
import sysconfig
import textwrap
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gradwhy.flow import Span
from gradwhy.source import files, positions
from gradwhy.source.positions import is_user_code, place_of, places_of, span_of, user_frames
from source_texts import piece

HEADER = "import sys\n"


@pytest.fixture(autouse=True)
def at(tmp_path: Path) -> Iterator[Path]:
    before = files.working_folder()
    files.forget()
    files.start_in(str(tmp_path))
    yield tmp_path
    files.forget()
    files.start_in(before)


def code_in(path: str, name: str = "f") -> types.CodeType:
    names: dict[str, types.FunctionType] = {}
    exec(compile(f"def {name}(): pass", path, "exec"), names)
    return names[name].__code__


STDLIB = sysconfig.get_paths()["stdlib"]


@pytest.mark.parametrize(
    ("path", "is_users"),
    [
        ("train.py", True),
        ("{at}/train.py", True),
        ("{at}/package/module.py", True),
        ("{at}/.venv/lib/python3.11/site-packages/torch/nn/functional.py", False),
        ("{at}/vendored/site-packages-like/module.py", True),
        ("/somewhere/else/project/model.py", True),
        ("/usr/lib/python3/dist-packages/numpy/core.py", False),
        ("/usr/lib/python3/dist-packages/the_users_own/train.py", False),
        ("/home/me/.local/lib/python3.11/site-packages/keras/layers.py", False),
        (STDLIB + "/contextlib.py", False),
        (STDLIB + "/asyncio/events.py", False),
        (STDLIB + "-of-mine/train.py", True),
        (os.path.dirname(os.__file__) + "/functools.py", False),
        (os.path.dirname(positions.__file__) + "/names.py", False),
        (os.path.dirname(os.path.dirname(positions.__file__)) + "_plugin/mine.py", True),
        (f"{sys.prefix}/lib/python3.11/site-packages/x.py", False),
        (f"{sys.base_prefix}/lib/python3.11/site-packages/x.py", False),
        ("<stdin>", True),
        ("<string>", True),
        ("<ipython-input-1-0123456789ab>", True),
        ("<python-input-0>", True),
        ("<cell line: 3>", True),
        ("<doctest train.fit[0]>", True),
        ("/tmp/ipykernel_12/3456.py", True),
        ("<frozen importlib._bootstrap>", False),
        ("<__array_function__ internals>", False),
        ("<eval_with_key>.3", False),
        ("<attrs generated init train.Model>", False),
    ],
)
def test_user_code_is_told_by_its_file(path: str, is_users: bool, at: Path) -> None:
    assert is_user_code(code_in(path.format(at=at))) is is_users


def test_editable_install_is_user_code_and_a_link_into_a_library_is_not(at: Path) -> None:
    (at / "venv" / "site-packages" / "real").mkdir(parents=True)
    (at / "link").symlink_to(at / "venv" / "site-packages" / "real")
    assert not is_user_code(code_in(f"{at}/link/module.py"))
    assert is_user_code(code_in(f"{at}/src/editable/module.py"))


def test_methods_that_dataclasses_writes_are_not_the_users() -> None:
    @dataclasses.dataclass
    class Config:
        rate: float = 0.1

    assert not is_user_code(Config.__init__.__code__)
    assert not is_user_code(types.SimpleNamespace(c=collections.namedtuple.__code__).c)


def test_verdict_outlives_the_code_it_was_about() -> None:
    for number in range(300):
        path = "train.py" if number % 2 else STDLIB + "/x.py"
        assert is_user_code(code_in(path)) is bool(number % 2)
        gc.collect(0)


def test_code_without_end_is_not_kept_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(positions, "_MOST_VERDICTS", 10)
    for _ in range(30):
        is_user_code(code_in("train.py"))
    assert len(positions._judged) <= 10
    assert set(positions._verdicts) == {id(code) for code in positions._judged}


def library(name: str, text: str) -> dict[str, Callable[..., object]]:
    """Functions of a library."""
    names: dict[str, Callable[..., object]] = {"sys": sys}  # type: ignore[dict-item]
    exec(compile(textwrap.dedent(text), f"/x/site-packages/{name}.py", "exec"), names)
    return names


def test_frames_of_libraries_are_passed_over() -> None:
    call = library("lib", "def call(f, *args):\n    return inner(f, *args)\ndef inner(f, *args):\n    return f(*args)")[
        "call"
    ]

    def inner() -> object:
        return user_frames(sys._getframe())

    def outer() -> object:
        return call(inner)

    raw = outer()
    assert isinstance(raw, tuple)
    names = [code.co_qualname.rpartition(".")[2] for code, _ in raw]
    assert names[:3] == ["inner", "outer", "test_frames_of_libraries_are_passed_over"]


def test_number_of_frames_is_bounded() -> None:
    def deep(n: int) -> tuple[tuple[types.CodeType, int], ...]:
        return deep(n - 1) if n else user_frames(sys._getframe(), 5)

    assert len(deep(20)) == 5
    assert len(deep(40)) == 5


def test_generators_comprehensions_and_coroutines_are_frames() -> None:
    def look() -> list[str]:
        return [code.co_name for code, _ in user_frames(sys._getframe(1))]

    def generator() -> Iterator[list[str]]:
        yield look()

    async def coroutine() -> list[str]:
        return look()

    assert next(generator())[0] == "generator"
    assert (lambda: look())()[0] == "<lambda>"
    assert look()[0] == "test_generators_comprehensions_and_coroutines_are_frames"
    if sys.version_info < (3, 12):
        inside = [look() for _ in range(1)]
        assert inside[0][0] == "<listcomp>"
    assert asyncio.run(coroutine())[0] == "coroutine"


def spans(text: str, at: Path, **names: object) -> list[Span | None]:
    """The spans at which a program calls `here()` or uses a `Spy`, in the order of the calls."""
    found: list[Span | None] = []

    def here(*_: object, **__: object) -> Spy:
        found.append(caller_span())
        return spy

    def caller_span() -> Span | None:
        frame = sys._getframe(2)
        return span_of(frame.f_code, frame.f_lasti)

    class Spy:
        __call__ = method = __matmul__ = __add__ = __getitem__ = __setitem__ = __enter__ = __iadd__ = here
        __neg__ = __float__ = here

        def __exit__(self, *_: object) -> None:
            found.append(caller_span())

        def __iter__(self) -> Iterator[int]:
            found.append(caller_span())
            return iter([1])

        @property
        def seen(self) -> Spy:
            found.append(caller_span())
            return self

        def chain(self) -> Spy:
            return self

    spy = Spy()
    files.forget()
    (at / "program.py").write_text(text, "utf-8")
    exec(compile(text, str(at / "program.py"), "exec"), {"here": here, "spy": spy, **names})
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = here(1, 2)", "here(1, 2)"),
        ("变量 = '梯度'; x = here(变量) + 1", "here(变量)"),
        ("'变'; x = 1 + len('变') if here('量') is None else 2", "here('量')"),
        ("'变'; x = spy @ spy", "spy @ spy"),
        ("'变'; x = spy.seen", "spy.seen"),
        ("'变'; x = spy.method(1)", "spy.method(1)"),
        ("'变'; x = spy[0]", "spy[0]"),
        ("'变'; x = -spy", "-spy"),
        ("'变'; x = [spy + y for y in (1,)]", "spy + y"),
        ("'变'; f = lambda: here(); f()", "here()"),
        ("'变'; x = next(here(y) for y in (1,))", "here(y)"),
        ("\tx = here()".replace("\t", ""), "here()"),
        ("if 1:\n\tx = '变', here()", "here()"),
        ("x = here(\n    1,\n    '变',\n)", "here(\n    1,\n    '变',\n)"),
        ("x = here(\n    1,\n    2,\n    3,\n)", "here(\n    1,\n    2,\n    3,\n)"),
        ("x = here(\n    1,\n    2,\n    3,\n    4,\n)", "here"),
        ("x = spy.chain().chain().method(\n    1,\n    2,\n    3,\n    4,\n)", "spy.chain().chain().method"),
        ("x = (spy @\n  [\n  1,\n  2,\n  3,\n  4])", "spy @"),
        ("with spy:\n    pass", "spy"),
        ("with spy as 变:\n    pass", "spy"),
        ("for 变 in spy:\n    pass", "spy"),
        ("spy[\n  0\n] = 1", "spy[\n  0\n]"),
    ],
)
def test_span_is_that_of_the_whole_expression(text: str, expected: str, at: Path) -> None:
    found = spans(text, at)
    assert found
    assert found[0] is not None and found[0].file == "program.py"
    assert piece(text, found[0]) == expected


LONG_WITH = """
with spy:
    a = 1
    b = 2
    c = 3
    d = 4
    e = 5
"""


def test_enter_and_exit_of_a_long_block_are_at_its_header(at: Path) -> None:
    assert [piece(LONG_WITH, span) for span in spans(LONG_WITH, at)] == ["spy", "spy"]


def test_method_at_the_end_of_a_long_chain_is_at_its_last_line(at: Path) -> None:
    text = "x = (\n    spy\n    .chain()\n    .chain()\n    .chain()\n    .chain()\n    .method(1)\n)"
    (span,) = spans(text, at)
    assert span is not None and span.end_line is not None
    assert span.end_line - span.line < positions.LONGEST_SPAN
    assert piece(text, span) in (".method", "method(1)", "method")


@pytest.mark.parametrize("lines", range(1, 12))
def test_no_span_is_longer_than_five_lines(lines: int, at: Path) -> None:
    inner = "".join(f"\n    {number}," for number in range(lines))
    for text in (
        f"x = here({inner}\n)",
        f"with here({inner}\n):\n    pass",
        f"x = spy + [{inner}\n]",
        f"x = spy[{inner}\n]",
    ):
        for span in spans(text, at):
            assert span is not None and span.end_line is not None
            assert span.end_line - span.line < 5


def test_columns_are_none_together_where_the_file_cannot_be_read() -> None:
    def f() -> Span | None:
        frame = sys._getframe()
        return span_of(frame.f_code.replace(co_filename="absent.py"), frame.f_lasti)

    span = f()
    assert span is not None and span.line > 1
    assert (span.file, span.column, span.end_line, span.end_column) == ("absent.py", None, None, None)


def test_columns_are_none_together_where_python_keeps_none(at: Path) -> None:
    (at / "program.py").write_text("x = 1\ny = 2\n")
    code = compile("x = 1\ny = 2\n", str(at / "program.py"), "exec")
    # What `python -X no_debug_ranges` compiles has lines and no columns.
    table = bytes([0xE8, 0x01, 0xE8, 0x01])
    bare = code.replace(co_linetable=table) if sys.version_info < (3, 12) else None
    if bare is not None:
        span = span_of(bare, 0)
        assert span is not None and (span.column, span.end_line, span.end_column) == (None, None, None)


def test_file_that_has_become_shorter_gives_the_line_alone(at: Path) -> None:
    (at / "program.py").write_text("\n")
    code = compile("\n\n\nx = f(1)\n", str(at / "program.py"), "exec")
    spans_there = {span_of(code, lasti) for lasti in range(4, len(code.co_code), 2)}
    assert Span("program.py", 4) in spans_there
    assert all(span is None or span.column is None for span in spans_there if span is None or span.line == 4)


def test_frame_that_has_not_run_is_at_its_first_line() -> None:
    def generator() -> Iterator[int]:
        yield 1

    frame = generator().gi_frame  # type: ignore[attr-defined]
    place = place_of(frame.f_code, -1)
    assert place is not None and place.span.line == generator.__code__.co_firstlineno


def test_places_name_the_functions() -> None:
    class Model:
        def call(self) -> tuple[object, ...]:
            return places_of(user_frames(sys._getframe(), 2))

    first, second = Model().call()
    assert first.function.endswith("Model.call")  # type: ignore[attr-defined]
    assert second.function == "test_places_name_the_functions"  # type: ignore[attr-defined]

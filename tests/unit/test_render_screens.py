"""Where text goes decides its width and colour, and a stream that cannot take it harms nobody."""

from __future__ import annotations

import io
import os

import pytest
from rich.text import Text as Styled

from gradwhy.render.screens import Screen, printed, screen_for
from gradwhy.render.streams import write


class Terminal(io.StringIO):
    """A stream that says it is a terminal, of no known size."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_has_colour_and_a_pipe_has_not() -> None:
    assert screen_for(Terminal(), "en", {"TERM": "xterm"}).has_color
    assert screen_for(io.StringIO(), "en", {"TERM": "xterm"}) == Screen(80, False, "en")


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": "unknown", "NO_COLOR": ""}])
def test_colour_can_be_declined(environment: dict[str, str]) -> None:
    assert not screen_for(Terminal(), "en", environment).has_color


def test_an_empty_no_color_declines_nothing() -> None:
    assert screen_for(Terminal(), "en", {"TERM": "xterm", "NO_COLOR": ""}).has_color


@pytest.mark.parametrize(("columns", "width"), [("20", 60), ("100", 100), ("400", 120), ("nonsense", 80)])
def test_the_width_is_the_terminals_within_bounds(columns: str, width: int) -> None:
    assert screen_for(Terminal(), "en", {"COLUMNS": columns}).width == width


def test_the_width_is_asked_of_the_stream_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    class Sized(Terminal):
        def fileno(self) -> int:
            return 42

    sizes = {42: os.terminal_size((97, 24))}
    monkeypatch.setattr(os, "get_terminal_size", lambda number=1: sizes[number])
    assert screen_for(Sized(), "en", {}).width == 97


def test_a_closed_stream_is_no_terminal() -> None:
    closed = io.StringIO()
    closed.close()
    assert screen_for(closed, "en", {}) == Screen(80, False, "en")


def test_without_colour_there_is_no_escape_sequence() -> None:
    row = Styled().append("red", style="bold red")
    assert printed([row], Screen(80, False)) == "red\n"
    assert printed([row], Screen(80, True)) == "\x1b[1;31mred\x1b[0m\n"


def test_nothing_is_read_as_markup_and_long_rows_stay_whole() -> None:
    row = Styled("[red]x[/red] :smile: " + "long " * 40)
    assert printed([row], Screen(60, True)) == row.plain + "\n"


def test_what_the_encoding_lacks_is_escaped() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii", errors="strict")
    write(stream, "梯度 …\n")
    assert raw.getvalue() == b"\\u68af\\u5ea6 \\u2026\n"


def test_a_closed_or_broken_stream_takes_nothing_and_raises_nothing() -> None:
    closed = io.StringIO()
    closed.close()
    write(closed, "text")

    class Broken(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    write(Broken(), "text")

"""Where text is shown: how wide, in colour or not, in which language."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import TextIO

from rich.console import Console, RenderableType
from rich.text import Text as Styled
from rich.theme import Theme

_DEFAULT_WIDTH = 80
_LEAST_WIDTH = 60
_MOST_WIDTH = 120
# Rich's own colours for Markdown assume a dark terminal.
_THEME = Theme({"markdown.h1": "bold underline", "markdown.h2": "bold blue", "markdown.code": "bold cyan"})


@dataclass(frozen=True, slots=True)
class Screen:
    """`width` in cells. Without colour there is not one escape sequence in the output."""

    width: int = _DEFAULT_WIDTH
    has_color: bool = False
    language: str = "en"


def screen_for(stream: TextIO, language: str, environment: Mapping[str, str] = os.environ) -> Screen:
    """The screen that `stream` writes to; a plain one of 80 cells where it is not a terminal."""
    if not _is_terminal(stream):
        return Screen(language=language)
    is_dumb = environment.get("TERM", "").lower() in ("dumb", "unknown")
    width = min(max(_terminal_width(stream, environment), _LEAST_WIDTH), _MOST_WIDTH)
    return Screen(width, not environment.get("NO_COLOR") and not is_dumb, language)


def printed(rows: Sequence[Styled], screen: Screen) -> str:
    """The rows as what is written to a stream, each with its line end."""
    if not screen.has_color:
        return "".join(f"{row.plain}\n" for row in rows)
    console = _console(screen, screen.width)
    with console.capture() as output:
        for row in rows:
            console.print(row, soft_wrap=True)
    return output.get()


def captured(renderable: RenderableType, screen: Screen, width: int) -> str:
    """Something of Rich as what is written to a stream."""
    console = _console(screen, width)
    with console.capture() as output:
        console.print(renderable)
    return output.get()


def _console(screen: Screen, width: int) -> Console:
    # The sixteen colours that every terminal has, in the shades of the user's own theme.
    return Console(
        file=StringIO(),
        force_terminal=screen.has_color,
        color_system="standard" if screen.has_color else None,
        no_color=not screen.has_color,
        force_jupyter=False,
        legacy_windows=False,
        highlight=False,
        theme=_THEME,
        width=width,
    )


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except (OSError, ValueError, AttributeError):
        return False


def _terminal_width(stream: TextIO, environment: Mapping[str, str]) -> int:
    chosen = environment.get("COLUMNS", "")
    if chosen.isdecimal() and int(chosen):
        return int(chosen)
    try:
        # `shutil.get_terminal_size` asks standard output alone, which may be a pipe while our stream is a terminal.
        return os.get_terminal_size(stream.fileno()).columns or _DEFAULT_WIDTH
    except (OSError, ValueError):
        return _DEFAULT_WIDTH

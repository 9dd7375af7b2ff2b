"""A patch, and what is said of it, as text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text as Styled

from gradwhy.render.screens import Screen, printed
from gradwhy.texts import harmless

_STYLES = {"---": "bold", "+++": "bold", "@@ ": "cyan", "-": "red", "+": "green"}


def patch_text(rows: Sequence[str], screen: Screen) -> str:
    """The rows, in colour where the screen has it. Without, a patch among them keeps its tabs and line ends and so applies."""
    if screen.has_color:
        return printed([Styled(_shown(row), style=_style_of(row)) for row in rows], screen)
    return "".join(f"{_shown(row)}\n" for row in rows)


def _style_of(row: str) -> str:
    return next((style for start, style in _STYLES.items() if row.startswith(start)), "")


def _shown(row: str) -> str:
    text = "\t".join(map(harmless, row.removesuffix("\r").split("\t")))
    return text + "\r" if row.endswith("\r") else text

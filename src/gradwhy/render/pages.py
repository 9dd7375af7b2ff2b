"""A cause's page as text for a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.markdown import Markdown

from gradwhy.render.cells import wrapped
from gradwhy.render.screens import Screen, captured
from gradwhy.texts import Page

_WIDEST = 100
_FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_FENCE_WORDS = re.compile(r"^(```\w*)[^\n]*")
_WIDE = "\u2e80-\uffef"
_BETWEEN_WIDE = re.compile(rf"(?<=[{_WIDE}])\n\s*(?=[{_WIDE}])")
_ITEM = re.compile(r"\n(?=- )")


def page_text(page: Page, screen: Screen) -> str:
    """The page, laid out for the screen; without colour, code keeps its backticks."""
    width = min(screen.width, _WIDEST)
    markdown = Markdown(
        f"# {page.slug}\n\n" + laid_out(f"**{page.title}**\n\n{page.body}", width), code_theme="ansi_dark"
    )
    if not screen.has_color:
        _mark_plainly(markdown)
    text = captured(markdown, screen, width)
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines()) if not screen.has_color else text


def _mark_plainly(markdown: Markdown) -> None:
    """Put back the marks that colour would stand for."""
    is_heading = False
    for token in markdown.parsed:
        for inner in token.children or ():
            if inner.type == "code_inline":
                inner.content = f"`{inner.content}`"
            elif is_heading and inner.type == "text":
                inner.content = f"## {inner.content}"
        is_heading = token.type == "heading_open" and token.tag == "h2"


def laid_out(body: str, width: int) -> str:
    """A page's Markdown with its lines broken where the terminal's end: Rich itself breaks at spaces only, and Chinese has none."""
    parts = _FENCED.split(body)
    return "".join(
        _FENCE_WORDS.sub(r"\1", part) if part.startswith("```") else "\n\n".join(_blocks(part, width)) for part in parts
    )


def _blocks(text: str, width: int) -> Iterator[str]:
    for block in text.split("\n\n"):
        if block.lstrip().startswith("- "):
            # Rich sets ` • ` before an item.
            yield "\n".join("- " + _broken(item.strip()[2:], width - 3, "  ") for item in _ITEM.split(block))
        elif block.startswith("#"):
            yield block
        else:
            yield _broken(block, width, "")


def _broken(text: str, width: int, indent: str) -> str:
    one_line = " ".join(_BETWEEN_WIDE.sub("", text).split("\n"))
    return f"  \n{indent}".join(wrapped(re.sub(r"\s+", " ", one_line), width))

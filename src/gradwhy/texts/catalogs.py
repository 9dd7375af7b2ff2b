"""The templates and pages as they stand on disk: common messages in `render/messages`, a cause's own in its folder."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

LANGUAGES = ("en", "zh")

_OURS = Path(__file__).parent.parent
_MESSAGES = _OURS / "render" / "messages"
_CAUSES = _OURS / "causes"
_FENCE = "+++"


class PageError(ValueError):
    """A cause's page does not have the form of one; the message names the file and what is wrong."""


@dataclass(frozen=True, slots=True)
class Page:
    """A cause's page in one language: its title, its short messages by `SECTION/NAME`, and its Markdown body."""

    slug: str
    language: str
    title: str
    templates: dict[str, str]
    body: str


@cache
def slugs() -> tuple[str, ...]:
    """The causes there are, by name: every folder that holds a page."""
    return tuple(sorted(_slug(found.parent.name) for found in _CAUSES.glob("*/en.md")))


@cache
def page(slug: str, language: str) -> Page:
    """The cause's page; the English one where that language has none. KeyError where there is no such cause."""
    if slug not in slugs():
        raise KeyError(slug)
    folder = _CAUSES / slug.replace("-", "_")
    path = folder / f"{language}.md"
    return _read_page(path if path.is_file() else folder / "en.md", slug)


@cache
def templates(language: str) -> dict[str, str]:
    """The common templates of a language, by key."""
    with open(_MESSAGES / f"{language}.toml", "rb") as stream:
        return _flattened(tomllib.load(stream), "")


def template(key: str, language: str, framework: str | None = None) -> str | None:
    """The template for a key, the one for `framework` first, in English where that language lacks it; None without any."""
    names = (f"{key}@{framework}", key) if framework else (key,)
    for spoken in (language, "en"):
        for name in names:
            found = _common_or_own(name, spoken)
            if found is not None:
                return found
    return None


def _common_or_own(key: str, language: str) -> str | None:
    if language in LANGUAGES and key in templates(language):
        return templates(language)[key]
    slug, _, rest = key.partition("/")
    if slug not in slugs():
        return None
    try:
        return page(slug, language).templates.get(rest)
    except PageError:
        return None


def _read_page(path: Path, slug: str) -> Page:
    before, opening, rest = path.read_text(encoding="utf-8").partition(f"{_FENCE}\n")
    matter, closing, body = rest.partition(f"\n{_FENCE}\n")
    if before or not opening or not closing:
        raise PageError(f"{path.name} of {slug}: expected front matter between two `{_FENCE}` lines")
    try:
        head = tomllib.loads(matter)
    except tomllib.TOMLDecodeError as wrong:
        raise PageError(f"{path.name} of {slug}: {wrong}") from None
    title = head.pop("title", None)
    if not isinstance(title, str):
        raise PageError(f"{path.name} of {slug}: expected a title")
    return Page(slug, path.stem, title, _flattened(head, ""), body.strip() + "\n")


def _flattened(table: dict[str, Any], prefix: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, entry in table.items():
        if isinstance(entry, dict):
            found |= _flattened(entry, f"{prefix}{name}/")
        else:
            found[prefix + name] = str(entry)
    return found


def _slug(folder: str) -> str:
    return folder.replace("_", "-")

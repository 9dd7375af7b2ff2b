"""What several commands let the user choose, and how they refuse."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import rich_click as click

from gradwhy.flow import Text
from gradwhy.settings import Settings, SettingsError, settings_for
from gradwhy.texts import LANGUAGES, Page, PageError, page, render_text, slugs

language_option = click.option(
    "--lang", type=click.Choice(LANGUAGES), help="The language of the text.  [default: that of the locale]"
)


class Refusal(click.ClickException):
    """A request of the user that cannot be met, in the user's language."""

    exit_code = 2

    def __init__(self, text: Text, language: str) -> None:
        super().__init__(render_text(text, language))


def refusal(key: str, language: str, **values: Any) -> Refusal:
    return Refusal(Text(f"cli/{key}", values), language)


def language_of_locale(environment: Mapping[str, str] = os.environ) -> str:
    """The language of the locale, as far as we speak it, else English."""
    name = next((v for k in ("LC_ALL", "LC_MESSAGES", "LANG") if (v := environment.get(k))), "")
    spoken = name.replace("-", "_").partition("_")[0].lower()
    return spoken if spoken in LANGUAGES else "en"


def project_settings(chosen: str | None) -> Settings:
    """The settings that hold in the working folder; a Refusal where they cannot be used."""
    try:
        return settings_for(Path.cwd())
    except SettingsError as wrong:
        raise Refusal(wrong.text, chosen or language_of_locale()) from None


def language_for(chosen: str | None) -> str:
    """The language to speak: the one chosen, else the project's, else the locale's."""
    return chosen or project_settings(chosen).lang or language_of_locale()


def causes_in(lists: Iterable[str], language: str) -> frozenset[str]:
    """The causes that comma-separated lists name; a Refusal where one does not exist."""
    named = [slug.strip() for text in lists for slug in text.split(",")]
    return frozenset(known_cause(slug, language) for slug in named if slug)


def known_cause(slug: str, language: str) -> str:
    """`slug` itself; a Refusal, with the cause that was likely meant, where there is no such cause."""
    if slug in slugs():
        return slug
    close = difflib.get_close_matches(slug, slugs(), 1)
    if close:
        raise refusal("unknown-cause-close", language, cause=slug, close=close[0])
    raise refusal("unknown-cause", language, cause=slug)


def page_of(slug: str, language: str) -> Page:
    """The cause's page; a Refusal where it cannot be read."""
    try:
        return page(slug, language)
    except PageError as wrong:
        raise refusal("broken-page", language, problem=str(wrong)) from None

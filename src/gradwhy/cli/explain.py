"""`gradwhy explain`: a cause's page."""

from __future__ import annotations

import sys

import rich_click as click

from gradwhy.cli.choices import known_cause, language_for, language_option, page_of


@click.command("explain")
@click.argument("cause")
@language_option
def command(cause: str, lang: str | None) -> None:
    """Show the page of CAUSE: what happens, why, an example, and what to do."""
    language = language_for(lang)
    page = page_of(known_cause(cause, language), language)
    # Rich is imported here, so that a refusal does not wait for it.
    from gradwhy.render.pages import page_text
    from gradwhy.render.screens import screen_for
    from gradwhy.render.streams import write

    write(sys.stdout, page_text(page, screen_for(sys.stdout, language)))

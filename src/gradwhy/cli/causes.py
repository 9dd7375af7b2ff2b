"""`gradwhy causes`: one line a cause."""

from __future__ import annotations

import rich_click as click

from gradwhy.cli.choices import language_for, language_option, page_of
from gradwhy.texts import slugs


@click.command("causes")
@language_option
def command(lang: str | None) -> None:
    """List the causes, one a line."""
    language = language_for(lang)
    width = max(map(len, slugs()), default=0)
    for slug in slugs():
        click.echo(f"{slug:<{width}}  {page_of(slug, language).title}")

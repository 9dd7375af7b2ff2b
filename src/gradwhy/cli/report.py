"""`gradwhy report`: a saved report once more, in any language."""

from __future__ import annotations

import sys
from pathlib import Path

import rich_click as click

from gradwhy.cli.choices import Refusal, language_for, language_option, refusal
from gradwhy.flow import Report
from gradwhy.render.json import ReportError, read_report, replace_file, report_bytes
from gradwhy.render.screens import Screen, printed, screen_for
from gradwhy.render.streams import write
from gradwhy.render.terminal import report_rows
from gradwhy.settings import FORMATS
from gradwhy.texts import harmless, localize


@click.command("report")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@click.option(
    "--format", "form", type=click.Choice(FORMATS), default="text", show_default=True, help="The form of the output."
)
@click.option("--output", type=click.Path(path_type=Path), help="Write to this file instead of standard output.")
@language_option
def command(files: tuple[Path, ...], form: str, output: Path | None, lang: str | None) -> None:
    """Show saved reports: the findings of each FILE, one file after another."""
    language = language_for(lang)
    if form == "json" and len(files) > 1:
        raise refusal("one-json", language)
    try:
        reports = {file: localize(read_report(file), language) for file in files}
        if form == "json":
            content = report_bytes(reports[files[0]])
        else:
            screen = screen_for(sys.stdout, language) if output is None else Screen(language=language)
            content = _text(reports, screen)
        _give(content, output)
    except ReportError as wrong:
        raise Refusal(wrong.text, language) from None


def _text(reports: dict[Path, Report], screen: Screen) -> bytes:
    """The reports as text; where there are several, each below the name of its file."""
    parts = []
    for file, report in reports.items():
        head = f"{harmless(str(file))}\n\n" if len(reports) > 1 else ""
        parts.append(head + printed(report_rows(report, screen), screen))
    return "\n".join(parts).encode("utf-8", "backslashreplace")


def _give(content: bytes, output: Path | None) -> None:
    if output is None:
        write(sys.stdout, content.decode("utf-8", "surrogatepass"))
    else:
        replace_file(output, content)

"""What a run says while it goes on, and the report that it keeps."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import TextIO

# Only the package: its console is imported at the first finding, and is so looked for in it, not in the program's folder.
import rich  # noqa: F401

from gradwhy.flow import Finding, Report, Text
from gradwhy.render.closing import closing_line, failure_line
from gradwhy.render.json import ReportError, ReportFile, replace_file
from gradwhy.render.streams import write
from gradwhy.texts import localize, render_text


class Teller:
    """Prints every finding once, as soon as a report holds it, and keeps the latest report in a file, if there is one.

    `stream` is the standard error with which the run began, None where it had none. What the program puts in its place, or
    captures, stays its own.
    """

    def __init__(self, stream: TextIO | None, language: str, *, form: str = "text", output: Path | None = None) -> None:
        self._stream = stream if stream is not None else StringIO()
        self._language = language
        self._output = output
        self._json = ReportFile(output) if output is not None and form == "json" else None
        self._shown: set[int] = set()
        self._has_failed = False
        self._lock = threading.RLock()

    def changed(self, report: Report) -> None:
        """Print what is new in the report, and keep it."""
        with self._lock:
            fresh = [finding for finding in report.findings if finding.id not in self._shown]
            self._shown |= {finding.id for finding in fresh}
            if fresh:
                self._print(report, fresh)
            try:
                self.keep(report)
            except ReportError as wrong:
                if not self._has_failed:
                    self._has_failed = True
                    self._say(f"gradwhy: {render_text(wrong.text, self._language)}")

    def keep(self, report: Report) -> None:
        """Write the report to its file; ReportError where that cannot be done."""
        if self._output is None:
            return
        if self._json is not None:
            self._json.write(localize(report, self._language))
            return
        from gradwhy.render.screens import Screen, printed
        from gradwhy.render.terminal import report_rows

        screen = Screen(language=self._language)
        text = printed(report_rows(report, screen), screen)
        replace_file(self._output, text.encode("utf-8", "backslashreplace"))

    def failed(self, problem: str) -> None:
        """Print what of ours has failed."""
        self._say(failure_line(problem, self._language))

    def notice(self, why: Text) -> None:
        """Print what the program uses and gradwhy does not observe."""
        self._say(render_text(why, self._language))

    def fixes(self, report: Report, rows: Sequence[str]) -> None:
        """Print what is said of the fixes, a patch among it in colour, and keep the report that holds them."""
        from gradwhy.render.patches import patch_text
        from gradwhy.render.screens import screen_for

        with self._lock:
            write(self._stream, "\n" + patch_text(rows, screen_for(self._stream, self._language)))
            try:
                self.keep(report)
            except ReportError as wrong:
                self._say(f"gradwhy: {render_text(wrong.text, self._language)}")

    def ended(self, report: Report) -> None:
        """Print the last line."""
        self._say(("\n" if self._shown else "") + closing_line(report, self._language))

    def _print(self, report: Report, findings: list[Finding]) -> None:
        from gradwhy.render.screens import printed, screen_for
        from gradwhy.render.terminal import Surroundings, finding_rows

        screen = screen_for(self._stream, self._language)
        for finding in findings:
            rows = finding_rows(finding, screen, Surroundings.of(report, finding))
            # An empty line first: the program may have left the cursor behind a prompt or a progress bar.
            write(self._stream, "\n" + printed(rows, screen))

    def _say(self, line: str) -> None:
        write(self._stream, f"{line}\n")

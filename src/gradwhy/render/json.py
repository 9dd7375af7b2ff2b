"""A report as JSON, and back."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gradwhy.flow import FlowGraph, ModelError, Report, Text, from_json, to_json
from gradwhy.texts import render_text
from gradwhy.version import __version__

SCHEMA = 1

_GRAPH = "\0graph"
_GRAPHS = re.compile(r'"\\u0000graph(\d+)"')


class ReportError(ValueError):
    """A report that cannot be read or written; `text` says it in any language."""

    def __init__(self, key: str, **values: str | int) -> None:
        self.text = Text(f"report/{key}", dict(values))
        super().__init__(render_text(self.text, "en"))


class ReportFile:
    """A file that holds a run's report. It is written anew at every finding, so that a killed program leaves one, too."""

    def __init__(self, path: Path) -> None:
        # The program may change its working folder before the report is written.
        self.path = Path(os.path.abspath(path))
        self._graphs: dict[int, tuple[FlowGraph, str]] = {}

    def write(self, report: Report) -> None:
        """Replace the file's content in one step; ReportError where it cannot be written."""
        replace_file(self.path, report_bytes(report, [self._graph(f.graph) for f in report.findings]))

    def _graph(self, graph: FlowGraph | None) -> str:
        # A graph is by far the largest part of a finding, and never changes.
        if graph is None:
            return "null"
        if id(graph) not in self._graphs:
            self._graphs[id(graph)] = (graph, graph_json(graph))
        return self._graphs[id(graph)][1]


def report_bytes(report: Report, graphs: Sequence[str] | None = None) -> bytes:
    """The report as JSON in UTF-8, one field a line but for the graphs; `graphs` are those of its findings, if known."""
    if graphs is None:
        graphs = ["null" if f.graph is None else graph_json(f.graph) for f in report.findings]
    raw = to_json(replace(report, findings=tuple(replace(f, graph=None) for f in report.findings)))
    for number, finding in enumerate(raw["findings"]):
        finding["graph"] = f"{_GRAPH}{number}"
    raw = {"schema": raw.pop("schema"), **raw}
    text = json.dumps(raw, ensure_ascii=False, indent=1, allow_nan=False)
    whole = _GRAPHS.sub(lambda found: graphs[int(found[1])], text) + "\n"
    # Half a surrogate pair, from a file name that is not UTF-8, becomes the escape that JSON has for it.
    return whole.encode("utf-8", "backslashreplace")


def graph_json(graph: FlowGraph) -> str:
    return json.dumps(to_json(graph), ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def read_report(path: Path) -> Report:
    """The report in that file; ReportError says in one line why there is none."""
    shown = str(path)
    try:
        raw = json.loads(path.read_bytes())
    except OSError as wrong:
        raise ReportError("unreadable", file=shown, problem=_reason(wrong)) from None
    except RecursionError:
        raise ReportError("not-json", file=shown, problem="nested too deeply") from None
    except ValueError as wrong:
        raise ReportError("not-json", file=shown, problem=str(wrong)) from None
    _check_schema(raw, shown)
    try:
        return from_json(Report, raw)
    except (ModelError, RecursionError) as wrong:
        raise ReportError("broken", file=shown, problem=str(wrong)) from None


def replace_file(path: Path, content: bytes) -> None:
    """Give the file this content in one step: a reader sees the old one or the whole of it. ReportError if it cannot be done."""
    target = os.path.realpath(path)
    try:
        if _is_device(target):
            Path(target).write_bytes(content)
            return
        beside = f"{target}.{os.getpid()}-{os.urandom(4).hex()}"
        try:
            with open(beside, "xb") as stream:
                stream.write(content)
            if os.path.exists(target):
                os.chmod(beside, stat.S_IMODE(os.stat(target).st_mode))
            os.replace(beside, target)
        except BaseException:
            if os.path.exists(beside):
                os.unlink(beside)
            raise
    except OSError as wrong:
        raise ReportError("unwritable", file=str(path), problem=_reason(wrong)) from None


def _is_device(path: str) -> bool:
    """Whether the path is something that cannot be replaced by a file, such as a pipe or `/dev/null`."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def _check_schema(raw: Any, shown: str) -> None:
    schema = raw.get("schema") if isinstance(raw, dict) else None
    if not isinstance(schema, int) or schema < 1 or "gradwhy" not in raw:
        raise ReportError("not-a-report", file=shown)
    if schema > SCHEMA:
        raise ReportError(
            "newer", file=shown, schema=schema, known=SCHEMA, version=__version__, writer=str(raw["gradwhy"])
        )


def _reason(wrong: OSError) -> str:
    return (wrong.strerror or str(wrong)).lower()

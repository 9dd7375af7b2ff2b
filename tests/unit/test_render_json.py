"""A report survives its file, and a file that is no report is refused in one line."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from gradwhy.flow import FlowGraph, Input, Op, Report, Text, Value, ValueKind, to_json
from gradwhy.render import json as report_json
from gradwhy.render.json import ReportError, ReportFile, read_report, report_bytes
from gradwhy.texts import localize
from samples import SAMPLES, call_report, mask_finding, mask_report, report

GRAPH = FlowGraph(
    values=(Value(0, ValueKind.TENSOR, "float32", (3,)), Value(1, ValueKind.TENSOR, "float32", (3,))),
    ops=(Op(0, "Mul", 1, (Input(0),), (1,), ()),),
)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_report_is_read_back_as_it_was_written(name: str, tmp_path: Path) -> None:
    shown = localize(SAMPLES[name](), "zh")
    ReportFile(tmp_path / "report.json").write(shown)
    assert read_report(tmp_path / "report.json") == shown


def test_a_report_is_plain_json_that_holds_every_text_filled_in() -> None:
    raw = json.loads(report_bytes(localize(mask_report(), "en")))
    assert next(iter(raw)) == "schema"
    assert (raw["schema"], raw["language"]) == (1, "en")
    finding = raw["findings"][0]
    assert finding["headline"]["text"] == "no gradient reaches `x`"
    assert finding["headline"]["key"] == "headline/none"
    assert finding["labels"][0]["text"]["text"] == "ran before the tape started recording"
    assert finding["path"][1]["passage"] == "cut"
    assert finding["sources"] == [{"name": "x", "aliases": [], "class": "Variable", "shape": [1, 3]}]


def test_a_graph_is_kept_and_written_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    encoded = []
    encode = report_json.graph_json
    monkeypatch.setattr(report_json, "graph_json", lambda graph: encoded.append(graph) or encode(graph))
    shown = replace(mask_report(), findings=(replace(mask_finding(), graph=GRAPH), mask_finding()))
    file = ReportFile(tmp_path / "report.json")
    file.write(shown)
    file.write(replace(shown, exit_status=1))
    assert encoded == [GRAPH]
    assert read_report(file.path).findings == shown.findings
    assert json.loads(file.path.read_bytes()) == to_json(replace(shown, exit_status=1))


def test_numbers_that_are_not_finite_are_valid_json() -> None:
    finding = replace(mask_finding(), notes=(Text("labels/target", {"norm": float("nan"), "most": float("inf")}),))
    content = report_bytes(replace(mask_report(), findings=(finding,)))

    def refuse(constant: str) -> float:
        raise AssertionError(constant)

    raw = json.loads(content, parse_constant=refuse)
    assert raw["findings"][0]["notes"][0]["values"] == {"norm": "nan", "most": "inf"}


def test_a_name_that_is_no_utf_8_is_written_as_an_escape_and_read_back(tmp_path: Path) -> None:
    shown = replace(mask_report(), program="caf\udce9.py", findings=())
    ReportFile(tmp_path / "report.json").write(shown)
    assert b"caf\\udce9.py" in (tmp_path / "report.json").read_bytes()
    assert read_report(tmp_path / "report.json").program == "caf\udce9.py"


def test_a_file_is_replaced_in_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.json"
    ReportFile(path).write(mask_report())
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(ReportError, match="no space left on device"):
        ReportFile(path).write(call_report())
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["report.json"]


def test_a_file_keeps_its_mode_and_a_link_its_target(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("old", encoding="utf-8")
    (tmp_path / "real.json").chmod(0o640)
    (tmp_path / "link.json").symlink_to("real.json")
    ReportFile(tmp_path / "link.json").write(mask_report())
    assert (tmp_path / "link.json").is_symlink()
    assert stat.S_IMODE((tmp_path / "real.json").stat().st_mode) == 0o640
    assert read_report(tmp_path / "real.json") == mask_report()


def test_a_device_is_written_to_and_not_replaced() -> None:
    ReportFile(Path("/dev/null")).write(mask_report())
    assert not Path("/dev/null").is_file()


def test_a_report_goes_where_it_was_meant_to_when_the_program_changes_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = ReportFile(Path("report.json"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    file.write(mask_report())
    assert (tmp_path / "report.json").is_file()


def test_a_folder_that_is_gone_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=r"cannot write .*report\.json: no such file or directory"):
        ReportFile(tmp_path / "gone" / "report.json").write(mask_report())


def without(report: Report, key: str) -> bytes:
    raw = to_json(report)
    del raw[key]
    return json.dumps(raw).encode()


BAD = {
    "nothing": (b"", "is not JSON"),
    "no json": (b"{'schema': 1}", "is not JSON"),
    "no text": (b"\xff\xfe\x00", "is not JSON"),
    "another json": (b'{"results": []}', "is not a gradwhy report"),
    "a list": (b"[1, 2]", "is not a gradwhy report"),
    "no schema number": (b'{"schema": "1", "gradwhy": "0.1.0"}', "is not a gradwhy report"),
    "deep": (b"[" * 100_000, "is not JSON: nested too deeply"),
    "newer": (b'{"schema": 2, "gradwhy": "9.9.9"}', "written by gradwhy 9.9.9 with report schema 2"),
    "no program": (without(mask_report(), "program"), "is broken: Report: 'program' is missing"),
    "wrong type": (
        report_bytes(mask_report()).replace(b'"line": 4', b'"line": "4"'),
        r"is broken: .*line: expected int",
    ),
    "unknown word": (report_bytes(mask_report()).replace(b'"error"', b'"fatal"'), r"is broken: .*severity: 'fatal'"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_report_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    content, message = BAD[name]
    path = tmp_path / "report.json"
    path.write_bytes(content)
    with pytest.raises(ReportError, match=message) as refused:
        read_report(path)
    assert "\n" not in str(refused.value)


def test_a_missing_file_and_a_folder_are_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=r"cannot read the report .*gone\.json: no such file or directory"):
        read_report(tmp_path / "gone.json")
    with pytest.raises(ReportError, match="is a directory"):
        read_report(tmp_path)


def test_fields_of_a_later_gradwhy_are_passed_over(tmp_path: Path) -> None:
    raw = to_json(report(mask_finding(), mask_report().questions[0]))
    raw["later"] = {"anything": 1}
    (tmp_path / "report.json").write_text(json.dumps(raw), encoding="utf-8")
    assert read_report(tmp_path / "report.json").findings == (mask_finding(),)

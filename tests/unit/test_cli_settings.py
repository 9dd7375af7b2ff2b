"""The project's settings: found, checked, and refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradwhy.settings import Settings, SettingsError, settings_for


def project(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    return folder


def test_every_setting_is_read_and_a_path_is_meant_from_its_file(tmp_path: Path) -> None:
    folder = project(
        tmp_path,
        '[tool.gradwhy]\nlang = "zh"\nstrict = true\nselect = ["frozen"]\nignore = []\nformat = "json"\noutput = "out/r.json"',
    )
    assert settings_for(folder) == Settings("zh", True, ("frozen",), (), "json", folder / "out/r.json")


def test_the_nearest_project_above_counts_alone(tmp_path: Path) -> None:
    project(tmp_path, '[tool.gradwhy]\nlang = "zh"')
    inner = project(tmp_path / "inner", '[project]\nname = "inner"')
    (inner / "deep" / "er").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    assert settings_for(tmp_path / "other").lang == "zh"
    assert settings_for(inner / "deep" / "er") == Settings()


def test_no_project_is_no_settings(tmp_path: Path) -> None:
    assert settings_for(tmp_path) == Settings()


BAD = {
    "unknown key": (
        "[tool.gradwhy]\nlanguage = 'zh'",
        "`language` is no setting of `tool.gradwhy`; there are lang, strict",
    ),
    "wrong word": ("[tool.gradwhy]\nlang = 'fr'", '`lang` must be "en" / "zh"'),
    "no word": ("[tool.gradwhy]\nlang = 1", "`lang` must be"),
    "no truth": ("[tool.gradwhy]\nstrict = 'yes'", "`strict` must be true or false"),
    "no list": ("[tool.gradwhy]\nselect = 'frozen'", "`select` must be a list of causes"),
    "mixed list": ("[tool.gradwhy]\nignore = ['frozen', 1]", "`ignore` must be a list of causes"),
    "unhashable": ("[tool.gradwhy]\nformat = ['json']", "`format` must be"),
    "no path": ("[tool.gradwhy]\noutput = 1", "`output` must be a file's path"),
    "no table": ("[tool]\ngradwhy = 1", "`tool.gradwhy` must be a table"),
    "no TOML": ("[tool.gradwhy", "is not TOML"),
}


@pytest.mark.parametrize("name", BAD)
def test_settings_that_cannot_be_used_are_refused_in_one_line_that_names_the_file(name: str, tmp_path: Path) -> None:
    text, message = BAD[name]
    with pytest.raises(SettingsError) as refused:
        settings_for(project(tmp_path, text))
    assert message in str(refused.value)
    assert str(tmp_path / "pyproject.toml") in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_project_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match="is not TOML"):
        settings_for(tmp_path)

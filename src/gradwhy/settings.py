"""The settings of a project: `[tool.gradwhy]` of its pyproject.toml."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradwhy.flow import Text
from gradwhy.texts import LANGUAGES, render_text

FORMATS = ("text", "json")


class SettingsError(ValueError):
    """Settings that cannot be used; `text` says in one line what is wrong, in any language."""

    def __init__(self, key: str, **values: str | int) -> None:
        self.text = Text(f"settings/{key}", dict(values))
        super().__init__(render_text(self.text, "en"))


@dataclass(frozen=True, slots=True)
class Settings:
    """What a project has set; None where it leaves the choice to the command line or the default."""

    lang: str | None = None
    strict: bool | None = None
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    format: str | None = None
    output: Path | None = None


def settings_for(folder: Path) -> Settings:
    """The settings of the nearest pyproject.toml in `folder` or above it; SettingsError where they cannot be used."""
    for above in (folder, *folder.parents):
        path = above / "pyproject.toml"
        if path.is_file():
            return read_settings(path)
    return Settings()


def read_settings(path: Path) -> Settings:
    """The settings in that file; none where it has no table of ours."""
    try:
        project = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as wrong:
        raise SettingsError("unreadable", file=str(path), problem=(wrong.strerror or str(wrong)).lower()) from None
    except ValueError as wrong:
        raise SettingsError("not-toml", file=str(path), problem=str(wrong)) from None
    tool = project.get("tool", {})
    table = tool.get("gradwhy", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise SettingsError("wrong-type", file=str(path), name="tool.gradwhy", expected="a table")
    return Settings(**{name: _checked(name, value, path) for name, value in table.items()})


def _checked(name: str, value: Any, path: Path) -> Any:
    match name:
        case "lang":
            return _one_of(name, value, LANGUAGES, path)
        case "format":
            return _one_of(name, value, FORMATS, path)
        case "strict":
            return _expect(isinstance(value, bool), value, name, "true or false", path)
        case "select" | "ignore":
            is_list = isinstance(value, list) and all(isinstance(v, str) for v in value)
            return tuple(_expect(is_list, value, name, "a list of causes", path))
        case "output":
            # A path in a file is meant from where the file stands.
            return path.parent / _expect(isinstance(value, str) and value != "", value, name, "a file's path", path)
    known = ", ".join(Settings.__dataclass_fields__)
    raise SettingsError("unknown-key", file=str(path), name=name, known=known)


def _one_of(name: str, value: Any, choices: tuple[str, ...], path: Path) -> Any:
    return _expect(value in choices, value, name, " / ".join(f'"{c}"' for c in choices), path)


def _expect(holds: bool, value: Any, name: str, expected: str, path: Path) -> Any:
    if not holds:
        raise SettingsError("wrong-type", file=str(path), name=name, expected=expected)
    return value

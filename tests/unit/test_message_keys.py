"""No message waits for a use that never came."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import gradwhy
from gradwhy.texts import LANGUAGES, templates

SOURCES = Path(gradwhy.__file__).parent
# Only the tests' own reports say these.
KEPT = {"labels/asked", "labels/defined"}


def unused(keys: set[str], source: str) -> set[str]:
    """The labels and notes among `keys` that the source names nowhere as a string."""
    ours = {key for key in keys if re.match(r"(labels|notes)/", key)}
    return {key for key in ours if f'"{key}"' not in source}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_common_label_and_note_is_used(language: str) -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in SOURCES.rglob("*.py"))
    assert unused(set(templates(language)), source) <= KEPT


def test_a_label_that_nobody_names_is_found() -> None:
    assert unused({"labels/here", "labels/lost", "cli/other"}, 'text("labels/here")') == {"labels/lost"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_headlines_are_those_of_the_symptoms(language: str) -> None:
    words = {key.removeprefix("headline/").removesuffix("-many") for key in templates(language) if "headline/" in key}
    assert words == {"none", "zero", "nan", "error", "unheld"}

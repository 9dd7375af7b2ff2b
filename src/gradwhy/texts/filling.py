"""From a key and its values to words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from string import Formatter
from typing import Any

from gradwhy.flow import Text
from gradwhy.texts.catalogs import template

_SHOWN_NAMES = 3
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
# Control and format characters (terminal escapes, bidirectional overrides, zero-width ones), half surrogates, line separators.
_HARMFUL = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


_QUOTED = re.compile(r"`([^`]*)`")


class FillError(ValueError):
    """A template and its values do not fit together."""


def render_text(text: Text, language: str, framework: str | None = None) -> str:
    """The text's words in that language.

    A text whose key or values we do not know, from a later gradwhy's report, keeps the words it was saved with, else its key.
    """
    found = template(text.key, language, framework)
    try:
        return fill(found, text.values, language) if found is not None else _saved(text)
    except FillError:
        return _saved(text)


def say(key: str, language: str, **values: str | int | float) -> str:
    """A message of our own by its key."""
    return render_text(Text(key, values), language)


def fill(pattern: str, values: Mapping[str, str | int | float], language: str) -> str:
    """The template with its placeholders filled; FillError where one has no value.

    `{count:is|are}` chooses a word by a number. The value `sources` holds the first names in backticks, and `more` how many are
    not among them; `{sources}` lists them as that language does.
    """
    given: dict[str, Any] = {name: _Filled(value) for name, value in values.items()}
    if isinstance(values.get("sources"), str):
        given["sources"] = _listed(values, language)
    try:
        return Formatter().vformat(pattern, (), given)
    except (LookupError, ValueError, AttributeError, TypeError) as wrong:
        raise FillError(f"{pattern!r} with {sorted(values)}: {wrong!r}") from None


def harmless(text: str) -> str:
    """`text` with everything escaped that could steer a terminal or reorder what it shows."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escaped(c) if unicodedata.category(c) in _HARMFUL else c for c in text)


def _saved(text: Text) -> str:
    return harmless(text.text or text.key)


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _listed(values: Mapping[str, str | int | float], language: str) -> str:
    names = _QUOTED.findall(str(values["sources"]))
    more = int(values.get("more", 0))
    pattern = template(f"lists/{'more' if more else len(names)}", language)
    if pattern is None:
        return harmless(str(values["sources"]))
    shown = {f"name{i}": _Filled(name) for i, name in enumerate(names, 1)}
    return pattern.format(**shown, more=_Filled(more), count=_Filled(len(names) + more))


class _Filled:
    """A value on its way into a template: harmless, and never refusing a format that was meant for a number."""

    def __init__(self, value: str | int | float) -> None:
        self._value = value

    def __format__(self, spec: str) -> str:
        if "|" in spec:
            one, many = spec.split("|", 1)
            return one if self._value == 1 else many
        if isinstance(self._value, str):
            # A report holds NaN and infinity as strings, JSON having no numbers for them.
            return harmless(self._value)
        return format(self._value, spec)

"""The causes, by their folders, in the order in which they are asked."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING

import gradwhy.causes

if TYPE_CHECKING:
    from gradwhy.diagnose.lost import Claim, Lost


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause's slug, its recogniser, and the causes it goes before."""

    slug: str
    recognise: Callable[[Lost], Claim | None]
    goes_before: frozenset[str]


@cache
def slugs() -> tuple[str, ...]:
    """The slugs of all causes, by name; nothing of a cause is imported."""
    return tuple(sorted(m.name.replace("_", "-") for m in pkgutil.iter_modules(gradwhy.causes.__path__) if m.ispkg))


@cache
def causes() -> tuple[Cause, ...]:
    """All causes that have a recogniser, those that go before others first, else by slug."""
    found: dict[str, Cause] = {}
    for slug in slugs():
        name = f"gradwhy.causes.{slug.replace('-', '_')}.recognise"
        if importlib.util.find_spec(name) is None:
            continue
        module = importlib.import_module(name)
        found[slug] = Cause(slug, module.recognise, frozenset(module.GOES_BEFORE))
    order = TopologicalSorter({slug: {c.slug for c in found.values() if slug in c.goes_before} for slug in found})
    return tuple(found[slug] for slug in order.static_order())

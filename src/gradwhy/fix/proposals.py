"""The change that would mend a finding, from the folder of its cause."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from functools import cache

from gradwhy.fix.situation import NoFixError, Proposal, Situation
from gradwhy.source.edits import EditError

Maker = Callable[[Situation], Proposal]


@cache
def makers_of(cause: str) -> tuple[Maker, ...]:
    """What makes the fixes of a cause, the first choice first; empty where a person has to decide."""
    name = f"gradwhy.causes.{cause.replace('-', '_')}.fixes"
    if importlib.util.find_spec(name) is None:
        return ()
    makers: tuple[Maker, ...] = importlib.import_module(name).FIXES
    return makers


def proposals(situation: Situation) -> tuple[list[Proposal], list[str]]:
    """The first change that fits the finding, if there is one, and why those before it do not."""
    refused: list[str] = []
    for make in makers_of(situation.finding.cause):
        try:
            return [make(situation)], refused
        except (NoFixError, EditError) as why:
            refused.append(f"{make.__name__}: {why}")
    return [], refused

"""Make a hook of ours raise while a program runs, and tell what was left behind.

Both functions are entries for the fork server: they change the process for good.
"""

from __future__ import annotations

import builtins
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from entries import observed

Body = Callable[..., Any]


def discovering(program: str) -> int:
    """Run `program` observed; `hooks.json` tells how often each hook was called."""
    calls: Counter[str] = Counter()

    def counted(what: str, body: Body) -> Body:
        def counting(*args: Any, **kwargs: Any) -> Any:
            calls[what] += 1
            return body(*args, **kwargs)

        return counting

    _replace_hook_body(counted)
    kept = Path("hooks.json").resolve()
    try:
        return observed(program)
    finally:
        kept.write_text(json.dumps(calls), encoding="utf-8")


def injected(program: str, hook: str, call: str, exception: str) -> int:
    """Run `program` observed, and let `hook` raise the built-in `exception` at its call of that number and at all after.

    `injected.json` tells what stood once the hooks were to be off: a list with one entry a failure.
    """
    calls = 0

    def raising(what: str, body: Body) -> Body:
        if what != hook:
            return body

        def failing(*args: Any, **kwargs: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls >= int(call):
                raise getattr(builtins, exception)(f"injected into {hook}")
            return body(*args, **kwargs)

        return failing

    _replace_hook_body(raising)
    _watch_failures()
    return observed(program)


def _replace_hook_body(body: Callable[[str, Body], Body]) -> None:
    from gradwhy.backends import patches

    patches.hook_body = body


def _watch_failures() -> None:
    """Note, when a `Hooks` has failed, which of its own patches still stand."""
    from gradwhy.backends import patches

    failures: list[dict[str, Any]] = []
    standing, add, fail = patches.standing, patches.Hooks.add, patches.Hooks.fail
    undone: dict[Callable[[], None], bool] = {}
    labels: dict[Callable[[], None], str] = {}
    own: dict[int, list[Callable[[], None]]] = {}

    def noting(label: str, put_back: Callable[[], None]) -> Callable[[], None]:
        undo = standing(label, put_back)

        def undoing() -> None:
            undone[undoing] = True
            undo()

        labels[undoing] = label
        return undoing

    def adding(self: patches.Hooks, undo: Callable[[], None]) -> None:
        own.setdefault(id(self), []).append(undo)
        add(self, undo)

    def failing(self: patches.Hooks, what: str, problem: BaseException) -> None:
        try:
            fail(self, what, problem)
        finally:
            # An undo without a label only clears what is ours.
            left = [labels[undo] for undo in own.get(id(self), []) if undo in labels and undo not in undone]
            failures.append({"hook": what, "are_on": self.are_on, "left": left})
            kept.write_text(json.dumps(failures), encoding="utf-8")

    kept = Path("injected.json").resolve()
    patches.standing = noting
    patches.Hooks.add = adding  # type: ignore[method-assign]
    patches.Hooks.fail = failing  # type: ignore[method-assign]

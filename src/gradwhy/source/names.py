"""The user's own names for objects: the expressions that reach them from the running frames."""

from __future__ import annotations

import heapq
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType, ModuleType

from gradwhy.source.opening import DEFAULT_SKIPPED, Opening, Part, is_plain
from gradwhy.source.positions import is_user_file

MOST_OPENED = 20_000
MOST_EDGES = 200_000
FARTHEST = 12
"""The reach of an expression: a public attribute counts 2, an index or a framework's own table 1, a private attribute 4."""
MOST_ALIASES = 8
_MOST_TRIED = 3_000
_MOST_FOUND = 60


@dataclass(frozen=True, slots=True)
class _Root:
    """A name in a frame: the first part of an expression."""

    name: str
    frame: int
    is_global: bool


@dataclass(frozen=True, slots=True)
class _Edge:
    """One way to an object: from another object or, where `parent` is None, from a frame."""

    parent: int | None
    part: Part
    root: _Root | None = None


class Names:
    """An index of everything the frames reach, built once, that names any number of objects.

    `frames` are the user's, innermost first. `aliases` maps a private attribute to the public name it is known by,
    `tables` an attribute that holds children in a list or dict to the name they are shown under: `{"_layers": "layers"}`
    shows `.layers[0]`, `{"_modules": ""}` shows the children as attributes, or as `[0]` where their keys are digits.
    `openers` gives the parts of an object that hides them, as (suffix, object) pairs, None for any other object.
    `is_leaf` says that an object is not looked into, `same` gives the object that a wrapper stands for, and `skip` holds
    attributes that are not followed.

    No property or descriptor of the program runs: instance dictionaries, slots, lists, tuples and dicts are read directly.
    """

    def __init__(
        self,
        frames: Sequence[FrameType],
        *,
        aliases: Mapping[str, str] | None = None,
        tables: Mapping[str, str] | None = None,
        openers: Callable[[object], Iterable[tuple[str, object]] | None] | None = None,
        is_leaf: Callable[[object], bool] | None = None,
        same: Callable[[object], object] | None = None,
        skip: Iterable[str] = (),
    ) -> None:
        self._opening = Opening(
            aliases=dict(aliases or {}),
            tables=dict(tables or {}),
            openers=openers,
            is_leaf=is_leaf,
            skip=DEFAULT_SKIPPED | frozenset(skip),
        )
        self._same = same
        self._edges: dict[int, list[_Edge]] = {}
        self._edge_count = 0
        # Ids are only good while the objects live.
        self._kept: list[object] = []
        self._search(_roots(frames))

    def of(self, value: object) -> tuple[str, tuple[str, ...]]:
        """The name of an object and its aliases, at most `MOST_ALIASES`; an empty name where no frame reaches it."""
        found = sorted(self._expressions(id(self._canonical(value))))
        if not found:
            return "", ()
        # What a library hangs on an object under a private name is no name to show beside a public one.
        shown = [expression for expression in found if not expression.is_private] or found
        texts = dict.fromkeys(expression.text for expression in _spread(shown))
        name, *others = texts
        return name, tuple(others[:MOST_ALIASES])

    def reaches(self, key: int) -> bool:
        """Whether some expression leads to the object of that id, which must be alive."""
        return key in self._edges

    def of_id(self, key: int) -> str:
        """The name of the object of that id, which must be alive; empty where no frame reaches it."""
        kept = next((value for value in self._kept if id(value) == key), None)
        return self.of(kept)[0] if kept is not None else ""

    def _search(self, roots: Iterable[tuple[_Root, object]]) -> None:
        waiting: list[tuple[int, int, int, object, int]] = []
        best: dict[int, int] = {}
        order = 0

        def reach(value: object, edge: _Edge, reached: int) -> None:
            nonlocal order
            canonical = self._canonical(value)
            key = id(canonical)
            if key == edge.parent or self._edge_count >= MOST_EDGES:
                return
            self._edge_count += 1
            self._edges.setdefault(key, []).append(edge)
            self._kept.append(value)
            if best.get(key, FARTHEST + 1) > reached:
                best[key] = reached
                order += 1
                heapq.heappush(waiting, (reached, order, key, value, reached))

        for root, value in roots:
            if not is_plain(value):
                reach(value, _Edge(None, Part(root.name, 0, root.name.startswith("_")), root), 0)
        opened: set[int] = set()
        while waiting and len(opened) < MOST_OPENED:
            _, _, key, value, reached = heapq.heappop(waiting)
            if key in opened:
                continue
            opened.add(key)
            for part, child in self._opening.parts(value):
                if reached + part.reach <= FARTHEST:
                    reach(child, _Edge(key, part), reached + part.reach)

    def _canonical(self, value: object) -> object:
        if self._same is None:
            return value
        try:
            canonical = self._same(value)
        except Exception:
            return value
        if canonical is not value:
            self._kept.append(canonical)
        return canonical

    def _expressions(self, key: int) -> Iterator[_Expression]:
        """The best expressions for an object, searched from the object back to the frames."""
        order = 0
        waiting: list[tuple[tuple[int, int, int], int, int, str, int, frozenset[int], bool]] = []
        heapq.heappush(waiting, ((0, 0, 0), order, key, "", 0, frozenset({key}), False))
        found = tried = 0
        while waiting and tried < _MOST_TRIED and found < _MOST_FOUND:
            (private, steps, _), _, current, suffix, reached, seen, ends_in_index = heapq.heappop(waiting)
            tried += 1
            for edge in self._edges.get(current, ()):
                total_private = private + edge.part.is_private
                text = edge.part.text + suffix
                is_index = ends_in_index if suffix else edge.part.text.endswith("]")
                if edge.root is not None:
                    found += 1
                    yield _expression(edge.root, text, private=total_private, steps=steps, is_index=is_index)
                elif edge.parent is not None and edge.parent not in seen and reached + edge.part.reach <= FARTHEST:
                    order += 1
                    cost = (total_private, steps + edge.part.steps, len(text))
                    further = (
                        cost,
                        order,
                        edge.parent,
                        text,
                        reached + edge.part.reach,
                        seen | {edge.parent},
                        is_index,
                    )
                    heapq.heappush(waiting, further)


@dataclass(frozen=True, slots=True, order=True)
class _Expression:
    """An expression, ordered by how well it serves as the name of what it reaches."""

    is_private: bool
    frame: int
    privates: int
    # `variables[3]` says less than `model.head.kernel`, though it is shorter.
    ends_in_index: bool
    leaves_self: bool
    steps: int
    is_global: bool
    length: int
    text: str


def _expression(root: _Root, text: str, *, private: int, steps: int, is_index: bool) -> _Expression:
    return _Expression(
        is_private=private > 0,
        frame=root.frame,
        privates=private,
        ends_in_index=is_index,
        leaves_self=steps > 0 and root.name != "self",
        steps=steps,
        is_global=root.is_global,
        length=len(text),
        text=text,
    )


def _spread(found: list[_Expression]) -> Iterator[_Expression]:
    """The best expression first, then the best from a module, then the best of every other frame, then the others."""
    yield found[0]
    best_global = next((expression for expression in found if expression.is_global), None)
    if best_global is not None:
        yield best_global
    frames: set[int] = set()
    for expression in found:
        if expression.frame not in frames:
            frames.add(expression.frame)
            yield expression
    yield from found


def _roots(frames: Sequence[FrameType]) -> Iterator[tuple[_Root, object]]:
    """Every name that the frames see, and those of the program's main module."""
    seen: set[int] = set()
    for rank, frame in enumerate(frames):
        if frame.f_locals is not frame.f_globals:
            yield from _named(_locals_of(frame), rank, is_global=False)
        if id(frame.f_globals) not in seen:
            seen.add(id(frame.f_globals))
            yield from _named(frame.f_globals, rank, is_global=True)
    main = sys.modules.get("__main__")
    if type(main) is ModuleType and id(vars(main)) not in seen and is_user_file(str(vars(main).get("__file__", "<"))):
        yield from _named(vars(main), len(frames), is_global=True)


def _named(namespace: Mapping[str, object], frame: int, *, is_global: bool) -> Iterator[tuple[_Root, object]]:
    # IPython keeps every result in `Out`, and every input in `In`.
    hidden = {"In", "Out"} if is_global and "_ih" in namespace else set()
    for name, value in list(namespace.items()):
        if name.isidentifier() and name not in hidden and not (name.startswith("__") and name.endswith("__")):
            yield _Root(name, frame, is_global), value


def _locals_of(frame: FrameType) -> dict[str, object]:
    """A copy of a frame's locals that leaves nothing behind.

    Before Python 3.13 a function's `f_locals` is a dict that the frame keeps: values would live until the function ends,
    however long ago the program let go of them. So what we made it hold is taken out again, unless the program has called
    `locals()` and holds that very dict. Names that the program put there itself, with `exec`, stay.
    """
    snapshot = frame.f_locals
    values = dict(snapshot)
    code = frame.f_code
    if sys.version_info < (3, 13) and code.co_flags & inspect.CO_OPTIMIZED and sys.getrefcount(snapshot) <= _UNSHARED:
        for name in (*code.co_varnames, *code.co_cellvars, *code.co_freevars):
            snapshot.pop(name, None)
    return values


def _count_unshared() -> int:
    """The reference count of a frame's own dict of locals while nobody but the frame and one local name holds it."""
    frame = sys._getframe()
    snapshot = frame.f_locals
    return sys.getrefcount(snapshot)


_UNSHARED = _count_unshared()

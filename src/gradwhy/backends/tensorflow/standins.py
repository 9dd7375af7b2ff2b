"""What took a source's place: another object in the target's ancestry where the source was expected.

Only evidence counts: the other object was used for the target, and it is a twin of the source (the same values, the same
making), or the source was made from it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from gradwhy.backends.tensorflow import records as rec
from gradwhy.backends.tensorflow.describe import Slice
from gradwhy.backends.tensorflow.sources import SourceNames, framework_name, key_of
from gradwhy.flow import Asked, FlowGraph, Op, Span, Status
from gradwhy.source.positions import places_of

_DEPTH = 6
_MOST_COMPARED = 64


@dataclass(frozen=True, slots=True)
class Missing:
    """A source that the target's ancestry does not hold, with its place in the question's list."""

    position: int
    given: Any
    made: Any


def with_stand_ins(
    asked: tuple[Asked, ...],
    wanted: list[Any],
    slice_: Slice,
    graph: FlowGraph,
    names: SourceNames,
    variables: list[Any],
) -> tuple[Asked, ...]:
    """The sources with what was used in their stead, for those that the target does not reach.

    `variables` are those that the tape watched, from which the others get their names.
    """
    missing = []
    for position, (one, given) in enumerate(zip(asked, wanted, strict=True)):
        key = key_of(given)
        if one.last_use is not None:
            # What was used under the tape has no need of another in its place: what came of it was lost.
            continue
        if one.value is None and one.status is Status.NONE and key is not None and hasattr(key, "_numpy_internal"):
            missing.append(Missing(position, given, slice_.recorder.of(key)))
    if not missing:
        return asked
    taken = {id(slice_.recorder.of(k)) for g in wanted if hasattr(k := key_of(g), "_numpy_internal")}
    finder = _Finder(slice_, graph, names, taken, {id(key_of(v)): v for v in [*variables, *wanted]})
    missing.sort(key=lambda m: _is_constant(_contents(m.made)))
    found = list(asked)
    remade = finder.remade(missing, asked) if len(missing) == len(wanted) else {}
    if remade:
        return tuple(replace(one, **remade[position]) for position, one in enumerate(asked))
    for lost in missing[:_MOST_COMPARED]:
        is_variable = lost.made.record[rec.OP] is rec.VARIABLE
        stand_in = finder.twin_variable(lost) if is_variable else finder.twin_tensor(lost) or finder.ancestor(lost)
        if stand_in is not None:
            found[lost.position] = replace(found[lost.position], **stand_in)
    return tuple(found)


class _Finder:
    """Looks through the ancestry of one question's targets."""

    def __init__(
        self, slice_: Slice, graph: FlowGraph, names: SourceNames, asked: set[int], by_handle: dict[int, Any]
    ) -> None:
        self.slice, self.graph, self.names, self.asked, self.by_handle = slice_, graph, names, asked, by_handle
        self.variables = [m for m in slice_.seen if m.record[rec.OP] is rec.VARIABLE]
        self.readers: dict[int, list[Op]] = {}
        for op in graph.ops:
            for edge in op.inputs:
                self.readers.setdefault(edge.value, []).append(op)
        self.used: set[int] = set()
        self.owners: set[str] = set()

    def twin_variable(self, missing: Missing) -> dict[str, Any] | None:
        """A variable that the target uses, nobody asked about, and that is equal to the missing one, or is used twice."""
        mine = _contents(missing.made)
        if mine is None:
            return None
        alike = [v for v in self.variables if id(v) not in self.used and _is_alike(v, missing.made)]
        for other in alike:
            theirs = _contents(other) if id(other) not in self.asked else None
            if theirs is None or not (mine == theirs).all():
                continue
            owner = self.name(other).rpartition(".")[0]
            # Zeros equal zeros everywhere: a constant is a twin only beside another one of the same owner.
            if not _is_constant(mine) or owner in self.owners:
                self.used.add(id(other))
                self.owners.add(owner)
                return self.said(other, self.first_use(other), "clone")
        for other in alike:
            spans = self.use_lines(other)
            if len(spans) > 1 and self.is_sibling(missing.made, other):
                return self.said(other, spans[1], "repeated")
        return None

    def remade(self, missing: list[Missing], asked: tuple[Asked, ...]) -> dict[int, dict[str, Any]]:
        """For each of the sources the variable in its stead, where the target uses others of the same kinds in the same order.

        So it is where a model was built anew by the same lines, or the variables of the one before were kept in a list.
        """
        ordered = sorted(missing, key=lambda m: m.position)
        kinds = [_handle_type(m.made) for m in ordered]
        used = sorted((v for v in self.variables if self.use_lines(v)), key=lambda v: v.record[rec.TIME])
        if None in kinds or [_handle_type(v) for v in used] != kinds:
            return {}
        is_kept = all(one.source.name.endswith("]") for one in asked)
        is_held = all(self.name(v) and not self.name(v).endswith("]") for v in used)
        if not (is_kept and is_held) and not all(_is_made_alike(m.made, v) for m, v in zip(ordered, used, strict=True)):
            return {}
        return {m.position: self.said(v, self.first_use(v), "remade") for m, v in zip(ordered, used, strict=True)}

    def twin_tensor(self, missing: Missing) -> dict[str, Any] | None:
        """A tensor that the target uses, made in the same way from the same variables: another run of the same forward pass."""
        record = missing.made.record
        variables = _variables_of(missing.made)
        if not record[rec.INPUTS] or not variables:
            return None
        for other in self.slice.seen:
            theirs = other.record
            is_kin = theirs is not record and theirs[rec.OP] == record[rec.OP] and other.index == missing.made.index
            if is_kin and _variables_of(other) == variables:
                return self.said(other, self.span_of(other), "same-forward")
        return None

    def ancestor(self, missing: Missing) -> dict[str, Any] | None:
        """A variable or watched value from which the missing tensor was made, and which the target uses."""
        level = [missing.made]
        for _ in range(_DEPTH):
            level = [i for made in level for i in made.record[rec.INPUTS]]
            for made in level:
                number = self.slice.number_of(made)
                if number is not None and (made.record[rec.OP] is rec.VARIABLE or made.record[rec.INPUTS]):
                    return self.said(made, self.span_of(missing.made), "derived")
        return None

    def said(self, made: Any, span: Span | None, kind: str) -> dict[str, Any]:
        return {"stand_in": self.name(made), "stand_in_span": span, "stand_in_kind": kind}

    def name(self, made: Any) -> str:
        tensor = made() if isinstance(made, rec.Made) else None
        if tensor is None:
            return ""
        given = self.by_handle.get(id(tensor), tensor)
        return self.names.names.of(given)[0] or framework_name(given)

    def first_use(self, made: Any) -> Span | None:
        lines = self.use_lines(made)
        return lines[0] if lines else None

    def use_lines(self, made: Any) -> list[Span]:
        """The distinct places at which the target's ancestry reads a variable, in the order in which they ran."""
        number = self.slice.number_of(made)
        found: dict[Span, None] = {}
        for op in self.readers.get(number, ()) if number is not None else ():
            if op.places and not op.is_boundary:
                found.setdefault(op.places[0].span)
        return list(found)

    def span_of(self, made: Any) -> Span | None:
        places = places_of(made.record[rec.FRAMES][:1])
        return places[0].span if places else None

    def is_sibling(self, one: Any, other: Any) -> bool:
        """Whether two variables hang on the same object of the program, as the layers of one model do."""
        mine, theirs = self.name(one), self.name(other)
        return (
            "." in mine and mine.split(".")[0] == theirs.split(".")[0] and mine.split(".")[-1] == theirs.split(".")[-1]
        )


def _is_alike(one: Any, other: Any) -> bool:
    return one is not other and _handle_type(one) == _handle_type(other) is not None


def _is_made_alike(one: Any, other: Any) -> bool:
    """Whether two variables were made by one and the same call in the text."""
    mine, theirs = one.record[rec.FRAMES], other.record[rec.FRAMES]
    return bool(mine) and bool(theirs) and mine[0] == theirs[0]


def _handle_type(made: Any) -> Any:
    return rec.handle_type(made()) if isinstance(made, rec.Made) else None


def _contents(made: Any) -> Any:
    """The numbers that a variable holds now, read outside of every graph and tape; None for anything else."""
    handle = made() if isinstance(made, rec.Made) else None
    kind = _handle_type(made)
    if handle is None or kind is None:
        return None
    import tensorflow
    from tensorflow.python.eager import record

    with tensorflow.init_scope(), record.stop_recording():
        value = tensorflow.raw_ops.ReadVariableOp(resource=handle, dtype=tensorflow.dtypes.as_dtype(kind[0]))
        return value._numpy_internal() if hasattr(value, "_numpy_internal") else None


def _is_constant(contents: Any) -> bool:
    return contents is None or not contents.size or bool((contents == contents.reshape(-1)[0]).all())


def _variables_of(made: Any) -> frozenset[int]:
    """The variables near a tensor's making: those that its op, or one of the few before it, read."""
    found: set[int] = set()
    level = [made]
    for _ in range(4):
        level = [i for m in level for i in m.record[rec.INPUTS] if i.record[rec.OP] is not rec.LEAF]
        found.update(id(m.record) for m in level if m.record[rec.OP] is rec.VARIABLE)
        level = [m for m in level if m.record[rec.OP] is not rec.VARIABLE]
        if found:
            break
    return frozenset(found)

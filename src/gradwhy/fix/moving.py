"""Fixes that move statements: into a recording, after those that it holds, out of a pause."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from itertools import pairwise

from gradwhy.fix.situation import (
    Block,
    NoFixError,
    Parsed,
    Proposal,
    Situation,
    block_holding,
    blocks_of,
    function_of,
    proposed,
    with_at,
)
from gradwhy.flow import Applicability, Op, ScopeRole, Text
from gradwhy.source.edits import EditError
from gradwhy.source.effects import Effects, Reader, conflict

_SET_UP = frozenset({"__init__", "build", "setUp", "setup", "__post_init__"})
_FIXED_IN_PLACE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Global)
_BRANCHING = (ast.If, ast.Try, ast.Match, ast.FunctionDef, ast.AsyncFunctionDef, ast.TryStar)


def into_recording(situation: Situation) -> Proposal:
    """What ran before the recording, moved to the start of its block, with what depends on it in between."""
    parsed, block = recorded_block(situation)
    way = parsed.way_to(block)
    scope = situation.recording
    assert scope is not None
    ops = [op for op in situation.ops_between() if op.time < scope.start]
    if any(op.places and op.places[0].function.rpartition(".")[2] in _SET_UP for op in ops):
        raise NoFixError("it ran when the object was made")
    outer, wanted = _statements_of(ops, parsed, way)
    below = next(i for i, held in enumerate(outer) if any(held is part for part in way))
    if max(wanted) > below:
        raise NoFixError("it stands after the block")
    reader = Reader(parsed.tree)
    effects = {i: reader.of(outer[i]) for i in range(min(wanted), below)}
    moved = set(wanted)
    for number in range(min(wanted), below):
        if any(conflict(effects[m], effects[number]) for m in moved if m < number):
            moved.add(number)
    lines = [outer[i] for i in sorted(moved)]
    _check_moved(lines, [effects[i] for i in sorted(moved)], situation)
    together = together_of([effects[i] for i in sorted(moved)])
    is_direct = outer[below] is block
    if not is_direct:
        _check_entered(parsed, reader, way, outer[below], block, lines, together)
    for item in block.items:
        if reader.of(item.context_expr).reads & together.binds:
            raise NoFixError("the block's header reads it")
    editor = parsed.editor()
    position = first_free(block, reader, together)
    spots = [parsed.spot(line) for line in lines]
    try:
        if position < len(block.body):
            editor.move(spots, before=parsed.spot(block.body[position]))
        else:
            editor.move(spots, after=parsed.spot(block.body[-1]))
    except EditError as wrong:
        raise NoFixError(str(wrong)) from None
    key = "fixes/move-into" if is_direct else "fixes/move-into-step"
    grade = Applicability.SAFE if is_direct else Applicability.UNSAFE
    return proposed(_titled(key, situation, lines), grade, editor, parsed)


def under_recording(situation: Situation) -> Proposal:
    """What ran after the recording, taken into its block, with what it depends on."""
    parsed, block = recorded_block(situation)
    way = parsed.way_to(block)
    scope = situation.recording
    assert scope is not None
    if scope.end is None:
        raise NoFixError("the recording has not ended")
    after = scope.end
    ops = [op for op in situation.ops_between() if op.time > after]
    held = block_holding(way, block)
    start = next(i for i, statement in enumerate(held) if statement is block)
    outer, wanted = _statements_of(ops, parsed, way)
    if outer is not held or min(wanted) <= start:
        raise NoFixError("it does not follow the block")
    reader = Reader(parsed.tree)
    effects = {i: reader.of(held[i]) for i in range(start + 1, max(wanted) + 1)}
    moved = set(wanted)
    for number in range(max(wanted), start, -1):
        if any(conflict(effects[number], effects[m]) for m in moved if m > number):
            moved.add(number)
    lines = [held[i] for i in sorted(moved)]
    asking = _asking_statement(situation, parsed)
    if any(line is asking for line in lines):
        raise NoFixError("the question itself would be recorded")
    _check_moved(lines, [effects[i] for i in sorted(moved)], situation)
    last = block.body[-1]
    if reader.of(last).leaves:
        raise NoFixError("the block ends by leaving")
    editor = parsed.editor()
    try:
        editor.move([parsed.spot(line) for line in lines], after=parsed.spot(last))
    except EditError as wrong:
        raise NoFixError(str(wrong)) from None
    return proposed(_titled("fixes/extend", situation, lines), Applicability.SAFE, editor, parsed)


def out_of_pause(situation: Situation) -> Proposal:
    """What ran in a pause, moved out before or after it, with what it depends on."""
    scopes = {scope.id: scope for scope in situation.graph.scopes if scope.role is ScopeRole.PAUSES}
    ops = [op for op in situation.ops_between() if any(number in scopes for number in op.scopes)]
    paused = {number for op in ops for number in op.scopes if number in scopes}
    spans = {scopes[number].span for number in paused}
    if len(spans) != 1:
        raise NoFixError("not one pause")
    span = spans.pop()
    parsed = situation.parsed(span)
    assert span is not None
    block = with_at(parsed, span)
    if len(block.items) != 1:
        raise NoFixError("the block opens more than the pause")
    way = parsed.way_to(block.body[0])
    outer, wanted = _statements_of(ops, parsed, way, including_way=True)
    if outer is not block.body:
        raise NoFixError("it does not stand in the paused block")
    reader = Reader(parsed.tree)
    effects = [reader.of(statement) for statement in outer]
    before = _joining(wanted, effects, forward=False)
    after = _joining(wanted, effects, forward=True)
    goes_before = len(before) <= len(after)
    moved = sorted(before if goes_before else after)
    lines = [outer[i] for i in moved]
    _check_moved(lines, [effects[i] for i in moved], situation)
    editor = parsed.editor()
    try:
        spots, at = [parsed.spot(line) for line in lines], parsed.spot(block)
        if goes_before:
            editor.move(spots, before=at)
        else:
            editor.move(spots, after=at)
        if len(lines) == len(outer):
            editor.delete(at)
    except EditError as wrong:
        raise NoFixError(str(wrong)) from None
    return proposed(_titled("fixes/move-out", situation, lines), Applicability.UNSAFE, editor, parsed)


def recorded_block(situation: Situation) -> tuple[Parsed, ast.With]:
    scope = situation.recording
    if scope is None or scope.span is None:
        raise NoFixError("no recording with a place")
    parsed = situation.parsed(scope.span)
    return parsed, with_at(parsed, scope.span)


def _statements_of(
    ops: Iterable[Op], parsed: Parsed, way: list[ast.AST], *, including_way: bool = False
) -> tuple[Block, list[int]]:
    """The block around the recording in which all these ops were called, and the positions of the calling statements."""
    blocks = [block for part in way[:-1] for block in blocks_of(part) if any(s is w for s in block for w in way)]
    found: dict[int, Block] = {}
    positions: set[int] = set()
    for op in ops:
        block, position = _statement_of(op, parsed, blocks, way, including_way)
        found[id(block)] = block
        positions.add(position)
    if len(found) != 1:
        raise NoFixError("not in one block")
    return found.popitem()[1], sorted(positions)


def _statement_of(
    op: Op, parsed: Parsed, blocks: list[Block], way: list[ast.AST], including_way: bool
) -> tuple[Block, int]:
    for block in reversed(blocks):
        for place in op.places:
            if place.span.file != parsed.shown:
                continue
            through = parsed.around(place.span)
            for position, statement in enumerate(block):
                is_on_way = any(statement is part for part in way) and not including_way
                if any(statement is part for part in through) and not is_on_way:
                    if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                        return block, position
    raise NoFixError("it was called from elsewhere")


def _joining(wanted: list[int], effects: list[Effects], *, forward: bool) -> set[int]:
    """The statements that leave a block, with those that must go along so that the order holds."""
    moved = set(wanted)
    numbers = range(len(effects)) if forward else range(len(effects) - 1, -1, -1)
    for number in numbers:
        for other in tuple(moved):
            is_passed = other < number if forward else other > number
            first, second = min(number, other), max(number, other)
            if is_passed and conflict(effects[first], effects[second]):
                moved.add(number)
    return moved


def _check_moved(lines: list[ast.stmt], effects: list[Effects], situation: Situation) -> None:
    sources = {asked.source.name.partition(".")[0].partition("[")[0] for asked in situation.question.asked}
    for line, effect in zip(lines, effects, strict=True):
        if isinstance(line, _FIXED_IN_PLACE) or effect.leaves:
            raise NoFixError(f"line {line.lineno} cannot be moved")
        if effect.binds & sources:
            raise NoFixError(f"line {line.lineno} makes what is asked about")
        if any(isinstance(part, ast.Attribute) and part.attr == "GradientTape" for part in ast.walk(line)):
            raise NoFixError(f"line {line.lineno} records by itself")


def _check_entered(
    parsed: Parsed,
    reader: Reader,
    way: list[ast.AST],
    entered: ast.stmt,
    block: ast.With,
    lines: list[ast.stmt],
    together: Effects,
) -> None:
    """Whether statements may move from before a loop or a function into a block inside it."""
    inside = way[next(i for i, part in enumerate(way) if part is entered) :]
    if together.is_random or together.speaks:
        raise NoFixError("it would draw or print anew at every step")
    inner = reader.of(entered)
    if together.reads & (together.binds | inner.binds):
        raise NoFixError("it would not be the same at every step")
    for outer, part in pairwise(inside):
        for held in blocks_of(outer):
            position = next((i for i, statement in enumerate(held) if statement is part), None)
            for statement in held[: position or 0]:
                if conflict(together, reader.of(statement)):
                    raise NoFixError(f"line {statement.lineno} comes between")
    if any(isinstance(part, _BRANCHING) for part in inside[:-1]):
        home = (
            parsed.tree
            if isinstance(function_of(way), ast.Module) or isinstance(entered, ast.FunctionDef)
            else function_of(way)
        )
        mine = {id(part) for kept in (*lines, *block.body) for part in ast.walk(kept)}
        for part in ast.walk(home):
            if isinstance(part, ast.Name) and part.id in together.binds and id(part) not in mine:
                raise NoFixError(f"`{part.id}` is used elsewhere, too")
    for part in inside[:-1]:
        for header in (getattr(part, "iter", None), getattr(part, "test", None)):
            if header is not None and reader.of(header).reads & together.binds:
                raise NoFixError("the loop reads it")


def first_free(block: ast.With, reader: Reader, together: Effects) -> int:
    """Behind the watches that a block begins with, where what follows needs nothing of what is moved in."""
    position = 0
    for statement in block.body:
        is_watch = (
            isinstance(statement, ast.Expr)
            and isinstance(statement.value, ast.Call)
            and isinstance(statement.value.func, ast.Attribute)
            and statement.value.func.attr == "watch"
        )
        if not is_watch or reader.of(statement).reads & together.binds:
            break
        position += 1
    return position


def together_of(effects: list[Effects]) -> Effects:
    """The effects of statements one after another: what they read of each other is not read from outside."""
    whole = Effects()
    for effect in effects:
        whole.reads |= effect.reads - whole.binds
        whole.binds |= effect.binds
        whole.changes |= effect.changes
        whole.is_random |= effect.is_random
        whole.speaks |= effect.speaks
    return whole


def _asking_statement(situation: Situation, parsed: Parsed) -> ast.stmt | None:
    span = situation.question.span
    if span is None or span.file != parsed.shown:
        return None
    return next((part for part in reversed(parsed.around(span)) if isinstance(part, ast.stmt)), None)


def _titled(key: str, situation: Situation, lines: list[ast.stmt]) -> Text:
    values: dict[str, str | int | float] = {"line": lines[0].lineno, "count": len(lines)}
    return Text(key, values | {"target": situation.question.target})

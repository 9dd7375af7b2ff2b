"""A fix across two functions of one file: what the caller computed is computed in the function that records."""

from __future__ import annotations

import ast
import builtins

from gradwhy.fix.moving import first_free, recorded_block, together_of
from gradwhy.fix.situation import Block, NoFixError, Parsed, Proposal, Situation, block_holding, function_of, proposed
from gradwhy.flow import Applicability, Op, Text
from gradwhy.source.edits import EditError
from gradwhy.source.effects import Effects, Reader
from gradwhy.source.locate import call_at


def compute_inside(situation: Situation) -> Proposal:
    """`h = encode(x)` before `train(x, h)` is computed in `train`, under the recording, by the names of its parameters."""
    parsed, block = recorded_block(situation)
    recorder = function_of(parsed.way_to(block))
    if not isinstance(recorder, ast.FunctionDef):
        raise NoFixError("the recording stands in no function")
    call, held, position = _call_of(situation, parsed, recorder)
    scope = situation.recording
    assert scope is not None
    lines = _lines_of([op for op in situation.ops_between() if op.time < scope.start], parsed, held, position)
    reader = Reader(parsed.tree)
    together = together_of([reader.of(line) for line in lines])
    given = _given(call, recorder, parsed)
    _check_names(together, given, recorder, parsed)
    _check_parameters(recorder, block, {given[name] for name in together.binds & set(given)})
    code = "\n".join(_renamed(line, given) for line in lines)
    editor = parsed.editor()
    try:
        at = first_free(block, reader, Effects(binds={given.get(name, name) for name in together.binds}))
        anchor = block.body[min(at, len(block.body) - 1)]
        if at < len(block.body):
            editor.insert(f"{code}\n", before=parsed.spot(anchor))
        else:
            editor.insert(f"{code}\n", after=parsed.spot(anchor))
    except EditError as wrong:
        raise NoFixError(str(wrong)) from None
    last = lines[-1].targets[0]
    assert isinstance(last, ast.Name)
    values: dict[str, str | int | float] = {
        "name": given.get(last.id, last.id),
        "function": recorder.name,
        "line": lines[-1].lineno,
    }
    return proposed(Text("fixes/compute-inside", values), Applicability.UNSAFE, editor, parsed)


def _call_of(situation: Situation, parsed: Parsed, recorder: ast.FunctionDef) -> tuple[ast.Call, Block, int]:
    """The call of the function that records, by a statement of the same file, and where that statement stands."""
    places = [place for place in situation.question.places if place.span.file == parsed.shown]
    for place in places[1:]:
        call = call_at(place.span)
        called = call.func if call is not None else None
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", None)
        if call is not None and name == recorder.name:
            way = parsed.way_to(call)
            statement = next(part for part in reversed(way) if isinstance(part, ast.stmt))
            held = block_holding(way, statement)
            return call, held, next(i for i, part in enumerate(held) if part is statement)
    raise NoFixError("the call was not seen")


def _lines_of(ops: list[Op], parsed: Parsed, held: Block, position: int) -> list[ast.Assign]:
    """The assignments before the call in which all these ops ran."""
    found: set[int] = set()
    for op in ops:
        at = None
        for place in op.places:
            if place.span.file == parsed.shown:
                through = parsed.around(place.span)
                at = next((i for i, line in enumerate(held[:position]) if any(line is p for p in through)), at)
        if at is None:
            raise NoFixError("it ran elsewhere")
        found.add(at)
    lines = [held[i] for i in sorted(found)]
    plain = [
        line
        for line in lines
        if isinstance(line, ast.Assign) and len(line.targets) == 1 and isinstance(line.targets[0], ast.Name)
    ]
    if not lines or len(plain) != len(lines):
        raise NoFixError("no plain assignments")
    return plain


def _given(call: ast.Call, recorder: ast.FunctionDef, parsed: Parsed) -> dict[str, str]:
    """The parameter that each name of the caller is given as."""
    if any(isinstance(argument, ast.Starred) for argument in call.args) or recorder.args.vararg:
        raise NoFixError("arguments are spread")
    way = parsed.way_to(recorder)
    parameters = [*recorder.args.posonlyargs, *recorder.args.args]
    if isinstance(way[-2], ast.ClassDef):
        parameters = parameters[1:]
    given = {
        value.id: parameter.arg
        for value, parameter in zip(call.args, parameters, strict=False)
        if isinstance(value, ast.Name)
    }
    return given | {k.value.id: k.arg for k in call.keywords if k.arg is not None and isinstance(k.value, ast.Name)}


def _check_names(together: Effects, given: dict[str, str], recorder: ast.FunctionDef, parsed: Parsed) -> None:
    """Every name that the caller's lines use must be given to the function that records, or mean the same there."""
    if together.is_random or together.speaks or together.changes:
        raise NoFixError("it does more than compute")
    if not together.binds & set(given):
        raise NoFixError("nothing of it is handed over")
    names = [part for part in ast.walk(recorder) if isinstance(part, ast.Name)]
    own = {part.arg for part in ast.walk(recorder) if isinstance(part, ast.arg)}
    if (together.binds - set(given)) & (own | {part.id for part in names}):
        raise NoFixError("a name means something else there")
    own |= {part.id for part in names if isinstance(part.ctx, ast.Store)}
    reader = Reader(parsed.tree)
    known = set(dir(builtins)).union(*(reader.of(statement).binds for statement in parsed.tree.body))
    for name in together.reads - together.binds - set(given):
        if name not in known or name in own:
            raise NoFixError(f"`{name}` is not known there")


def _check_parameters(recorder: ast.FunctionDef, block: ast.With, parameters: set[str]) -> None:
    """Before the block the parameters must still be what the caller gave, and not be read."""
    inside = {id(part) for part in ast.walk(block)}
    first = block.lineno
    for part in ast.walk(recorder):
        if isinstance(part, ast.Name) and part.id in parameters and id(part) not in inside and part.lineno < first:
            raise NoFixError("it is used before the recording")


def _renamed(line: ast.Assign, given: dict[str, str]) -> str:
    copied = ast.parse(ast.unparse(line)).body[0]
    for part in ast.walk(copied):
        if isinstance(part, ast.Name):
            part.id = given.get(part.id, part.id)
    return ast.unparse(copied)

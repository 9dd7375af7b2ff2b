"""Fixes for values that go through a variable: used instead of read back, written in place instead of under the name."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradwhy.fix.situation import (
    Block,
    NoFixError,
    Parsed,
    Proposal,
    Situation,
    block_holding,
    function_of,
    proposed,
)
from gradwhy.flow import Applicability, Text
from gradwhy.source.edits import EditError, Editor
from gradwhy.source.locate import path_to
from gradwhy.source.statements import dotted, in_same_scope

_WRITES = {"assign": "{value}", "assign_add": "{state} + {value}", "assign_sub": "{state} - {value}"}
_READS = frozenset({"read_value", "value"})
_LOOPS = (ast.For, ast.While, ast.AsyncFor)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def keep_value(situation: Situation) -> Proposal:
    """`state.assign(value)` stays, and what reads `state` after it in the same block uses the value itself."""
    parsed, statement, way = _statement_at(situation)
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr not in _WRITES:
        raise NoFixError("no write of its own")
    if len(call.args) != 1 or isinstance(call.args[0], ast.Starred) or call.keywords:
        raise NoFixError("the write does more")
    state = dotted(call.func.value)
    if state is None:
        raise NoFixError("the variable has no plain name")
    block = block_holding(way, statement)
    position = next(i for i, held in enumerate(block) if held is statement)
    following = block[position + 1 :]
    _check_alone(parsed, way, state, block, position)
    reads = [read for later in following for read in _reads_of(later, state)]
    if not reads:
        raise NoFixError("nothing in the block reads it back")
    name = _new_name(parsed, state)
    value = call.args[0]
    written = parsed.text(value)
    if call.func.attr != "assign":
        written = (
            f"({written})" if not isinstance(value, (ast.Name, ast.Call, ast.Attribute, ast.Constant)) else written
        )
    editor = parsed.editor()
    try:
        code = _WRITES[call.func.attr].format(state=state, value=written)
        editor.insert(f"{name} = {code}\n", before=parsed.spot(statement))
        editor.rewrite(parsed.spot(statement), f"{state}.assign({name})\n")
        for read in reads:
            parsed.replace(editor, read, name)
    except EditError as wrong:
        raise NoFixError(str(wrong)) from None
    title = Text("fixes/keep-value", {"name": name, "state": state, "line": statement.lineno})
    return proposed(title, Applicability.UNSAFE, editor, parsed)


def update_in_place(situation: Situation) -> Proposal:
    """`w = w - step` becomes `w.assign_sub(step)`."""
    if situation.question.framework != "tensorflow":
        raise NoFixError("not TensorFlow")
    parsed, statement, way = _statement_at(situation)
    source = situation.finding.sources[0].name
    target, code = _update(parsed, statement)
    if target != source:
        raise NoFixError("another name is given")
    _check_all_updates(parsed, way, source, statement)
    editor: Editor = parsed.editor()
    try:
        editor.rewrite(parsed.spot(statement), f"{code}\n")
    except EditError as wrong:
        raise NoFixError(str(wrong)) from None
    title = Text("fixes/update-in-place", {"source": source, "line": statement.lineno})
    return proposed(title, Applicability.UNSAFE, editor, parsed)


def _statement_at(situation: Situation) -> tuple[Parsed, ast.stmt, list[ast.AST]]:
    place = situation.finding.place
    parsed = situation.parsed(place)
    assert place is not None
    statement = next((part for part in reversed(path_to(place)) if isinstance(part, ast.stmt)), None)
    if statement is None:
        raise NoFixError("no statement")
    return parsed, statement, parsed.way_to(statement)


def _update(parsed: Parsed, statement: ast.stmt) -> tuple[str, str]:
    """The name that a statement gives anew to what it computes from it, and the same as a write."""
    if isinstance(statement, ast.AugAssign):
        name, value, operator = dotted(statement.target), statement.value, statement.op
        is_plain = isinstance(operator, (ast.Add, ast.Sub))
    elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        name, whole = dotted(statement.targets[0]), statement.value
        is_binary = isinstance(whole, ast.BinOp) and dotted(whole.left) == name
        is_plain = isinstance(whole, ast.BinOp) and is_binary and isinstance(whole.op, (ast.Add, ast.Sub))
        value, operator = (whole.right, whole.op) if is_plain and isinstance(whole, ast.BinOp) else (whole, ast.Add())
        if name is not None and all(dotted(part) != name for part in ast.walk(whole)):
            raise NoFixError("it is not made of what it was")
        if not is_plain and name is not None:
            return name, f"{name}.assign({parsed.text(whole)})"
    else:
        raise NoFixError("no assignment to one name")
    if name is None or not is_plain:
        raise NoFixError("no plain update")
    write = "assign_add" if isinstance(operator, ast.Add) else "assign_sub"
    return name, f"{name}.{write}({parsed.text(value)})"


def _check_all_updates(parsed: Parsed, way: list[ast.AST], name: str, statement: ast.stmt) -> None:
    """The name must be given anew here only, after it was made: another statement would make a tensor of it again."""
    function = function_of(way)
    makers = [
        held
        for held in in_same_scope(function)
        if isinstance(held, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and held is not statement
        if any(dotted(part) == name for target in _targets(held) for part in ast.walk(target))
    ]
    if len(makers) > 1 or any(held.lineno > statement.lineno for held in makers):
        raise NoFixError("the name is given elsewhere, too")


def _check_alone(parsed: Parsed, way: list[ast.AST], state: str, block: Block, position: int) -> None:
    """What reads the variable in a loop's next step would read the old value: nothing before the write may read it there."""
    for later in block[position + 1 :]:
        for part in ast.walk(later):
            if isinstance(part, ast.Attribute) and part.attr.startswith(("assign", "scatter_")):
                if dotted(part.value) == state:
                    raise NoFixError("it is written again")
            if isinstance(part, (ast.Name, ast.Attribute)) and isinstance(getattr(part, "ctx", None), ast.Store):
                if dotted(part) == state:
                    raise NoFixError("the name is given anew")
    inside = next(i for i, part in enumerate(way) if isinstance(part, ast.AST) and part is function_of(way))
    for part in way[inside:-1]:
        if isinstance(part, _LOOPS):
            before = [
                held
                for held in in_same_scope(part)
                if isinstance(held, ast.expr) and held.lineno < block[position].lineno
            ]
            if any(dotted(held) == state and isinstance(getattr(held, "ctx", None), ast.Load) for held in before):
                raise NoFixError("the next step of the loop reads it")


def _reads_of(statement: ast.stmt, state: str) -> Iterator[ast.expr]:
    """The expressions that read a variable's value: its name, or a call of `read_value`. Not what only looks at its shape."""
    todo: list[ast.AST] = [statement]
    while todo:
        part = todo.pop(0)
        if isinstance(part, _FUNCTIONS):
            continue
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and not part.args:
            if part.func.attr in _READS and dotted(part.func.value) == state:
                yield part
                continue
        if isinstance(part, ast.Attribute) and dotted(part.value) == state:
            continue
        if isinstance(part, (ast.Name, ast.Attribute)) and dotted(part) == state:
            yield part
            continue
        todo[:0] = list(ast.iter_child_nodes(part))


def _new_name(parsed: Parsed, state: str) -> str:
    """A name after the variable that the file does not use yet."""
    used = {part.id for part in ast.walk(parsed.tree) if isinstance(part, ast.Name)}
    base = state.rpartition(".")[2].lstrip("_") or "state"
    for candidate in (f"new_{base}", f"{base}_value", f"new_{base}_value"):
        if candidate not in used:
            return candidate
    raise NoFixError("no free name")


def _targets(statement: ast.Assign | ast.AugAssign | ast.AnnAssign) -> list[ast.expr]:
    return statement.targets if isinstance(statement, ast.Assign) else [statement.target]

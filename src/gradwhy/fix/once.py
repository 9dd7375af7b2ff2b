"""Fixes for what is made too seldom or too often: a cached value, an attribute computed once, a layer made in a call."""

from __future__ import annotations

import ast
import re

from gradwhy.fix.moving import recorded_block
from gradwhy.fix.situation import NoFixError, Parsed, Proposal, Situation, proposed
from gradwhy.flow import Applicability, Text
from gradwhy.source.effects import Reader
from gradwhy.source.statements import dotted, last_name

_CACHES = frozenset({"cache", "lru_cache"})
_Method = ast.FunctionDef


def drop_cache(situation: Situation) -> Proposal:
    """The decorator that keeps a function's results is dropped, so that every recording sees the call."""
    places = [place for op in situation.ops_between() for place in op.places]
    found: dict[ast.AST, tuple[Parsed, int]] = {}
    for place in places:
        parsed = situation.parsed(place.span)
        for part in parsed.around(place.span):
            if isinstance(part, ast.FunctionDef):
                for number, decorator in enumerate(part.decorator_list):
                    called = decorator.func if isinstance(decorator, ast.Call) else decorator
                    if last_name(called) in _CACHES:
                        found[part] = (parsed, number)
    if len(found) != 1:
        raise NoFixError("no one function that keeps its results")
    function, (parsed, number) = found.popitem()
    assert isinstance(function, ast.FunctionDef)
    editor = parsed.editor()
    editor.drop_decorator(parsed.spot(function), number)
    title = Text("fixes/drop-cache", {"function": function.name, "line": function.decorator_list[number].lineno})
    return proposed(title, Applicability.UNSAFE, editor, parsed)


def compute_where_used(situation: Situation) -> Proposal:
    """`self.scale = f(self.raw)`, computed once, is computed in the one method that reads it."""
    start = situation.recording.start if situation.recording is not None else 0
    before = [op for op in situation.ops_between() if op.places]
    ops = [op for op in before if op.time < start or _is_set_up(op.places[0].function)]
    if not ops:
        raise NoFixError("nothing was computed before")
    parsed = situation.parsed(ops[0].places[0].span)
    ways = [parsed.around(op.places[0].span) for op in ops]
    holders = {id(part): part for way in ways for part in way if isinstance(part, ast.ClassDef)}
    methods = {id(part): part for way in ways for part in way if isinstance(part, _Method)}
    if len(holders) != 1 or len(methods) != 1:
        raise NoFixError("not in one method of one class")
    holder, method = holders.popitem()[1], methods.popitem()[1]
    wanted = {i for i, held in enumerate(method.body) if any(held is part for way in ways for part in way)}
    lines, attribute = _kept_lines(parsed, method, wanted)
    reader_method = _only_reader(parsed, holder, method, attribute, {id(line) for line in lines})
    own = method.args.args[0].arg
    if situation.question.places and situation.question.places[0].function.rpartition(".")[2] == method.name:
        raise NoFixError("it asks by itself")
    if [part for part in ast.walk(reader_method) if isinstance(part, ast.Name) and part.id == attribute]:
        raise NoFixError(f"`{attribute}` is a name of its own there")
    if own != reader_method.args.args[0].arg:
        raise NoFixError("the methods call the object by other names")
    editor = parsed.editor()
    for line in lines:
        editor.delete(parsed.spot(line))
    code = "\n".join(_local(parsed, line, own, attribute) for line in lines)
    editor.insert(code, before=parsed.spot(_first_use(situation, parsed, reader_method, attribute)))
    for part in ast.walk(reader_method):
        if isinstance(part, ast.Attribute) and dotted(part) == f"{own}.{attribute}":
            parsed.replace(editor, part, attribute)
    title = Text("fixes/compute-where-used", {"line": lines[0].lineno, "function": reader_method.name})
    return proposed(title, Applicability.UNSAFE, editor, parsed)


def create_once(situation: Situation) -> Proposal:
    """A layer that is made anew in every call is made once, in `__init__`."""
    parsed = situation.parsed(situation.finding.place)
    assert situation.finding.place is not None
    way = parsed.around(situation.finding.place)
    call = next((part for part in reversed(way) if isinstance(part, ast.Call)), None)
    if call is not None and isinstance(call.func, ast.Call):
        call = call.func
    holder = next((part for part in reversed(way) if isinstance(part, ast.ClassDef)), None)
    method = next((part for part in reversed(way) if isinstance(part, _Method)), None)
    if call is None or holder is None or method is None or method not in holder.body or not method.args.args:
        raise NoFixError("not made in a method")
    start = next((part for part in holder.body if isinstance(part, _Method) and part.name == "__init__"), None)
    if start is None or start is method or not start.args.args:
        raise NoFixError("there is no `__init__`")
    own = method.args.args[0].arg
    if start.args.args[0].arg != own:
        raise NoFixError("the methods call the object by other names")
    outside = Reader(parsed.tree).of(call).reads - {own} - _globals_of(parsed.tree)
    if outside or any(isinstance(part, (ast.NamedExpr, ast.Lambda)) for part in ast.walk(call)):
        raise NoFixError("it is made from what only the call knows")
    loops = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp, ast.Lambda, ast.DictComp, ast.SetComp)
    if any(isinstance(part, loops) for part in way):
        raise NoFixError("it is made in a loop")
    name = _attribute_name(holder, call)
    editor = parsed.editor()
    editor.insert(f"{own}.{name} = {parsed.text(call)}", after=parsed.spot(start.body[-1]))
    parsed.replace(editor, call, f"{own}.{name}")
    title = Text("fixes/create-once", {"line": call.lineno, "name": f"{own}.{name}"})
    return proposed(title, Applicability.UNSAFE, editor, parsed)


def _is_set_up(function: str) -> bool:
    return function.rpartition(".")[2] in ("__init__", "build", "setup", "__post_init__")


def _kept_lines(parsed: Parsed, method: _Method, wanted: set[int]) -> tuple[list[ast.Assign], str]:
    """The statements of a method that compute an attribute, with the local names it needs, and the attribute's name."""
    reader = Reader(parsed.tree)
    own = method.args.args[0].arg if method.args.args else "self"
    moved = set(wanted)
    local: set[str] = set()
    attributes: set[str] = set()
    lines: list[ast.Assign] = []
    for number, statement in enumerate(method.body):
        effects = reader.of(statement)
        if number not in moved and not effects.reads & local:
            continue
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            raise NoFixError(f"line {statement.lineno} is no plain assignment")
        target = statement.targets[0]
        if isinstance(target, ast.Name):
            local.add(target.id)
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == own:
            attributes.add(target.attr)
        else:
            raise NoFixError(f"line {statement.lineno} binds something else")
        if reader.of(statement.value).reads - local - {own} - _globals_of(parsed.tree):
            raise NoFixError("it is computed from what only that method knows")
        if effects.is_random:
            raise NoFixError("it would be drawn anew")
        lines.append(statement)
    if len(attributes) != 1:
        raise NoFixError("not one attribute")
    return lines, attributes.pop()


def _only_reader(parsed: Parsed, holder: ast.ClassDef, method: _Method, attribute: str, lines: set[int]) -> _Method:
    """The one method that reads the attribute. NoFixError where it is written, or read, anywhere else."""
    inside = {id(part): part for part in holder.body if isinstance(part, _Method)}
    readers: dict[int, _Method] = {}
    seen = 0
    for function in inside.values():
        for statement in function.body:
            if id(statement) in lines:
                continue
            for part in ast.walk(statement):
                if isinstance(part, ast.Attribute) and part.attr == attribute:
                    if not isinstance(part.ctx, ast.Load) or function is method:
                        raise NoFixError("the attribute has other uses")
                    readers[id(function)] = function
                    seen += 1
    every = sum(isinstance(part, ast.Attribute) and part.attr == attribute for part in ast.walk(parsed.tree))
    if len(readers) != 1 or every != seen + 1:
        raise NoFixError("not one reader")
    return readers.popitem()[1]


def _first_use(situation: Situation, parsed: Parsed, method: _Method, attribute: str) -> ast.stmt:
    """The statement before which the value is computed: the first of the recording where only that one reads it."""
    reads = [part for part in ast.walk(method) if isinstance(part, ast.Attribute) and part.attr == attribute]
    try:
        _, block = recorded_block(situation)
    except NoFixError:
        block = None
    if block is not None:
        inside = {id(part) for statement in block.body for part in ast.walk(statement)}
        if all(id(read) in inside for read in reads):
            return block.body[0]
    return method.body[1 if ast.get_docstring(method) is not None else 0]


def _local(parsed: Parsed, line: ast.Assign, own: str, attribute: str) -> str:
    text = ast.get_source_segment(parsed.file.text, line)
    if text is None:
        raise NoFixError("no text")
    target = ast.get_source_segment(parsed.file.text, line.targets[0]) or ""
    return attribute + text[len(target) :] if target == f"{own}.{attribute}" else text


def _globals_of(tree: ast.Module) -> set[str]:
    reader = Reader(tree)
    return set().union(
        *(reader.of(statement).binds for statement in tree.body), dir(__builtins__), {"len", "int", "float"}
    )


def _attribute_name(holder: ast.ClassDef, call: ast.Call) -> str:
    given = next((k.value for k in call.keywords if k.arg == "name"), None)
    wanted = given.value if isinstance(given, ast.Constant) and isinstance(given.value, str) else ""
    if not wanted.isidentifier():
        tail = (dotted(call.func) or "layer").rpartition(".")[2]
        wanted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", tail).lower()
    taken = {part.attr for part in ast.walk(holder) if isinstance(part, ast.Attribute)}
    taken |= {part.name for part in holder.body if isinstance(part, (ast.FunctionDef, ast.ClassDef))}
    number = 2
    name = wanted
    while name in taken:
        name, number = f"{wanted}_{number}", number + 1
    return name

"""The user's words for what a question is about: names, definitions, and what stands in a source's stead."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

import jax

from gradwhy.flow import Place, Source, Span
from gradwhy.source import files, locate, names, positions

_FARTHEST_BACK = 3
"""How many statements are read back from a value to what it was made of."""


@dataclass(frozen=True, slots=True)
class Definition:
    """The statement that gave a name its value, and the part of it that made the value."""

    statement: Span
    place: Place
    what: str


def index_of(frames: Sequence[FrameType]) -> names.Names:
    """An index of the user's names for the arrays that `frames` reach."""
    return names.Names(frames, is_leaf=lambda value: isinstance(value, jax.Array))


def leaf_paths(function: Callable[..., Any], args: tuple[Any, ...], argnums: Sequence[int]) -> list[str]:
    """The leaves of some arguments as the function's author would write them: `params['dense']['kernel']`."""
    names, paths = parameters(function, len(args)), []
    for n in argnums:
        leaves, _ = jax.tree_util.tree_flatten_with_path(args[n])
        paths += [names[n] + path_text(args[n], path) for path, _ in leaves]
    return paths


def path_text(argument: Any, path: Sequence[Any]) -> str:
    """The way from an argument to a leaf as the program would write it."""
    if not type(argument).__module__.startswith("flax.nnx"):
        return jax.tree_util.keystr(tuple(path))
    # Flax 0.12 hands JAX a module as its states, in which every variable is a box.
    inner = [key for key in path if not (isinstance(key, jax.tree_util.GetAttrKey) and key.name in _BOXES)]
    is_module = len(inner) < len(path) and isinstance(path[0], jax.tree_util.GetAttrKey)
    return "".join(_attribute(key) for key in (inner[1:] if is_module else inner))


_BOXES = frozenset({"states", "value", "raw_value", "_raw_value"})


def _attribute(key: Any) -> str:
    name = getattr(key, "key", getattr(key, "name", None))
    return f".{name}" if isinstance(name, str) and name.isidentifier() else jax.tree_util.keystr((key,))


def left_out_of_module(function: Callable[..., Any]) -> list[tuple[int, str, Any, bool]]:
    """The variables of Flax NNX modules that a question leaves out: argument, path, array, and whether it is a parameter."""
    found = []
    for number, state in enumerate(getattr(function, "nondiff_states", ())):
        boxes, _ = jax.tree_util.tree_flatten_with_path(state, is_leaf=_is_variable)
        for path, box in boxes:
            kind, arrays = type(box), jax.tree_util.tree_leaves(box)
            is_parameter = any(base.__name__ == "Param" for base in kind.__mro__)
            is_own = kind.__name__ == "Variable" or not kind.__module__.startswith("flax")
            if len(arrays) == 1 and (is_parameter or is_own):
                found.append((number, "".join(_attribute(key) for key in path), arrays[0], is_parameter))
    return found


def _is_variable(part: Any) -> bool:
    return any(base.__module__ == "flax.nnx.variablelib" for base in type(part).__mro__)


def users_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """The program's own function behind one that a library made of it; the function itself where it is not found."""
    todo, seen = [(function, _MOST_WRAPPERS)], set[int]()
    while todo:
        current, steps = todo.pop(0)
        code = getattr(current, "__code__", None)
        if isinstance(code, CodeType) and positions.is_user_code(code):
            return current
        if id(current) in seen or not steps:
            continue
        seen.add(id(current))
        cells = [c.cell_contents for c in getattr(current, "__closure__", None) or () if _is_filled(c)]
        held = [vars(part).get(n) for part in (current, *cells) if hasattr(part, "__dict__") for n in _WRAPPED]
        named = [getattr(current, "__func__", None), getattr(current, "func", None)]
        todo += [(part, steps - 1) for part in (*held, *named, *cells) if callable(part)]
    return function


_WRAPPED = ("__wrapped__", "_fun", "fun", "f", "_fn")
_MOST_WRAPPERS = 5


def _is_filled(cell: Any) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


def parameters(function: Callable[..., Any], count: int) -> list[str]:
    """The names of a function's positional parameters, `arg0` and so on where they cannot be told."""
    function = users_function(function)
    try:
        known = [
            p.name
            for p in inspect.signature(function).parameters.values()
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
    except (TypeError, ValueError):
        known = []
    return [known[i] if i < len(known) else f"arg{i}" for i in range(count)]


_BOXED = re.compile(r"\._raw_value$")


def source(array: Any, path: str, index: names.Names) -> Source:
    """A leaf as it is shown: the user's name for it, where the asking code has one, else its path in the argument."""
    name, aliases = index.of(array) if hasattr(array, "shape") else ("", ())
    name, aliases = _BOXED.sub("", name), tuple(_BOXED.sub("", alias) for alias in aliases)
    others = tuple(dict.fromkeys(a for a in (path, *aliases) if a != name))
    kind = "Array" if isinstance(array, jax.Array | jax.core.AbstractValue) else type(array).__name__
    return Source(name or path, others if name else aliases, kind, tuple(getattr(array, "shape", ())))


def name_of(function: Callable[..., Any]) -> str:
    """What a function is called."""
    function = users_function(function)
    return str(getattr(function, "__name__", type(function).__name__)).replace("<lambda>", "the lambda's value")


def dtype(value: Any) -> str:
    """The dtype of an array, or the one JAX gives a Python number, as text."""
    made = str(getattr(value, "dtype", ""))
    return made or _OF_NUMBERS.get(type(value)) or type(value).__name__


_OF_NUMBERS = {float: "float32", complex: "complex64", int: "int32"}


def definition(name: str, reader: tuple[CodeType, int]) -> Definition | None:
    """The statement that last gave `name` its value above where `reader` stands in its file; else the first below it."""
    text = files.read(reader[0].co_filename)
    tree = text.tree if text else None
    if text is None or tree is None:
        return None
    found = [(s, f) for s, f in _assignments(tree) if name in {ast.unparse(t) for t in _targets(s)}]
    if not found:
        # What a dict or a list holds was often made with it.
        held_in = re.match(r"[A-Za-z_][\w.]*(?=\[)", name)
        return definition(held_in[0], reader) if held_in else None
    span = positions.span_of(*reader)
    # A function of its own may give the name another value.
    found = [pair for pair in found if pair[1] in ("<module>", reader[0].co_name)] or found
    above = [pair for pair in found if span is None or pair[0].lineno < span.line]
    statement, function = max(above, key=lambda p: p[0].lineno) if above else found[0]
    return _defined(text, statement, function)


def _defined(text: files.SourceFile, statement: ast.stmt, function: str) -> Definition:
    shown = files.shown_path(text.path)
    value: ast.expr = statement.value  # type: ignore[attr-defined]
    what = ast.unparse(value.func) if isinstance(value, ast.Call) else "="
    place = Place(locate.span_of_syntax(text, value, shown), function)
    return Definition(locate.span_of_syntax(text, statement, shown), place, what)


def is_made_of(made: Definition, wanted: Iterable[str], reader: tuple[CodeType, int]) -> bool:
    """Whether a definition reads one of the expressions `wanted`, itself or through other names of its file."""
    candidates, seen = set(wanted), set[str]()
    todo = [(made, _FARTHEST_BACK)]
    while todo:
        current, steps = todo.pop()
        value = locate.expression_at(current.place.span)
        read = {ast.unparse(p) for p in ast.walk(value) if isinstance(p, _READABLE)} if value is not None else set()
        if candidates & read:
            return True
        for name in sorted(read - seen) if steps else ():
            seen.add(name)
            earlier = definition(name, reader)
            if earlier is not None and earlier.statement != current.statement:
                todo.append((earlier, steps - 1))
    return False


_READABLE = (ast.Name, ast.Attribute, ast.Subscript)


def _assignments(tree: ast.AST, function: str = "<module>") -> Iterator[tuple[ast.stmt, str]]:
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, (ast.Assign, ast.AugAssign)) or (isinstance(child, ast.AnnAssign) and child.value):
            yield child, function
        is_function = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))
        yield from _assignments(child, child.name if is_function else function)  # type: ignore[attr-defined]


def _targets(statement: ast.stmt) -> list[ast.expr]:
    if isinstance(statement, ast.Assign):
        return [e for t in statement.targets for e in (t.elts if isinstance(t, (ast.Tuple, ast.List)) else [t])]
    return [statement.target]  # type: ignore[attr-defined]

"""Which parts of an answer the program reads by name, told from its text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import CodeType

from gradwhy.backends.jax.definitions import Key
from gradwhy.flow import Span
from gradwhy.source import files, locate, positions
from gradwhy.source.statements import in_same_scope, target_names

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# A call of one of these hands its argument on, in another container at most.
_SAME = frozenset(
    "zip list tuple dict enumerate sorted reversed iter items values get update setdefault append leaves tree_leaves flatten "
    "tree_flatten_with_path leaves_with_path to_flat_state to_pure_dict flatten_dict device_get block_until_ready state".split()
)
_UPDATING = (ast.Add, ast.Sub)


@dataclass(frozen=True, slots=True)
class Chain:
    """The keys of one look-up; `is_anchored` where the first is looked up in the answer itself."""

    keys: tuple[Key, ...]
    is_anchored: bool


def _fits(chain: Chain, keys: Sequence[Key]) -> bool:
    """Whether a look-up leads to a part; an index from the end, as the text has it, may be any."""
    if not chain.keys or len(chain.keys) > len(keys) or (chain.is_anchored and len(chain.keys) != len(keys)):
        return False
    pairs = zip(reversed(chain.keys), reversed(keys), strict=False)
    return all(a == b or (isinstance(a, int) and a < 0 and isinstance(b, int)) for a, b in pairs)


@dataclass
class Reading:
    """What the program's text does with an answer.

    `chains` are the keys that parts of it are looked up by, from the answer on where `is_anchored`, `unpacked` the names it is taken apart into, `updated` those that
    are given a new value with the help of it, `arguments` the texts of what the differentiated function is called with.
    """

    chains: set[Chain] = field(default_factory=set)
    unpacked: list[str] = field(default_factory=list)
    updated: set[str] = field(default_factory=set)
    arguments: list[str] = field(default_factory=list)

    def looks_up(self, keys: Sequence[Key]) -> bool:
        """Whether the part of the answer to which `keys` lead is looked up."""
        return any(_fits(chain, keys) for chain in self.chains)

    def is_for(self, name: str) -> bool:
        """Whether a part of the answer is meant for the argument of that name."""
        pattern = re.compile(rf"(?:dl_?d|d|g|grads?|nabla)?_?{re.escape(name)}(?:_?(?:grads?|g|bar))?", re.IGNORECASE)
        is_unpacked = any(pattern.fullmatch(u) for u in self.unpacked[1:])
        return is_unpacked or name in self.updated or Chain((name,), True) in self.chains


def of_answer(reader: tuple[CodeType, int], *, has_value: bool, has_aux: bool) -> Reading:
    """What is done with the answer of the question asked where `reader` stands.

    `has_value` and `has_aux` say that the gradient is the second, or the first, of two things that come back.
    """
    found, span = Reading(), positions.span_of(*reader)
    file = files.read(reader[0].co_filename)
    if file is None or file.tree is None or span is None:
        return found
    way = locate.path_to(span)
    call = locate.call_at(span)
    statement = next((part for part in reversed(way) if isinstance(part, ast.stmt)), None)
    if call is None or statement is None or any(isinstance(a, ast.Starred) for a in call.args):
        return found
    found.arguments = [ast.unparse(a) for a in call.args]
    scope = next((part for part in reversed(way) if isinstance(part, (*_FUNCTIONS, ast.Module))), file.tree)
    _Follower(found, scope, call).follow(statement, has_value=has_value, has_aux=has_aux)
    return found


def parted_at(reader: tuple[CodeType, int]) -> Span | None:
    """The statement that says which part of a model is differentiated: what `partition` is given, or its call."""
    span = positions.span_of(*reader)
    file, call = files.read(reader[0].co_filename), locate.call_at(span) if span is not None else None
    if file is None or file.tree is None or call is None:
        return None
    asked, shown = {ast.unparse(a) for a in call.args}, files.shown_path(file.path)
    assigned = [part for part in ast.walk(file.tree) if isinstance(part, ast.Assign) and part.lineno <= call.lineno]
    for statement in reversed(assigned):
        made = statement.value
        if not isinstance(made, ast.Call) or not asked & {n for t in statement.targets for n in target_names(t)}:
            continue
        if "partition" in ast.unparse(made.func) or "filter" in ast.unparse(made.func):
            chosen = made.args[1] if len(made.args) > 1 else made
            named = [s for s in assigned if isinstance(chosen, ast.Name) and _gives(s, chosen.id)]
            return locate.span_of_syntax(file, named[-1] if named else statement, shown)
    return None


_ANSWER = Chain((), True)
_SOMEWHERE = Chain((), False)


class _Follower:
    def __init__(self, found: Reading, scope: ast.AST, call: ast.Call) -> None:
        self._found = found
        self._scope = scope
        self._call = call
        self._derived: dict[str, Chain] = {}

    def follow(self, statement: ast.stmt, *, has_value: bool, has_aux: bool) -> None:
        if isinstance(statement, ast.Assign) and statement.value is self._call:
            for target in statement.targets:
                self._bind(_gradient_of(target, has_value=has_value, has_aux=has_aux), _ANSWER)
        body = [part for part in in_same_scope(self._scope) if getattr(part, "lineno", 0) >= statement.lineno]
        before = -1
        while before != len(self._derived):
            before = len(self._derived)
            for part in body:
                self._extend(part)
        for part in body:
            self._note(part)

    def _bind(self, target: ast.expr, chain: Chain) -> None:
        if isinstance(target, (ast.Tuple, ast.List)) and chain == _ANSWER:
            self._found.unpacked = [e.id if isinstance(e, ast.Name) else "" for e in target.elts]
        for name in target_names(target):
            if "." not in name:
                self._derived.setdefault(name, chain if isinstance(target, ast.Name) else _SOMEWHERE)

    def _extend(self, part: ast.AST) -> None:
        match part:
            case ast.Assign() if part.value is not self._call and (chain := self._chain(part.value)) is not None:
                for target in part.targets:
                    self._bind(target, chain)
            case ast.For() | ast.comprehension() if self._chain(part.iter) is not None:
                self._bind(part.target, _SOMEWHERE)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=holder), attr=attribute)) if attribute in _SAME:
                if any(self._chain(a) is not None for a in part.args):
                    self._derived.setdefault(holder, _ANSWER)

    def _chain(self, part: ast.expr) -> Chain | None:
        """The way from the answer to an expression's value; None where that is no part of it and holds none."""
        match part:
            case ast.Name():
                return self._derived.get(part.id)
            case ast.Attribute():
                return _longer(self._chain(part.value), part.attr)
            case ast.Subscript():
                return _longer(self._chain(part.value), _constant(part.slice))
            case ast.Tuple() | ast.List() | ast.Dict() | ast.Starred():
                parts = getattr(part, "elts", None) or getattr(part, "values", None) or [getattr(part, "value", None)]
                return _SOMEWHERE if any(p is not None and self._chain(p) is not None for p in parts) else None
            case ast.Call():
                return self._of_call(part)
        return None

    def _of_call(self, call: ast.Call) -> Chain | None:
        if call is self._call:
            return _ANSWER
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if name not in _SAME:
            return None
        held = [a for a in call.args if self._chain(a) is not None]
        if isinstance(call.func, ast.Attribute) and self._chain(call.func.value) is not None:
            held.append(call.func.value)
        return _SOMEWHERE if held else None

    def _note(self, part: ast.AST) -> None:
        chains = self._found.chains
        match part:
            case ast.Subscript() | ast.Attribute() if (chain := self._chain(part)) is not None:
                chains.add(chain)
            case ast.Compare(left=ast.Constant(value=str(key)), ops=[ast.In() | ast.NotIn()]):
                if (chain := _longer(self._chain(part.comparators[0]), key)) is not None:
                    chains.add(chain)
            case ast.Call(func=ast.Attribute(value=holder, attr="get" | "pop")) if part.args:
                known = [_longer(self._chain(holder), text) for text in self._texts(part.args[0])]
                chains.update(chain for chain in known if chain is not None)
            case ast.Call(func=ast.Name(id="zip")) if any(self._chain(a) is not None for a in part.args):
                chains.update(Chain((text,), True) for a in part.args for text in self._texts(a))
            case ast.Assign(targets=[ast.Name(id=name)]) if self._is_update(part.value, name):
                self._found.updated.add(name)
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add() | ast.Sub()) if self._mentions(part.value):
                self._found.updated.add(name)

    def _is_update(self, value: ast.expr, name: str) -> bool:
        if not isinstance(value, ast.BinOp) or not isinstance(value.op, _UPDATING):
            return False
        return ast.unparse(value.left) == name and self._mentions(value.right)

    def _mentions(self, part: ast.expr) -> bool:
        return any(isinstance(p, ast.Name) and p.id in self._derived for p in ast.walk(part))

    def _texts(self, part: ast.expr) -> Iterator[str]:
        """The texts that an expression, or the name's value that it is, spells out."""
        if isinstance(part, ast.Name):
            given = [p.value for p in in_same_scope(self._scope) if isinstance(p, ast.Assign) and _gives(p, part.id)]
            part = given[-1] if given else part
        elements = part.elts if isinstance(part, (ast.Tuple, ast.List)) else [part]
        for element in elements:
            if isinstance(element, ast.Constant) and isinstance(element.value, str):
                yield element.value


def _longer(chain: Chain | None, key: Key | None) -> Chain | None:
    if chain is None:
        return None
    return _SOMEWHERE if key is None else Chain((*chain.keys, key), chain.is_anchored)


def _constant(part: ast.expr) -> Key | None:
    """The key that a subscript spells out."""
    try:
        value = ast.literal_eval(part)
    except ValueError:
        return None
    return value if isinstance(value, (str, int)) else None


def _gives(statement: ast.Assign, name: str) -> bool:
    return any(isinstance(t, ast.Name) and t.id == name for t in statement.targets)


def _gradient_of(target: ast.expr, *, has_value: bool, has_aux: bool) -> ast.expr:
    """The part of an assignment's target that the gradient goes to."""
    is_pair = isinstance(target, (ast.Tuple, ast.List)) and len(target.elts) == 2
    if not is_pair or not (has_value or has_aux):
        return target
    return target.elts[1] if has_value else target.elts[0]  # type: ignore[attr-defined, no-any-return]

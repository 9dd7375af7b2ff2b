"""What a statement reads, binds and changes, as far as its text tells, and whether two may change places."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from gradwhy.source.statements import in_same_scope

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LEAVING = (ast.Return, ast.Break, ast.Continue, ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal)
_RANDOM = ("random", "shuffle", "dropout", "rand", "choice", "seed", "sample")
_SPEAKING = frozenset({"print", "input", "open", "write", "next"})
# Methods that change what they are called on, beside every method whose result nobody takes.
_CHANGING = frozenset(
    {"append", "extend", "insert", "pop", "remove", "clear", "update", "add", "setdefault", "popleft", "appendleft"}
    | {"assign", "assign_add", "assign_sub", "build", "compile", "apply_gradients", "update_state", "set_weights"}
)


@dataclass(slots=True)
class Effects:
    """The names that a statement reads, binds, and whose objects it changes; whether it draws random numbers, or speaks."""

    reads: set[str] = field(default_factory=set)
    binds: set[str] = field(default_factory=set)
    changes: set[str] = field(default_factory=set)
    is_random: bool = False
    speaks: bool = False
    leaves: bool = False
    """It may leave the block it stands in: a `return`, a `break`."""


class Reader:
    """Reads the effects of statements of one file; a call of one of the file's functions has what that one's body has."""

    def __init__(self, tree: ast.Module) -> None:
        self._bodies: dict[str, list[ast.AST]] = {}
        for part in ast.walk(tree):
            if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self._bodies.setdefault(part.name, []).append(part)
            elif isinstance(part, ast.Assign) and isinstance(part.value, ast.Lambda):
                names = [target.id for target in part.targets if isinstance(target, ast.Name)]
                for name in names:
                    self._bodies.setdefault(name, []).append(part.value)

    def of(self, statement: ast.AST) -> Effects:
        """The effects of a statement, or of an expression."""
        effects = Effects()
        self._gather(statement, effects, frozenset(), set())
        effects.leaves = any(isinstance(part, _LEAVING) for part in in_same_scope(statement))
        return effects

    def _gather(self, root: ast.AST, effects: Effects, own: frozenset[str], called: set[str]) -> None:
        for part in ast.iter_child_nodes(root) if isinstance(root, ast.Module) else (root,):
            self._part(part, effects, own, called)

    def _part(self, part: ast.AST, effects: Effects, own: frozenset[str], called: set[str]) -> None:
        if isinstance(part, _FUNCTIONS):
            # What a body reads, it reads when it is called.
            if not isinstance(part, ast.Lambda):
                effects.binds.add(part.name)
                for decorator in part.decorator_list:
                    self._part(decorator, effects, own, called)
            return
        if isinstance(part, ast.Name) and part.id not in own:
            (effects.reads if isinstance(part.ctx, ast.Load) else effects.binds).add(part.id)
        if isinstance(part, ast.AugAssign):
            effects.reads |= set(_roots(part.target)) - own
        if isinstance(part, (ast.Attribute, ast.Subscript)) and not isinstance(part.ctx, ast.Load):
            effects.changes |= set(_roots(part)) - own
        if isinstance(part, (ast.Import, ast.ImportFrom)):
            effects.binds |= {(alias.asname or alias.name).split(".")[0] for alias in part.names}
        if isinstance(part, ast.ClassDef):
            effects.binds.add(part.name)
        if isinstance(part, ast.ExceptHandler) and part.name:
            effects.binds.add(part.name)
        if (
            isinstance(part, ast.Expr)
            and isinstance(part.value, ast.Call)
            and isinstance(part.value.func, ast.Attribute)
        ):
            effects.changes |= set(_roots(part.value.func)) - own
        if isinstance(part, ast.Expr) and isinstance(part.value, ast.Call) and isinstance(part.value.func, ast.Name):
            # A function whose result nobody takes is called for what it does.
            effects.speaks |= part.value.func.id not in self._bodies
        if isinstance(part, ast.Call):
            self._call(part, effects, own, called)
        inner = own
        if isinstance(part, _COMPREHENSIONS):
            inner = own | {n.id for g in part.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
        for child in ast.iter_child_nodes(part):
            self._part(child, effects, inner, called)

    def _call(self, call: ast.Call, effects: Effects, own: frozenset[str], called: set[str]) -> None:
        text = ast.unparse(call.func).lower()
        name = text.rpartition(".")[2] if not isinstance(call.func, ast.Name) else call.func.id
        effects.is_random |= any(word in text for word in _RANDOM)
        effects.speaks |= name in _SPEAKING
        if isinstance(call.func, ast.Attribute):
            name = call.func.attr
            if name in _CHANGING:
                effects.changes |= set(_roots(call.func.value)) - own
        if name in self._bodies and name not in called:
            called.add(name)
            for body in self._bodies[name]:
                self._called(body, effects, called)

    def _called(self, function: ast.AST, effects: Effects, called: set[str]) -> None:
        """What calling a function does: it reads the names that it does not bind itself."""
        inner = Effects()
        local = frozenset(part.arg for part in ast.walk(function) if isinstance(part, ast.arg))
        held: Any = function
        for part in held.body if isinstance(held.body, list) else [held.body]:
            self._part(part, inner, local, called)
        effects.reads |= inner.reads - inner.binds
        effects.changes |= inner.changes - inner.binds
        effects.is_random |= inner.is_random
        effects.speaks |= inner.speaks


def conflict(first: Effects, second: Effects) -> bool:
    """Whether two statements may not change places."""
    if first.binds & (second.reads | second.binds | second.changes) or first.reads & second.binds:
        return True
    if first.changes & (second.reads | second.changes) or first.reads & second.changes:
        return True
    return (first.is_random and second.is_random) or (first.speaks and second.speaks)


def _roots(part: ast.AST) -> Iterator[str]:
    """The names at the beginning of `a.b[c].d`."""
    while isinstance(part, (ast.Attribute, ast.Subscript, ast.Starred)):
        part = part.value
    if isinstance(part, ast.Name):
        yield part.id
    elif isinstance(part, (ast.Tuple, ast.List)):
        for element in part.elts:
            yield from _roots(element)

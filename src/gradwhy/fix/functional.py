"""Fixes where the question is a call of what a function was made into, such as `jax.grad(loss)(params)`."""

from __future__ import annotations

import ast

from gradwhy.fix.rewriting import NATIVE
from gradwhy.fix.situation import NoFixError, Parsed, Proposal, Situation, function_of, proposed
from gradwhy.flow import Applicability, Text
from gradwhy.source.locate import path_to
from gradwhy.source.statements import dotted, in_same_scope, last_name, names_of_module

_ASKING = frozenset({"grad", "value_and_grad"})


def mark_auxiliary(situation: Situation) -> Proposal:
    """`g = jax.grad(f)(p)` becomes `g, _ = jax.grad(f, has_aux=True)(p)` where `f` returns more than the loss."""
    failure = situation.question.failure
    if failure is None or failure.op != "returns-more":
        raise NoFixError("nothing more is returned")
    parsed, made, called = _asked(situation)
    statement = parsed.way_to(called)[-2]
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        raise NoFixError("the answer is not given a name at once")
    target, editor = statement.targets[0], parsed.editor()
    if last_name(made.func) == "grad":
        if isinstance(target, ast.Tuple):
            raise NoFixError("the answer is taken apart")
        parsed.replace(editor, target, f"{parsed.text(target)}, _")
    else:
        if not isinstance(target, ast.Tuple) or len(target.elts) != 2:
            raise NoFixError("the value has no name of its own")
        parsed.replace(editor, target.elts[0], f"({parsed.text(target.elts[0])}, _)")
    parsed.replace(editor, made, f"{parsed.text(made.func)}({parsed.text(made.args[0])}, has_aux=True)")
    return proposed(_title("fixes/has-aux", situation, made), Applicability.SAFE, editor, parsed)


def use_argument(situation: Situation) -> Proposal:
    """What the function reads from outside becomes the argument of the same value."""
    place = situation.finding.place
    asked = situation.asked[0] if situation.asked else None
    if asked is None or asked.stand_in is None or asked.stand_in_kind not in ("same-object", "same-name"):
        raise NoFixError("it is not known to be the same")
    parsed = situation.parsed(place)
    assert place is not None
    way = path_to(place)
    scope = next((p for p in reversed(way) if isinstance(p, (ast.FunctionDef, ast.Lambda))), None)
    parameters = {a.arg for a in ast.walk(scope.args) if isinstance(a, ast.arg)} if scope is not None else set()
    names = (asked.source.name, *asked.source.aliases)
    argument = next((n for n in names if n != asked.stand_in and _root(n) in parameters), None)
    if scope is None or argument is None or _root(asked.stand_in) in parameters - {"self"}:
        raise NoFixError("the function that reads it is not given it")
    wanted, editor = {asked.stand_in}, parsed.editor()
    if "self" in parameters:
        # In the method, the object that the caller has under another name is `self`.
        wanted.add(f"self{asked.stand_in[len(_root(asked.stand_in)) :]}")
    for part in in_same_scope(scope):
        if isinstance(part, (ast.Name, ast.Attribute, ast.Subscript)) and ast.unparse(part) in wanted:
            is_double = '"' in parsed.text(part)
            parsed.replace(editor, part, argument.replace("'", '"') if is_double else argument)
    return proposed(_title("fixes/use-argument", situation, scope, argument), Applicability.SAFE, editor, parsed)


def _asked(situation: Situation) -> tuple[Parsed, ast.Call, ast.Call]:
    """The file, the call that makes the gradient's function, and the call of that, at the question's place."""
    parsed = situation.parsed(situation.question.span)
    assert situation.question.span is not None
    for part in reversed(parsed.around(situation.question.span)):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Call):
            made = part.func
            name = last_name(made.func)
            if name in _ASKING and len(made.args) == 1 and not made.keywords:
                function_of(parsed.way_to(part))
                return parsed, made, part
    raise NoFixError("the gradient's function is not made where it is called")


def _root(expression: str) -> str:
    return expression.split(".")[0].split("[")[0]


def _title(key: str, situation: Situation, part: ast.AST, code: str = "") -> Text:
    names = situation.finding.sources
    place = situation.finding.place
    known: dict[str, str | int | float] = {
        "source": names[0].name if names else "",
        "target": situation.question.target,
        "line": place.line if place is not None else getattr(part, "lineno", 0),
        "code": code,
    }
    return Text(key, known)


def native_numpy(situation: Situation) -> Proposal:
    """NumPy's function, and those that take its result at once, become those of the same name in `jax.numpy`."""
    place = situation.finding.place
    parsed = situation.parsed(place)
    assert place is not None
    theirs, ours = _alias(parsed.tree, "numpy"), _alias(parsed.tree, "jax.numpy")
    if theirs is None or ours is None:
        raise NoFixError("`jax.numpy` has no name in this file")
    editor, changed = parsed.editor(), ""
    for part in reversed(parsed.around(place)):
        if isinstance(part, ast.stmt):
            break
        if isinstance(part, ast.Call) and (name := dotted(part.func) or "").rpartition(".")[0] == theirs:
            function = name.rpartition(".")[2]
            if function not in _SAME_NAME or any(k.arg not in ("axis", "keepdims") for k in part.keywords):
                raise NoFixError("`jax.numpy` may mean something else by it")
            changed = f"{ours}.{function}"
            parsed.replace(editor, part.func, changed)
    return proposed(_title("fixes/native", situation, parsed.tree, changed), Applicability.UNSAFE, editor, parsed)


_SAME_NAME = frozenset(NATIVE) | {
    "dot",
    "outer",
    "clip",
    "asarray",
    "array",
    "sinh",
    "cosh",
    "arctan",
    "linspace",
    "diff",
}


def _alias(tree: ast.Module, module: str) -> str | None:
    """What a file calls a module by another name than its own."""
    return next((name for name in names_of_module(tree, module) if name != module), None)

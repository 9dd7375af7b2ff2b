"""Whether a program drops missing gradients itself before anything uses them."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gradwhy.flow import Span
from gradwhy.source.carried import CHECKED, RAW, Carriers, Shape, bind, check, element_of, holds, joined
from gradwhy.source.following import Decided, Follower, Returned, tests_of
from gradwhy.source.locate import call_at, expression_at, path_to, statement_at

_QUESTIONS = frozenset(
    {"gradient", "gradients", "jacobian", "batch_jacobian", "grad", "value_and_grad", "compute_gradients"}
)
_FINITE = frozenset({"is_finite", "isfinite", "is_nan", "isnan", "is_inf", "isinf", "all_finite", "nan_to_num"})
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def drops_none(span: Span, callers: Sequence[Span] = ()) -> bool:
    """Whether the program, after the question at `span`, filters a missing gradient out before anything uses it.

    A filter decides what is applied or kept: `if g is not None` in the list that goes to the optimizer, `continue` in the
    loop that updates, zeros put in its stead. To print "None" is to read it. `callers` are the spans of the calls that led
    to the question, innermost first: an answer that is returned is followed there. In doubt, it is no filter.
    """
    shape: Shape = RAW
    for place in (span, *callers):
        question = _question_at(place)
        if question is None:
            return False
        try:
            _follow(place, question, shape)
        except Decided as decided:
            return decided.is_dropped
        except Returned as returned:
            shape = returned.shape
        else:
            return False
    return False


def checks_finite(span: Span) -> bool:
    """Whether the function that holds `span` looks itself for numbers that are not finite."""
    path = path_to(span)
    scope = next((p for p in reversed(path) if isinstance(p, _FUNCTIONS)), path[0] if path else None)
    calls = ast.walk(scope) if scope is not None else ()
    return any(
        (part.attr if isinstance(part, ast.Attribute) else part.id) in _FINITE
        for part in calls
        if isinstance(part, (ast.Attribute, ast.Name))
    )


def _question_at(span: Span) -> ast.expr | None:
    if span.column is not None:
        return call_at(span) or expression_at(span)
    statement = statement_at(span)
    calls = [part for part in ast.walk(statement) if isinstance(part, ast.Call)] if statement is not None else []
    asking = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr in _QUESTIONS]
    return asking[0] if len(asking) == 1 else None


def _follow(span: Span, question: ast.expr, shape: Shape) -> None:
    """Run through the statements from the question's own to the end of its function or module."""
    path = path_to(span)
    cut = max((i for i, part in enumerate(path) if isinstance(part, (*_FUNCTIONS, ast.Lambda, ast.Module))), default=0)
    if isinstance(path[cut], ast.Lambda):
        raise Returned(shape)
    walk = _Walk(question, shape)
    chain = [part for part in path[cut:] if isinstance(part, (ast.stmt, ast.Module, ast.excepthandler))]
    first, skips_to_loop = True, False
    for holder, statement in zip(reversed(chain[:-1]), reversed(chain[1:]), strict=True):
        following = _following(holder, statement)
        if first:
            following.insert(0, chain[-1])  # type: ignore[arg-type]
            first = False
        if not skips_to_loop and walk.run(following):
            # What leaves the function ends the search, `continue` and `break` go on behind the loop.
            if not any(isinstance(part, _LOOPS) for part in chain):
                return
            skips_to_loop = True
        if isinstance(holder, _LOOPS):
            skips_to_loop = False


def _following(holder: ast.AST, statement: ast.AST) -> list[ast.stmt]:
    """The statements after one in the body that holds it."""
    for name in ("body", "orelse", "finalbody", "handlers"):
        body = getattr(holder, name, [])
        if statement in body:
            rest = body[body.index(statement) + 1 :] if name != "handlers" else []
            return [part for part in rest if isinstance(part, ast.stmt)]
    return []


class _Walk:
    """The statements after a question, run through in the order of the text."""

    def __init__(self, question: ast.expr, shape: Shape) -> None:
        self._carriers: Carriers = {}
        if isinstance(question, (ast.Attribute, ast.Subscript)):
            self._carriers[ast.unparse(question)] = shape
        self._follower = Follower(question, shape)

    def run(self, statements: Sequence[ast.stmt]) -> bool:
        """Whether the flow leaves these statements before their end; raises what is decided on the way."""
        return any(self._runs_out(statement) for statement in statements)

    def _carries(self, part: ast.expr) -> Shape | None:
        return self._follower.carries(part, self._carriers)

    def _uses(self, part: ast.expr) -> Shape | None:
        return self._follower.uses(part, self._carriers)

    def _runs_out(self, statement: ast.stmt) -> bool:
        match statement:
            case ast.Expr():
                if holds(self._carries(statement.value), CHECKED):
                    raise Decided(True)
            case ast.Assign():
                self._assign(statement.targets, statement.value)
            case ast.AnnAssign() if statement.value is not None:
                self._assign([statement.target], statement.value)
            case ast.AugAssign():
                if self._uses(statement.value) is not None:
                    raise Decided(True)
            case ast.Return():
                self._leave(statement.value)
                return True
            case ast.Raise():
                if statement.exc is not None:
                    self._uses(statement.exc)
                return True
            case ast.Continue() | ast.Break():
                return True
            case ast.Assert():
                self._assert(statement)
            case ast.If():
                return self._branch(statement)
            case ast.Delete():
                for target in statement.targets:
                    bind(target, None, self._carriers)
            case _:
                return self._compound(statement)
        return False

    def _assign(self, targets: list[ast.expr], value: ast.expr) -> None:
        shape = self._carries(value)
        for target in targets:
            if isinstance(target, (ast.Attribute, ast.Subscript)) and shape is not None:
                if not holds(shape, RAW):
                    raise Decided(True)
                # `by_name[v.name] = g`: from here on the whole of it may hold a missing gradient.
                bind(target.value if isinstance(target, ast.Subscript) else target, RAW, self._carriers)
            else:
                bind(target, shape, self._carriers)
                if shape is RAW and not isinstance(value, ast.Subscript):
                    self._follower.wholes.add(ast.unparse(target))

    def _leave(self, value: ast.expr | None) -> None:
        shape = None if value is None else self._carries(value)
        if holds(shape, RAW) and shape is not None:
            raise Returned(shape)
        if holds(shape, CHECKED):
            raise Decided(True)

    def _assert(self, statement: ast.Assert) -> None:
        tests = tests_of(statement.test, self._carriers, self._follower)
        if tests.present or tests.missing:
            # To demand a gradient is to miss it; to demand that there is none is to know.
            raise Decided(not tests.present)
        self._uses(statement.test)

    def _branch(self, statement: ast.If) -> bool:
        tests = tests_of(statement.test, self._carriers, self._follower)
        if not tests.present and not tests.missing:
            self._uses(statement.test)
        failing = statement.body if tests.missing else statement.orelse if tests.present else []
        if any(isinstance(part, ast.Raise) for part in failing):
            # The author takes a missing gradient for an error.
            raise Decided(False)
        before = dict(self._carriers)
        body_ends, after_body = self._arm(statement.body, before, sure=tests.present, gone=tests.missing)
        else_ends, after_else = self._arm(statement.orelse, before, sure=tests.missing, gone=tests.present)
        if body_ends and else_ends:
            return True
        arms = [after for ends, after in ((body_ends, after_body), (else_ends, after_else)) if not ends]
        self._carriers.clear()
        for name in dict.fromkeys(name for arm in arms for name in arm):
            shape = joined([arm.get(name) for arm in arms])
            if shape is not None:
                self._carriers[name] = shape
        return False

    def _arm(
        self, statements: list[ast.stmt], before: Carriers, *, sure: list[ast.expr], gone: list[ast.expr]
    ) -> tuple[bool, Carriers]:
        """Whether the flow leaves one arm of a branch, and what carries gradients behind it."""
        self._carriers.clear()
        self._carriers.update(before)
        for subject in sure:
            check(subject, self._carriers)
        for subject in gone:
            self._carriers.pop(ast.unparse(subject), None)
        ends = self.run(statements)
        after = dict(self._carriers)
        for subject in gone:
            text = ast.unparse(subject)
            # Where nothing was put in its stead, it is still missing behind the branch.
            after.setdefault(text, CHECKED if _is_bound(text, statements) else before.get(text, RAW))
        return ends, after

    def _compound(self, statement: ast.stmt) -> bool:
        match statement:
            case ast.For() | ast.AsyncFor():
                bind(statement.target, element_of(self._carries(statement.iter)), self._carriers)
                self.run(statement.body)
                self.run(statement.orelse)
            case ast.While():
                self._uses(statement.test)
                self.run(statement.body)
            case ast.With() | ast.AsyncWith():
                for item in statement.items:
                    self._uses(item.context_expr)
                return self.run(statement.body)
            case ast.Try() | ast.TryStar():
                ends = self.run([*statement.body, *statement.orelse])
                for handler in statement.handlers:
                    self.run(handler.body)
                return self.run(statement.finalbody) or ends
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Match():
                # When it runs, and whether it does, cannot be told from here.
                if any(
                    holds(self._carriers.get(ast.unparse(part)), RAW) for part in ast.walk(statement) if _is_name(part)
                ):
                    raise Decided(False)
        return False


def _is_bound(text: str, statements: list[ast.stmt]) -> bool:
    stored = (
        part for statement in statements for part in ast.walk(statement) if isinstance(part, (ast.Name, ast.Attribute))
    )
    return any(isinstance(part.ctx, ast.Store) and ast.unparse(part) == text for part in stored)


def _is_name(part: ast.AST) -> bool:
    return isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)

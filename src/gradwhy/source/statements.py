"""What the statement or call at a span says: its arguments, the names it binds and reads."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradwhy.flow import Span
from gradwhy.source.files import SourceFile, read
from gradwhy.source.guards import drops_none
from gradwhy.source.locate import (
    call_at,
    expression_at,
    header_parts,
    header_span,
    path_to,
    span_of_syntax,
    statement_at,
)
from gradwhy.source.locate import text_of as text_of_syntax

LONGEST_TEXT = 60

__all__ = [
    "assigned_names",
    "call_argument",
    "call_argument_span",
    "drops_none",
    "expression_at",
    "last_name",
    "names_of_module",
    "names_read",
    "short_text",
    "statement_reads",
    "statement_span",
    "with_header_span",
    "written_name",
]

_WRITES = ("assign", "scatter_")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_SCOPES = (*_DEFINITIONS, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def statement_span(span: Span) -> Span | None:
    """The innermost statement at the span; of one that holds a body, the header."""
    file, statement = read(span.file), statement_at(span)
    return None if file is None or statement is None else header_span(file, statement, span.file)


def with_header_span(span: Span) -> Span | None:
    """The expression that a `with` statement opens and the span stands in; every one where the span is the whole header."""
    file = read(span.file)
    path = path_to(span)
    for outer, inner in zip(reversed(path[:-1]), reversed(path), strict=False):
        if file is not None and isinstance(outer, (ast.With, ast.AsyncWith)):
            opened = [item.context_expr for item in outer.items if _covers(file, item.context_expr, span)]
            if opened:
                return span_of_syntax(file, opened[0], span.file)
            return None if isinstance(inner, ast.stmt) else header_span(file, outer, span.file)
    if file is not None and path and isinstance(path[-1], (ast.With, ast.AsyncWith)):
        return header_span(file, path[-1], span.file)
    return None


def call_argument_span(span: Span, position: int | None, keyword: str | None) -> Span | None:
    """Where an argument of the call at the span is written; None where the call does not spell it out."""
    file, argument = read(span.file), _argument(span, position, keyword)
    return None if file is None or argument is None else span_of_syntax(file, argument, span.file)


def call_argument(span: Span, position: int | None, keyword: str | None) -> str | None:
    """The text of an argument of the call at the span, on one line and at most `LONGEST_TEXT` characters."""
    file, argument = read(span.file), _argument(span, position, keyword)
    return None if file is None or argument is None else short_text(text_of_syntax(file, argument))


def short_text(text: str) -> str:
    """Source text on one line, shortened to `LONGEST_TEXT` characters."""
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 3].rstrip() + "..."


def assigned_names(span: Span) -> tuple[str, ...]:
    """The names, and attributes such as `self.w`, that the statement at the span binds, in the order of the text."""
    statement = statement_at(span)
    return () if statement is None else bound_by(statement)


def names_read(span: Span) -> tuple[str, ...]:
    """The names, and attributes such as `self.w`, that the expression at the span reads; without one, its statement."""
    part: ast.AST | None = expression_at(span) or statement_at(span)
    if part is None:
        return ()
    roots: list[ast.AST] = [part]
    if isinstance(part, ast.stmt):
        roots = list(header_parts(part)) or ([] if isinstance(part, _DEFINITIONS) else [part])
    return tuple(dict.fromkeys(name for root in roots for name in _reads(root)))


def statement_reads(span: Span) -> tuple[str, ...]:
    """The names, and attributes such as `self.w`, that the statement at the span reads."""
    statement = statement_at(span)
    return () if statement is None else tuple(dict.fromkeys(_reads(statement)))


def bound_by(statement: ast.stmt) -> tuple[str, ...]:
    """The names that a statement itself binds; the body of a compound statement is not looked at."""
    names: list[str] = []
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return (statement.name,)
        case ast.Import() | ast.ImportFrom():
            return tuple((alias.asname or alias.name).split(".")[0] for alias in statement.names)
        case ast.Assign():
            names += [name for target in statement.targets for name in target_names(target)]
        case ast.AnnAssign() if statement.value is None:
            return ()
        case ast.AnnAssign() | ast.AugAssign() | ast.For() | ast.AsyncFor():
            names += target_names(statement.target)
        case ast.With() | ast.AsyncWith():
            targets = [item.optional_vars for item in statement.items if item.optional_vars is not None]
            names += [name for target in targets for name in target_names(target)]
    roots: list[ast.AST] = list(header_parts(statement)) or ([] if hasattr(statement, "body") else [statement])
    names += [part.target.id for root in roots for part in in_same_scope(root) if isinstance(part, ast.NamedExpr)]
    return tuple(dict.fromkeys(names))


def written_name(span: Span) -> str | None:
    """What the statement or the call at the span writes in place: `x` in `x += 1`, `x[0] = y`, `x.clamp_(0)` and `x.assign(y)`."""
    file, statement = read(span.file), statement_at(span)
    call = call_at(span)
    part: ast.expr | None = None
    written = call.func if call is not None and isinstance(call.func, ast.Attribute) else None
    if written is not None and (written.attr.endswith("_") or written.attr.startswith(_WRITES)):
        part = written.value
    elif isinstance(statement, ast.AugAssign):
        part = statement.target
    elif isinstance(statement, ast.Assign):
        part = statement.targets[0]
    while isinstance(part, ast.Subscript):
        part = part.value
    return short_text(text_of_syntax(file, part)) if file is not None and part is not None else None


def target_names(target: ast.expr) -> list[str]:
    """The names that an assignment to `target` binds; a slice of something binds none."""
    match target:
        case ast.Tuple() | ast.List():
            return [name for element in target.elts for name in target_names(element)]
        case ast.Starred():
            return target_names(target.value)
    name = dotted(target)
    return [] if name is None else [name]


def dotted(part: ast.AST) -> str | None:
    """`a` or `a.b.c` as text; None for any other expression."""
    if isinstance(part, ast.Name):
        return part.id
    if isinstance(part, ast.Attribute) and (owner := dotted(part.value)) is not None:
        return f"{owner}.{part.attr}"
    return None


def last_name(part: ast.AST) -> str:
    """`c` of `a.b.c`; empty for what is no dotted name."""
    return (dotted(part) or "").rpartition(".")[2]


def names_of_module(tree: ast.AST, module: str) -> Iterator[str]:
    """The names by which a file calls an imported module, in the order of the text."""
    for part in ast.walk(tree):
        if isinstance(part, ast.Import):
            yield from (alias.asname or alias.name for alias in part.names if alias.name == module)


def in_same_scope(root: ast.AST) -> Iterator[ast.AST]:
    """The syntax below `root`, itself included, without what stands in a function or a class of its own."""
    yield root
    for child in ast.iter_child_nodes(root):
        if not isinstance(child, (*_DEFINITIONS, ast.Lambda)):
            yield from in_same_scope(child)


def _reads(part: ast.AST) -> Iterator[str]:
    name = dotted(part)
    if name is not None:
        if isinstance(part.ctx, ast.Load):  # type: ignore[attr-defined]
            yield name
        return
    own = _own_names(part) if isinstance(part, _SCOPES) else frozenset()
    if isinstance(part, ast.AugAssign):
        yield from target_names(part.target)
    for child in ast.iter_child_nodes(part):
        yield from (name for name in _reads(child) if name.split(".")[0] not in own)


def _own_names(scope: ast.AST) -> frozenset[str]:
    """The parameters of a lambda and the loop names of a comprehension: they are not read from around it."""
    if isinstance(scope, ast.Lambda):
        return frozenset(arg.arg for arg in ast.walk(scope.args) if isinstance(arg, ast.arg))
    generators: list[ast.comprehension] = getattr(scope, "generators", [])
    return frozenset(name for generator in generators for name in target_names(generator.target))


def _argument(span: Span, position: int | None, keyword: str | None) -> ast.expr | None:
    call = call_at(span)
    if call is None:
        return None
    named = next((given.value for given in call.keywords if keyword is not None and given.arg == keyword), None)
    if named is not None or position is None or position >= len(call.args):
        return named
    # After `*values` nobody can tell by the text which argument is which.
    spelled = not any(isinstance(argument, ast.Starred) for argument in call.args[: position + 1])
    return call.args[position] if spelled else None


def _covers(file: SourceFile, part: ast.expr, span: Span) -> bool:
    whole = span_of_syntax(file, part, span.file)
    if span.column is None:
        return (whole.end_line or whole.line) >= span.line >= whole.line
    start, end = (span.line, span.column), (span.end_line or 0, span.end_column or 0)
    return (whole.line, whole.column or 0) <= start and end <= (whole.end_line or 0, whole.end_column or 0)

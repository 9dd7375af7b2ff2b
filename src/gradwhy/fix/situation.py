"""What a fix is computed from: a finding, the question behind it, and the source as it stands."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from gradwhy.flow import Applicability, Asked, Edit, Finding, FlowGraph, Op, Passage, Question, Scope, Span, Text
from gradwhy.source.edits import EditError, Editor, Spot
from gradwhy.source.files import SourceFile, read
from gradwhy.source.locate import path_to

Block = list[ast.stmt]


class NoFixError(Exception):
    """There is no change that is sure to be right; the message says why, for tests and for the curious."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A change that would mend a finding."""

    title: Text
    applicability: Applicability
    edits: tuple[Edit, ...]


@dataclass(frozen=True)
class Situation:
    """A finding with its question; `content` gives a file's bytes as the program read them."""

    finding: Finding
    question: Question
    content: Callable[[str], bytes | None]

    @property
    def graph(self) -> FlowGraph:
        return self.finding.graph if self.finding.graph is not None else FlowGraph()

    @cached_property
    def asked(self) -> tuple[Asked, ...]:
        """The sources of the question that the finding is about."""
        return tuple(a for a in self.question.asked if a.source in self.finding.sources)

    @cached_property
    def recording(self) -> Scope | None:
        return next((scope for scope in self.graph.scopes if scope.id == self.question.recording), None)

    def parsed(self, span: Span | None) -> Parsed:
        """The file that a span stands in. NoFixError where it cannot be read, or not be changed."""
        if span is None:
            raise NoFixError("no place in the source")
        file, content = read(span.file), self.content(span.file)
        if file is None or file.tree is None or content is None:
            raise NoFixError(f"{span.file} cannot be read")
        return Parsed(span.file, file, file.tree, content)

    def ops_between(self) -> list[Op]:
        """The ops through which the sources' values reach the target, however they ran."""
        makers: dict[int, list[Op]] = {}
        readers: dict[int, list[Op]] = {}
        for op in self.graph.ops:
            # A second derivative is asked of what an earlier question answered.
            if op.is_boundary and set(op.outputs).isdisjoint(self.question.targets):
                continue
            for made in op.outputs:
                makers.setdefault(made, []).append(op)
            for edge in op.inputs:
                if edge.passage is not Passage.NOTHING:
                    readers.setdefault(edge.value, []).append(op)
        sources = [a.value for a in self.asked if a.value is not None]
        below = _closure(sources, lambda value: [(op, op.outputs) for op in readers.get(value, [])])
        above = _closure(
            self.question.targets,
            lambda value: [
                (op, tuple(e.value for e in op.inputs if e.passage is not Passage.NOTHING))
                for op in makers.get(value, [])
            ],
        )
        return [op for op in self.graph.ops if op.id in below and op.id in above]


@dataclass(frozen=True)
class Parsed:
    """One file, read for a change. `shown` is its name in the report."""

    shown: str
    file: SourceFile
    tree: ast.Module
    content: bytes

    def editor(self) -> Editor:
        return Editor(self.content)

    def spot(self, statement: ast.AST) -> Spot:
        """Where a statement starts, as an editor counts."""
        line, offset = statement.lineno, statement.col_offset  # type: ignore[attr-defined]
        return line, self.file.column(line, offset) - 1

    def end(self, part: ast.AST) -> Spot:
        line, offset = part.end_lineno, part.end_col_offset  # type: ignore[attr-defined]
        return line, self.file.column(line, offset) - 1

    def replace(self, editor: Editor, part: ast.expr, code: str) -> None:
        editor.replace(self.spot(part), self.end(part), code)

    def text(self, part: ast.expr) -> str:
        """The source text of an expression, without parentheses around it."""
        found = ast.get_source_segment(self.file.text, part)
        if found is None:
            raise NoFixError("no text")
        return found

    def around(self, span: Span) -> tuple[ast.AST, ...]:
        return path_to(span)

    def way_to(self, wanted: ast.AST) -> list[ast.AST]:
        """The syntax from the module down to a part of it."""
        way = _way(self.tree, wanted)
        if way is None:
            raise NoFixError("not in this file")
        return way


def blocks_of(part: ast.AST) -> Iterator[Block]:
    """The blocks of statements that a piece of syntax holds directly."""
    for name in ("body", "orelse", "finalbody"):
        held = getattr(part, name, None)
        if isinstance(held, list) and held and isinstance(held[0], ast.stmt):
            yield held
    for handler in getattr(part, "handlers", ()):
        yield handler.body
    for case in getattr(part, "cases", ()):
        yield case.body


def block_holding(way: list[ast.AST], statement: ast.stmt) -> Block:
    """The block that a statement stands in."""
    position = next(i for i, part in enumerate(way) if part is statement)
    for part in reversed(way[:position]):
        for block in blocks_of(part):
            if any(held is statement for held in block):
                return block
    raise NoFixError("in no block")


def function_of(way: list[ast.AST]) -> ast.AST:
    """The innermost function, or the module, that the end of a way stands in."""
    kinds = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
    return [part for part in way[:-1] if isinstance(part, kinds)][-1]


def with_at(parsed: Parsed, span: Span) -> ast.With:
    """The `with` statement whose header stands at the span, written over several lines."""
    for part in reversed(parsed.around(span)):
        if isinstance(part, ast.With):
            if part.body[0].lineno == part.lineno:
                raise NoFixError("the block is written on one line")
            return part
    raise NoFixError("no `with` block")


Wanted = Callable[[ast.Call], bool]


def call_at(situation: Situation, span: Span | None, wanted: Wanted | None = None) -> tuple[Parsed, ast.Call]:
    """The call that stands at a span, or the only `wanted` one on its line where the span has no columns."""
    parsed = situation.parsed(span)
    assert span is not None
    for part in reversed(parsed.around(span)):
        if isinstance(part, ast.Call):
            return parsed, part
        if isinstance(part, ast.stmt):
            calls = [held for held in ast.walk(part) if isinstance(held, ast.Call) and held.lineno == span.line]
            chosen = [call for call in calls if wanted is not None and wanted(call)]
            if span.column is None and len(chosen) == 1:
                return parsed, chosen[0]
            break
    raise NoFixError(f"no call at line {span.line}")


def call_at_place(situation: Situation, wanted: Wanted | None = None) -> tuple[Parsed, ast.Call]:
    """The call at the cut."""
    return call_at(situation, situation.finding.place, wanted)


def definition(situation: Situation) -> tuple[Parsed, ast.Call]:
    """The call that makes the one source."""
    if len(situation.asked) != 1 or situation.asked[0].definition is None:
        raise NoFixError("not made at one place")
    return call_at(situation, situation.asked[0].definition)


def asking_call(situation: Situation) -> tuple[Parsed, ast.Call]:
    """The call that asks for the gradient."""
    return call_at(situation, situation.question.span)


def proposed(title: Text, applicability: Applicability, editor: Editor, parsed: Parsed) -> Proposal:
    """The changes made in an editor as a proposal."""
    try:
        edits = editor.edits(parsed.shown)
    except EditError as wrong:
        raise NoFixError(str(wrong)) from None
    if not edits:
        raise NoFixError("nothing changes")
    return Proposal(title, applicability, edits)


def _closure(start: list[int] | tuple[int, ...], step: Callable[[int], list[tuple[Op, tuple[int, ...]]]]) -> set[int]:
    """The ids of the ops that are met on the way from some values on."""
    ops: set[int] = set()
    seen: set[int] = set()
    todo = list(start)
    while todo:
        value = todo.pop()
        if value in seen:
            continue
        seen.add(value)
        for op, further in step(value):
            ops.add(op.id)
            todo.extend(further)
    return ops


def _way(root: ast.AST, wanted: ast.AST) -> list[ast.AST] | None:
    if root is wanted:
        return [root]
    for child in ast.iter_child_nodes(root):
        found = _way(child, wanted)
        if found is not None:
            return [root, *found]
    return None

"""Changes to one file that leave every byte outside them as it was."""

from __future__ import annotations

import ast
import codecs
import difflib
from collections.abc import Iterable, Sequence
from typing import TypeVar

import libcst as cst
from libcst.metadata import MetadataWrapper, ParentNodeProvider, PositionProvider

from gradwhy.flow import Edit, Span

Spot = tuple[int, int]
"""Where a statement or an expression starts: its line from 1, its column in characters from 0."""

_Line = cst.SimpleStatementLine | cst.BaseCompoundStatement
_Node = TypeVar("_Node", bound=cst.BaseStatement)
# Where an expression stands alone, whatever it is.
_ALONE = (cst.Arg, cst.Return, cst.Assign, cst.AnnAssign, cst.AugAssign, cst.Expr, cst.Element, cst.Index, cst.ListComp)


class EditError(ValueError):
    """A change that cannot be made here; nothing has been changed."""


class Editor:
    """One file's content and the changes to it. `content` is the file as it stands on the disk, of any encoding and line ends.

    Statements are named by where they start. EditError where the file is not Python, or does not survive being read and written.
    """

    def __init__(self, content: bytes) -> None:
        self._bom = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
        self._content = content
        bare = content[len(self._bom) :]
        try:
            self._module = cst.parse_module(bare)
        except (cst.ParserSyntaxError, SyntaxError, UnicodeDecodeError, LookupError, RecursionError) as wrong:
            raise EditError(f"not readable: {wrong}") from None
        if self._module.bytes != bare or b"\r" in bare.replace(b"\r\n", b""):
            raise EditError("the text does not survive being read and written")
        wrapper = MetadataWrapper(self._module, unsafe_skip_copy=True)
        positions = wrapper.resolve(PositionProvider)
        self._parents = wrapper.resolve(ParentNodeProvider)
        self._lines: dict[Spot, _Line] = {}
        self._expressions: dict[tuple[Spot, Spot], cst.BaseExpression] = {}
        for node, place in positions.items():
            start, end = (place.start.line, place.start.column), (place.end.line, place.end.column)
            if isinstance(node, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
                self._lines.setdefault(start, node)
            elif isinstance(node, cst.BaseExpression):
                self._expressions.setdefault((start, end), node)
        self._removed: dict[int, _Line] = {}
        self._before: dict[int, list[_Line]] = {}
        self._after: dict[int, list[_Line]] = {}
        self._replaced: dict[int, cst.CSTNode] = {}
        self._decorators: set[int] = set()

    def move(self, statements: Sequence[Spot], *, before: Spot | None = None, after: Spot | None = None) -> None:
        """Put the statements, in the order given, before or after another one. The comments right above them go along."""
        moved = [self._line(spot) for spot in statements]
        for line in moved:
            self._removed[id(line)] = line
        self._insert([_with_own_comments(line) for line in moved], before, after)

    def insert(self, code: str, *, before: Spot | None = None, after: Spot | None = None) -> None:
        """Put new statements before or after the one that starts there."""
        config = self._module.config_for_parsing
        parsed = cst.parse_module(code, config=config).body
        self._insert([line for line in parsed if isinstance(line, _Line)], before, after)

    def delete(self, statement: Spot) -> None:
        """Take the statement out, with the comments right above it."""
        line = self._line(statement)
        self._removed[id(line)] = line

    def rewrite(self, statement: Spot, code: str) -> None:
        """Write one simple statement in the place of another; what stands above and beside it stays."""
        line = self._line(statement)
        made = cst.parse_module(code, config=self._module.config_for_parsing).body
        if not isinstance(line, cst.SimpleStatementLine) or len(made) != 1:
            raise EditError(f"not one simple statement at line {statement[0]}")
        kept = {"leading_lines": line.leading_lines, "trailing_whitespace": line.trailing_whitespace}
        self._replaced[id(line)] = made[0].with_changes(**kept)

    def drop_decorator(self, definition: Spot, number: int) -> None:
        """Take one decorator of a function or a class away, counted from 0."""
        line = self._line(definition)
        if not isinstance(line, (cst.FunctionDef, cst.ClassDef)) or number >= len(line.decorators):
            raise EditError(f"no decorator at line {definition[0]}")
        self._decorators.add(id(line.decorators[number]))

    def replace(self, start: Spot, end: Spot, code: str) -> None:
        """Write `code` for the expression that stands from `start` up to `end`, in parentheses where it needs them."""
        node = self._expressions.get((start, end))
        if node is None:
            raise EditError(f"no expression at line {start[0]}, column {start[1] + 1}")
        made = cst.parse_expression(code, config=self._module.config_for_parsing)
        stands_alone = isinstance(self._parents.get(node), _ALONE)
        self._replaced[id(node)] = made if stands_alone and not node.lpar else _in_place_of(node, made)

    def content(self) -> bytes:
        """The file with the changes made. EditError where it would not be Python any more."""
        made = self._module.visit(_Surgery(self._removed, self._before, self._after, self._replaced, self._decorators))
        assert isinstance(made, cst.Module)
        changed = self._bom + made.bytes
        try:
            ast.parse(changed)
        except (SyntaxError, ValueError) as wrong:
            raise EditError(f"the changed text is not Python: {wrong}") from None
        return changed

    @property
    def encoding(self) -> str:
        return self._module.encoding

    def edits(self, file: str) -> tuple[Edit, ...]:
        """The changes as whole lines of `file` to replace."""
        encoding = self._module.encoding
        start = len(self._bom)
        return line_edits(self._content[start:].decode(encoding), self.content()[start:].decode(encoding), file)

    def _line(self, spot: Spot) -> _Line:
        line = self._lines.get(spot)
        if line is None:
            raise EditError(f"no statement of its own at line {spot[0]}")
        if isinstance(line, cst.SimpleStatementLine) and len(line.body) > 1:
            raise EditError(f"several statements share line {spot[0]}")
        return line

    def _insert(self, lines: Sequence[_Line], before: Spot | None, after: Spot | None) -> None:
        spot = before or after
        assert spot is not None
        anchor = self._line(spot)
        if before is not None:
            self._before.setdefault(id(anchor), []).extend(lines)
        else:
            self._after.setdefault(id(anchor), []).extend(lines)


class _Surgery(cst.CSTTransformer):
    """Makes the changes, by the identity of the nodes that they touch."""

    def __init__(
        self,
        removed: dict[int, _Line],
        before: dict[int, list[_Line]],
        after: dict[int, list[_Line]],
        replaced: dict[int, cst.CSTNode],
        decorators: set[int],
    ) -> None:
        super().__init__()
        self._removed, self._before, self._after = removed, before, after
        self._replaced, self._decorators = replaced, decorators

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> cst.CSTNode:  # type: ignore[override]
        if id(original_node) in self._replaced:
            return self._replaced[id(original_node)]
        made = super().on_leave(original_node, updated_node)
        assert isinstance(made, cst.CSTNode)
        return made

    def leave_Module(self, original_node: cst.Module, updated_node: cst.Module) -> cst.Module:
        body, left = self._body(original_node.body, updated_node.body)
        return updated_node.with_changes(body=body, footer=[*left, *updated_node.footer])

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        body, left = self._body(original_node.body, updated_node.body)
        if not body:
            body = [cst.SimpleStatementLine([cst.Pass()])]
        return updated_node.with_changes(body=body, footer=[*left, *updated_node.footer])

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        kept = self._kept(original_node.decorators, updated_node.decorators)
        return updated_node if kept is None else updated_node.with_changes(decorators=kept)

    def leave_ClassDef(self, original_node: cst.ClassDef, updated_node: cst.ClassDef) -> cst.ClassDef:
        kept = self._kept(original_node.decorators, updated_node.decorators)
        return updated_node if kept is None else updated_node.with_changes(decorators=kept)

    def _kept(self, original: Sequence[cst.Decorator], updated: Sequence[cst.Decorator]) -> list[cst.Decorator] | None:
        if not any(id(decorator) in self._decorators for decorator in original):
            return None
        return [new for old, new in zip(original, updated, strict=True) if id(old) not in self._decorators]

    def _body(
        self, original: Sequence[cst.BaseStatement], updated: Sequence[cst.BaseStatement]
    ) -> tuple[list[cst.BaseStatement], list[cst.EmptyLine]]:
        """The statements of a block after the changes, and the empty lines and comments that none of them took over."""
        made: list[cst.BaseStatement] = []
        left: list[cst.EmptyLine] = []
        for old, new in zip(original, updated, strict=True):
            made += self._before.get(id(old), [])
            if id(old) in self._removed:
                left = _joined(left, _split(_leading(new))[0])
            else:
                made.append(_led_by(new, _joined(left, _leading(new))) if left else new)
                left = []
            made += self._after.get(id(old), [])
        return made, left


def line_edits(before: str, after: str, file: str) -> tuple[Edit, ...]:
    """What changes one text into the other, as whole lines to replace."""
    old, new = lines_of(before), lines_of(after)
    found: list[Edit] = []
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for kind, start, end, new_start, new_end in matcher.get_opcodes():
        if kind != "equal":
            found.append(Edit(file, _lines_span(old, start, end, file), "".join(new[new_start:new_end])))
    return tuple(found)


def lines_of(text: str) -> list[str]:
    """The lines with their ends; only a line feed ends one, as for Python and Git."""
    parts = text.split("\n")
    lines = [part + "\n" for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines


def apply_edits(content: bytes, edits: Iterable[Edit], encoding: str = "utf-8") -> bytes:
    """The content with whole-line edits made; they must not overlap, and their order does not matter."""
    bom = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
    lines = lines_of(content[len(bom) :].decode(encoding))
    for edit in sorted(edits, key=lambda e: (e.span.line, e.span.end_line or 0), reverse=True):
        start, end = line_range(edit)
        lines[start - 1 : end - 1] = [edit.text]
    return bom + "".join(lines).encode(encoding)


def line_range(edit: Edit) -> tuple[int, int]:
    """The first line that an edit replaces, and the one after its last; equal for what only inserts."""
    span = edit.span
    end = span.end_line or span.line
    # An edit of the last line of a text without a final line feed ends behind its last character.
    return span.line, end if (span.end_column or 1) == 1 else end + 1


def _lines_span(lines: list[str], start: int, end: int, file: str) -> Span:
    if end == len(lines) and end > start and not lines[-1].endswith("\n"):
        return Span(file, start + 1, 1, end, len(lines[-1]) + 1)
    return Span(file, start + 1, 1, end + 1, 1)


def _leading(line: cst.BaseStatement) -> list[cst.EmptyLine]:
    return list(getattr(line, "leading_lines", ()))


def _split(lines: Sequence[cst.EmptyLine]) -> tuple[list[cst.EmptyLine], list[cst.EmptyLine]]:
    """What stands above a statement: up to the last blank line, and the comments right above it."""
    position = len(lines)
    while position and lines[position - 1].comment is not None:
        position -= 1
    return list(lines[:position]), list(lines[position:])


def _joined(above: list[cst.EmptyLine], below: list[cst.EmptyLine]) -> list[cst.EmptyLine]:
    """Empty lines that come to stand together: as many blank ones in the middle as the longer side had."""
    trailing = len(above) - len(_without_blank_end(above))
    leading = next((i for i, line in enumerate(below) if line.comment is not None), len(below))
    return [*above, *below[min(trailing, leading) :]]


def _without_blank_end(lines: list[cst.EmptyLine]) -> list[cst.EmptyLine]:
    kept = list(lines)
    while kept and kept[-1].comment is None:
        kept.pop()
    return kept


def _with_own_comments(line: _Line) -> _Line:
    return _led_by(line, _split(_leading(line))[1])


def _led_by(line: _Node, lines: Sequence[cst.EmptyLine]) -> _Node:
    return line.with_changes(leading_lines=list(lines))


def _in_place_of(old: cst.BaseExpression, new: cst.BaseExpression) -> cst.BaseExpression:
    """The new expression with the parentheses of the old one, and some of its own where it would bind more loosely."""
    if old.lpar:
        return new.with_changes(lpar=old.lpar, rpar=old.rpar)
    loose = (cst.BinaryOperation, cst.BooleanOperation, cst.UnaryOperation, cst.Comparison, cst.IfExp, cst.Lambda)
    if isinstance(new, (*loose, cst.Await, cst.Yield, cst.NamedExpr)) and not new.lpar:
        return new.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return new

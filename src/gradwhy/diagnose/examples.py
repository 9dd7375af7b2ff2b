"""A short worked example, in the user's own names, where the right change needs understanding of the model.

It is advice: the target changes, and nobody applies it. Nothing is shown where the text at the cut is of no known form.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from gradwhy.flow import Span
from gradwhy.source.files import SourceFile, read
from gradwhy.source.locate import call_at, callee_name, expression_at, path_to, text_of
from gradwhy.source.statements import dotted, names_of_module

_MOST_COLUMNS = 110

_ROUNDING = frozenset({"round", "rint", "floor", "ceil", "sign", "trunc", "fix"})
_ARGMAX = frozenset({"argmax"})
_COMPARING = {"greater": True, "greater_equal": True, "less": False, "less_equal": False}
_COMPARING |= {"gt": True, "ge": True, "lt": False, "le": False}
_EQUALS = frozenset({"equal", "eq"})
_CASTING = frozenset({"cast", "to", "float", "astype", "double", "type", "convert_to_tensor", "asarray", "array"})
_HISTOGRAMS = frozenset({"histogram_fixed_width", "histc", "histogram"})
_LOSS_OF_METRIC = {
    "sparse_categorical_accuracy": "sparse_categorical_crossentropy",
    "categorical_accuracy": "categorical_crossentropy",
    "binary_accuracy": "binary_crossentropy",
}
_WIDTH = "0.1"


@dataclass(frozen=True, slots=True)
class _Names:
    """How a framework spells what the examples use; `{0}` and `{1}` are arguments."""

    root: str
    alias: str
    sigmoid: str
    stop: str
    softmax: str
    cross_entropy: str
    axis: str
    linspace: str
    exp: str
    sum: str
    flat: str


_NAMES = {
    "tensorflow": _Names(
        root="tensorflow",
        alias="tf",
        sigmoid="{m}.sigmoid({0})",
        stop="{m}.stop_gradient({0})",
        softmax="{m}.nn.softmax({0})",
        cross_entropy="{m}.reduce_mean({m}.nn.sparse_softmax_cross_entropy_with_logits(labels={1}, logits={0}))",
        axis="axis",
        linspace="{m}.linspace({0}, {1}, {2})",
        exp="{m}.exp({0})",
        sum="{m}.reduce_sum({0}, axis=0)",
        flat="{m}.reshape({0}, [-1, 1])",
    ),
    "torch": _Names(
        root="torch",
        alias="torch",
        sigmoid="{m}.sigmoid({0})",
        stop="({0}).detach()",
        softmax="{m}.softmax({0})",
        cross_entropy="{m}.nn.functional.cross_entropy({0}, {1})",
        axis="dim",
        linspace="{m}.linspace({0}, {1}, {2})",
        exp="{m}.exp({0})",
        sum="{m}.sum({0}, dim=0)",
        flat="{0}.reshape(-1, 1)",
    ),
    "jax": _Names(
        root="jax",
        alias="jax",
        sigmoid="{m}.nn.sigmoid({0})",
        stop="{m}.lax.stop_gradient({0})",
        softmax="{m}.nn.softmax({0})",
        cross_entropy="-{m}.numpy.take_along_axis({m}.nn.log_softmax({0}), {1}[:, None], axis=1).mean()",
        axis="axis",
        linspace="{m}.numpy.linspace({0}, {1}, {2})",
        exp="{m}.numpy.exp({0})",
        sum="{m}.numpy.sum({0}, axis=0)",
        flat="{0}.reshape(-1, 1)",
    ),
}


def worked_example(place: Span | None, framework: str) -> str:
    """Lines of code that would let the gradient pass at `place`, `""` where none is sure to fit."""
    file = read(place.file) if place is not None else None
    if place is None or file is None or file.tree is None or framework not in _NAMES:
        return ""
    at = call_at(place) or expression_at(place)
    if at is None:
        return ""
    drawing = _Drawing(file, path_to(place), _NAMES[framework])
    for form in (_cross_entropy, _loss_of_metric, _soft_step, _straight_through, _weights, _soft_histogram):
        code = form(drawing, at)
        if code:
            return code if all(len(line) <= _MOST_COLUMNS for line in code.splitlines()) else ""
    return ""


@dataclass(frozen=True)
class _Drawing:
    file: SourceFile
    path: tuple[ast.AST, ...]
    names: _Names

    def text(self, part: ast.AST) -> str:
        """The source text of a part, in one line."""
        return " ".join(text_of(self.file, part).split())

    def operand(self, part: ast.expr) -> str:
        """The text of a part where it stands beside an operator."""
        is_plain = isinstance(part, (ast.Name, ast.Constant, ast.Attribute, ast.Call, ast.Subscript))
        # A product binds closer than what an example writes beside it.
        is_plain |= isinstance(part, ast.BinOp) and isinstance(part.op, (ast.Mult, ast.MatMult, ast.Pow))
        return self.text(part) if is_plain else f"({self.text(part)})"

    def say(self, template: str, *arguments: str) -> str:
        return template.format(*arguments, m=self._module)

    @property
    def _module(self) -> str:
        tree = self.file.tree
        assert tree is not None
        return next(names_of_module(tree, self.names.root), self.names.alias)

    def around(self, part: ast.AST) -> list[ast.AST]:
        """What holds a part, the nearest first."""
        before = [held for held in self.path if held is not part]
        return [held for held in reversed(before) if any(inner is part for inner in ast.walk(held))]

    def in_its_statement(self, part: ast.expr, code: str) -> str:
        """The statement with `code` in the place of the part; the code alone in a compound or a long statement."""
        statement = next((held for held in self.around(part) if isinstance(held, ast.stmt)), None)
        if not isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Return)) or statement.value is None:
            return code
        whole = statement.value
        if whole is part:
            filled = code
        else:
            old, inner = self.text(whole), self.text(part)
            if old.count(inner) != 1:
                return code
            filled = old.replace(inner, code if self._stands_alone(part) else f"({code})")
        if isinstance(statement, ast.Return):
            return f"return {filled}"
        if isinstance(statement, ast.AnnAssign):
            return f"{self.text(statement.target)} = {filled}"
        return f"{' = '.join(self.text(target) for target in statement.targets)} = {filled}"

    def _stands_alone(self, part: ast.expr) -> bool:
        """Whether what replaces the part needs no parentheses."""
        holder = next(iter(self.around(part)), None)
        return isinstance(holder, (ast.Call, ast.keyword)) and getattr(holder, "func", None) is not part


def _soft_step(drawing: _Drawing, at: ast.expr) -> str:
    """`x > t` as `sigmoid((x - t) / width)`."""
    parts = _compared(at)
    if parts is None:
        return ""
    larger, smaller = parts
    slope = f"({drawing.operand(larger)} - {drawing.operand(smaller)}) / {_WIDTH}"
    if isinstance(smaller, ast.Constant) and smaller.value == 0:
        slope = f"{drawing.operand(larger)} / {_WIDTH}"
    step = drawing.say(drawing.names.sigmoid, slope)
    holder = next(iter(drawing.around(at)), None)
    if isinstance(holder, ast.Attribute):
        holder = next((held for held in drawing.around(holder) if isinstance(held, ast.Call)), None)
    if not isinstance(holder, ast.Call):
        return drawing.in_its_statement(at, step)
    name = callee_name(holder)
    if name == "where" and len(holder.args) == 3 and holder.args[0] is at:
        chosen, other = (drawing.operand(part) for part in holder.args[1:])
        one, zero = (_is_number(part, value) for part, value in zip(holder.args[1:], (1, 0), strict=True))
        mixed = step if one and zero else f"{step} * {chosen} + (1 - {step}) * {other}"
        if mixed == step or len(step) > 40:
            return drawing.in_its_statement(holder, step) if mixed == step else _named_step(drawing, holder, step)
        return drawing.in_its_statement(holder, mixed)
    return drawing.in_its_statement(holder if name in _CASTING else at, step)


def _named_step(drawing: _Drawing, where: ast.Call, step: str) -> str:
    chosen, other = (drawing.operand(part) for part in where.args[1:])
    return f"step = {step}\n" + drawing.in_its_statement(where, f"step * {chosen} + (1 - step) * {other}")


def _straight_through(drawing: _Drawing, at: ast.expr) -> str:
    """`round(x)` as `x + stop(round(x) - x)`."""
    if not isinstance(at, ast.Call) or callee_name(at) not in _ROUNDING or at.keywords:
        return ""
    given = _only_argument(at)
    if given is None or not isinstance(given, (ast.Name, ast.Attribute, ast.Subscript, ast.BinOp, ast.Call)):
        return ""
    x = drawing.operand(given)
    code = f"{x} + {drawing.say(drawing.names.stop, f'{drawing.text(at)} - {x}')}"
    if isinstance(given, (ast.BinOp, ast.Call)):
        named = drawing.text(at).replace(drawing.text(given), "x")
        code = f"x + {drawing.say(drawing.names.stop, f'{named} - x')}"
        return f"x = {drawing.text(given)}\n{drawing.in_its_statement(at, code)}"
    return drawing.in_its_statement(at, code)


def _weights(drawing: _Drawing, at: ast.expr) -> str:
    """`argmax(scores)` as the weights of a softmax."""
    if not isinstance(at, ast.Call) or callee_name(at) not in _ARGMAX:
        return ""
    found = _scores(at)
    if found is None:
        return ""
    scores, axis = found
    chosen = drawing.text(axis) if axis is not None else "-1"
    softmax = drawing.say(drawing.names.softmax, f"{drawing.text(scores)}, {drawing.names.axis}={chosen}")
    return f"weights = {softmax}  # one weight for each choice, instead of the choice"


def _cross_entropy(drawing: _Drawing, at: ast.expr) -> str:
    """The share of right choices, as the cross entropy beside it."""
    holders = [at, *drawing.around(at)]
    comparison = next((part for part in holders if isinstance(part, ast.expr) and _is_equality(part)), None)
    if comparison is None:
        return ""
    sides = [_uncast(side) for side in _sides(comparison)]
    choices = [s for s in sides if isinstance(s, ast.Call) and callee_name(s) in _ARGMAX]
    labels = [s for s in sides if s not in choices]
    if len(choices) != 1 or len(labels) != 1:
        return ""
    found = _scores(choices[0])
    if found is None:
        return ""
    logits = drawing.text(found[0])
    loss = drawing.say(drawing.names.cross_entropy, logits, drawing.operand(labels[0]))
    return f"# `{logits}` before any softmax\nloss = {loss}"


def _loss_of_metric(drawing: _Drawing, at: ast.expr) -> str:
    for part in (at, *drawing.around(at)):
        if isinstance(part, ast.Call) and callee_name(part) in _LOSS_OF_METRIC and len(part.args) == 2:
            called = dotted(part.func) or ""
            module = called.rpartition(".")[0].replace("metrics", "losses")
            if not module.endswith("losses"):
                return ""
            given = ", ".join(drawing.text(argument) for argument in part.args)
            return f"loss = {module}.{_LOSS_OF_METRIC[callee_name(part)]}({given})"
    return ""


def _soft_histogram(drawing: _Drawing, at: ast.expr) -> str:
    """Counts in bins as sums of bumps around their centers."""
    if not isinstance(at, ast.Call) or callee_name(at) not in _HISTOGRAMS:
        return ""
    given = _histogram_arguments(at, drawing)
    if given is None:
        return ""
    values, low, high, bins = given
    names = drawing.names
    say = drawing.say
    bump = say(names.exp, "-(((x - centers) / width) ** 2)")
    return "\n".join(
        (
            f"centers = {say(names.linspace, low, high, bins)}",
            "width = centers[1] - centers[0]",
            f"x = {say(names.flat, values)}",
            drawing.in_its_statement(at, say(names.sum, bump)),
        )
    )


def _histogram_arguments(call: ast.Call, drawing: _Drawing) -> tuple[str, str, str, str] | None:
    """The values, the lowest and the highest, and the number of bins."""
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    values = call.args[0] if call.args else None
    bins = named.get("nbins", named.get("bins"))
    bounds = call.args[1] if callee_name(call) == "histogram_fixed_width" and len(call.args) > 1 else None
    bounds = bounds or named.get("value_range") or named.get("range")
    low, high = named.get("min"), named.get("max")
    if isinstance(bounds, (ast.List, ast.Tuple)) and len(bounds.elts) == 2:
        low, high = bounds.elts
    if values is None or low is None or high is None or bins is None:
        return None
    return drawing.operand(values), drawing.text(low), drawing.text(high), drawing.text(bins)


def _compared(at: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """The two sides of a comparison, the one that is to be larger first."""
    if isinstance(at, ast.Compare) and len(at.ops) == 1:
        left, right = at.left, at.comparators[0]
        if isinstance(at.ops[0], (ast.Gt, ast.GtE)):
            return left, right
        if isinstance(at.ops[0], (ast.Lt, ast.LtE)):
            return right, left
    if isinstance(at, ast.Call) and callee_name(at) in _COMPARING and len(at.args) == 2 and not at.keywords:
        left, right = at.args
        return (left, right) if _COMPARING[callee_name(at)] else (right, left)
    return None


def _is_equality(part: ast.expr) -> bool:
    if isinstance(part, ast.Compare):
        return len(part.ops) == 1 and isinstance(part.ops[0], ast.Eq)
    return isinstance(part, ast.Call) and callee_name(part) in _EQUALS and len(_sides(part)) == 2


def _sides(part: ast.expr) -> list[ast.expr]:
    if isinstance(part, ast.Compare):
        return [part.left, *part.comparators]
    assert isinstance(part, ast.Call)
    is_method = isinstance(part.func, ast.Attribute) and len(part.args) == 1
    return [part.func.value, *part.args] if is_method and isinstance(part.func, ast.Attribute) else list(part.args)


def _uncast(part: ast.expr) -> ast.expr:
    """What a cast was given."""
    while isinstance(part, ast.Call) and callee_name(part) in _CASTING | {"squeeze", "reshape"}:
        is_function = isinstance(part.func, ast.Attribute) and _is_module(part.func.value)
        inner = part.args[0] if is_function and part.args else getattr(part.func, "value", None)
        if inner is None:
            break
        part = inner
    return part


def _scores(call: ast.Call) -> tuple[ast.expr, ast.expr | None] | None:
    """What an `argmax` was taken of, and along which axis."""
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    axis = named.get("axis", named.get("dim"))
    rest = list(call.args)
    if isinstance(call.func, ast.Attribute) and not _is_module(call.func.value):
        return call.func.value, axis or (rest[0] if rest else None)
    if not rest:
        return None
    return rest[0], axis or (rest[1] if len(rest) > 1 else None)


def _only_argument(call: ast.Call) -> ast.expr | None:
    if isinstance(call.func, ast.Attribute) and not _is_module(call.func.value):
        return call.func.value if not call.args else None
    return call.args[0] if len(call.args) == 1 else None


def _is_module(part: ast.expr) -> bool:
    """Whether a dotted name is that of a framework's module, as programs spell them."""
    root = (dotted(part) or "").partition(".")[0]
    return root in {"tf", "tensorflow", "keras", "torch", "jnp", "jax", "np", "numpy", "K", "F", "ops", "math", "lax"}


def _is_number(part: ast.expr, value: int) -> bool:
    """Whether a part is the number, or a tensor full of it."""
    if isinstance(part, ast.Call):
        return callee_name(part) == {1: "ones_like", 0: "zeros_like"}[value]
    return isinstance(part, ast.Constant) and part.value == value

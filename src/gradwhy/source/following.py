"""How an expression passes a question's answer on: it keeps it, tests it, reads it or uses it."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from gradwhy.source.carried import (
    CHECKED,
    RAW,
    Carriers,
    Row,
    Rows,
    Shape,
    bind,
    check,
    element_of,
    field_of,
    holds,
    joined,
)
from gradwhy.source.locate import callee_name

_LOGGING = frozenset(
    "print pprint log debug info warning error exception critical write scalar histogram add_scalar add_scalars add_histogram "
    "display echo secho plot imshow hist set_postfix set_description save savez savetxt dump dumps".split()
)
_READING = frozenset(
    "float int str repr bool complex format round len norm global_norm reduce_sum reduce_mean reduce_max reduce_min reduce_any "
    "reduce_all reduce_std mean sum max min amax amin std var any all isfinite isnan isinf is_finite is_nan is_inf numpy item "
    "tolist check_numerics assert_all_finite count_nonzero allclose array_equal get_shape size numel dim shape dtype name device "
    "is_sparse".split()
)
_NEUTRAL = frozenset({"len", "isinstance", "type", "id", "is_tensor", "hasattr", "callable", "keys", "range"})
_APPLYING = frozenset(
    "apply_gradients apply assign assign_add assign_sub append extend add add_ sub_ copy_ update step setdefault insert put".split()
)
_SAME_ORDER = frozenset(
    {"list", "tuple", "iter", "reversed", "sorted", "set", "copy", "flatten", "tree_leaves", "values"}
)
_MAPPING = frozenset({"map", "map_structure", "tree_map"})
# A call on one of these makes a tensor of a tensor; any other function that is given a checked gradient does something with it.
_LIBRARIES = frozenset({"tf", "torch", "np", "numpy", "jnp", "jax", "K", "keras", "ops", "F", "tensorflow", "backend"})


class Decided(Exception):
    """The first thing done with a gradient settles the matter."""

    def __init__(self, is_dropped: bool) -> None:
        super().__init__(is_dropped)
        self.is_dropped = is_dropped


class Returned(Exception):
    """The answer leaves the function, unchecked."""

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.shape = shape


@dataclass(frozen=True, slots=True)
class Tests:
    """The gradients of which a condition, where it holds, says that they are there, or that they are missing."""

    present: list[ast.expr] = field(default_factory=list)
    missing: list[ast.expr] = field(default_factory=list)


class Follower:
    """Follows the answer of one question, which carries `shape`, through expressions."""

    def __init__(self, question: ast.expr, shape: Shape) -> None:
        self._question = question
        self._shape = shape
        self._reading = 0
        self.wholes: set[str] = set()
        """Names bound to the answer as a whole: `if grads:` asks whether that list is empty, not for a gradient."""

    def is_question(self, part: ast.expr) -> bool:
        """Whether this very expression is the question."""
        return part is self._question

    def carries(self, part: ast.expr, carriers: Carriers) -> Shape | None:
        """What the expression's value carries; raises Decided where it uses a gradient unchecked, or applies a checked one."""
        if part is self._question:
            return carriers.get(ast.unparse(part), self._shape)
        if isinstance(part, (ast.Name, ast.Attribute, ast.Subscript)):
            return self._reached(part, carriers)
        match part:
            case ast.NamedExpr():
                bind(part.target, self.carries(part.value, carriers), carriers)
                return carriers.get(part.target.id)
            case ast.Starred() | ast.Await():
                return self.carries(part.value, carriers)
            case ast.Tuple():
                fields = tuple(self.carries(element, carriers) for element in part.elts)
                return Row(fields) if any(field is not None for field in fields) else None
            case ast.List() | ast.Set():
                return _collection([self.carries(element, carriers) for element in part.elts])
            case ast.Dict():
                return joined([self.carries(value, carriers) for value in part.values])
            case ast.Call():
                return self._call(part, carriers)
            case ast.IfExp():
                return self._choice(part, carriers)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self._comprehension(part, carriers)
            case ast.BinOp():
                return self._operation(part, carriers)
        return self._other(part, carriers)

    def uses(self, part: ast.expr, carriers: Carriers) -> Shape | None:
        """What the expression carries, of something that does not bear a missing gradient."""
        shape = self.carries(part, carriers)
        if holds(shape, RAW):
            raise Decided(False)
        return shape

    def _reached(self, part: ast.Name | ast.Attribute | ast.Subscript, carriers: Carriers) -> Shape | None:
        text = ast.unparse(part)
        if text in carriers:
            return carriers[text]
        if isinstance(part, ast.Subscript):
            return field_of(self.carries(part.value, carriers), part.slice)
        if isinstance(part, ast.Attribute):
            shape = self.uses(part.value, carriers)
            return None if part.attr in _READING else shape
        return None

    def _operation(self, part: ast.BinOp, carriers: Carriers) -> Shape | None:
        left, right = self.carries(part.left, carriers), self.carries(part.right, carriers)
        if isinstance(left, Rows) or isinstance(right, Rows):
            return joined([left, right])
        if holds(left, RAW) or holds(right, RAW):
            raise Decided(False)
        if left is None and right is None:
            return None
        is_update = isinstance(part.op, (ast.Add, ast.Sub)) and (left is None or right is None)
        if is_update and not self._reading:
            # `w - rate * g`
            raise Decided(True)
        return CHECKED

    def _other(self, part: ast.expr, carriers: Carriers) -> Shape | None:
        if isinstance(part, (ast.Compare, ast.BoolOp, ast.UnaryOp)):
            tests = tests_of(part, carriers, self)
            if tests.present or tests.missing:
                return None
        if isinstance(part, ast.Lambda):
            carriers = {name: shape for name, shape in carriers.items() if name not in _parameters(part)}
        shapes = [self.uses(child, carriers) for child in ast.iter_child_nodes(part) if isinstance(child, ast.expr)]
        if isinstance(part, (ast.Yield, ast.YieldFrom)) and any(shapes):
            raise Decided(True)
        is_number = isinstance(part, ast.UnaryOp) and not isinstance(part.op, ast.Not)
        return joined(shapes) if is_number else None

    def _choice(self, part: ast.IfExp, carriers: Carriers) -> Shape | None:
        tests = tests_of(part.test, carriers, self)
        if not tests.present and not tests.missing:
            self.uses(part.test, carriers)
            return joined([self.carries(part.body, carriers), self.carries(part.orelse, carriers)])
        kept, instead = (part.body, part.orelse) if tests.present else (part.orelse, part.body)
        subjects = tests.present or tests.missing
        inside = dict(carriers)
        for subject in subjects:
            check(subject, inside)
        shape = self.carries(kept, inside)
        if shape is not None:
            return self._kept_or(shape, instead, subjects)
        read = any(ast.unparse(child) in map(ast.unparse, subjects) for child in ast.walk(kept))
        is_shown = _is_none(instead) or _is_text(instead) or ast.unparse(instead) in map(ast.unparse, subjects)
        if read and is_shown:
            # `None if g is None else float(norm(g))`: the author looks at the None.
            raise Decided(False)
        return None

    def _kept_or(self, shape: Shape, instead: ast.expr, subjects: list[ast.expr]) -> Shape:
        if _is_text(instead):
            raise Decided(False)
        stays = _is_none(instead) or ast.unparse(instead) in map(ast.unparse, subjects)
        return RAW if stays else shape

    def _comprehension(
        self, part: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, carriers: Carriers
    ) -> Shape | None:
        inside = dict(carriers)
        for generator in part.generators:
            bind(generator.target, element_of(self.carries(generator.iter, inside)), inside)
            for condition in generator.ifs:
                self._narrow(condition, inside)
        if isinstance(part, ast.DictComp):
            return self.carries(part.value, inside)
        return _collection([self.carries(part.elt, inside)])

    def _narrow(self, condition: ast.expr, carriers: Carriers) -> None:
        tests = tests_of(condition, carriers, self)
        if not tests.present and not tests.missing:
            self.uses(condition, carriers)
        for subject in tests.present:
            check(subject, carriers)
        for subject in tests.missing:
            carriers.pop(ast.unparse(subject), None)

    def _call(self, call: ast.Call, carriers: Carriers) -> Shape | None:
        name = callee_name(call)
        if name in _MAPPING | {"filter"} and call.args and isinstance(call.args[0], ast.Lambda):
            return self._mapped(call.args[0], call.args[1:], carriers, filters=name == "filter")
        owner = self.carries(call.func.value, carriers) if isinstance(call.func, ast.Attribute) else None
        reads = name in _READING or name in _LOGGING
        self._reading += reads
        try:
            arguments = [
                self.carries(argument, carriers) for argument in [*call.args, *(k.value for k in call.keywords)]
            ]
        finally:
            self._reading -= reads
        if owner is None and not any(argument is not None for argument in arguments):
            return None
        if name in _NEUTRAL:
            return None
        structure = self._structured(call, name, owner, arguments, carriers)
        return structure if structure is not None else self._passed_on(call, name, [owner, *arguments])

    def _structured(
        self, call: ast.Call, name: str, owner: Shape | None, arguments: list[Shape | None], carriers: Carriers
    ) -> Shape | None:
        """What the calls carry that put gradients into order and do nothing with them."""
        given = arguments[0] if arguments else None
        if name == "zip":
            return Rows(tuple(element_of(argument) for argument in arguments))
        if name == "enumerate":
            return Rows((None, element_of(given)))
        if name == "items" and owner is not None:
            return Rows((None, element_of(owner)))
        if name in _SAME_ORDER or (name == "get" and owner is not None):
            return owner or given
        if name == "dict" and isinstance(given, Rows):
            return joined(list(given.fields))
        if name == "clip_by_global_norm" and given is not None:
            # TensorFlow passes a None through.
            return Row((given, None))
        if name in ("append", "extend") and isinstance(call.func, ast.Attribute) and not holds(given, CHECKED):
            if given is not None:
                bind(call.func.value, Rows(given.fields) if isinstance(given, Row) else given, carriers)
            return RAW
        return None

    def _passed_on(self, call: ast.Call, name: str, shapes: list[Shape | None]) -> Shape | None:
        if any(holds(shape, RAW) for shape in shapes):
            raise Decided(False)
        if name in _READING or name in _LOGGING:
            return None
        makes_tensor = shapes[0] is not None or _root(call.func) in _LIBRARIES
        if not self._reading and (name in _APPLYING or not makes_tensor):
            raise Decided(True)
        return CHECKED

    def _mapped(self, function: ast.Lambda, over: list[ast.expr], carriers: Carriers, *, filters: bool) -> Shape | None:
        given = [self.carries(argument, carriers) for argument in over]
        inside = dict(carriers)
        for parameter, shape in zip(function.args.args, given, strict=False):
            bind(ast.Name(parameter.arg, ast.Store()), element_of(shape), inside)
        if not filters:
            return _collection([self.carries(function.body, inside)])
        self._narrow(function.body, inside)
        kept = inside.get(function.args.args[0].arg) if function.args.args else None
        return _collection([kept])


def tests_of(condition: ast.expr, carriers: Carriers, follower: Follower) -> Tests:
    """The gradients whose presence the condition settles; none where it says nothing sure of any."""
    match condition:
        case ast.UnaryOp(op=ast.Not()):
            inner = tests_of(condition.operand, carriers, follower)
            return Tests(inner.missing, inner.present)
        case ast.BoolOp(op=ast.And()):
            return Tests(
                [part for value in condition.values for part in tests_of(value, carriers, follower).present], []
            )
        case ast.BoolOp(op=ast.Or()):
            return Tests(
                [], [part for value in condition.values for part in tests_of(value, carriers, follower).missing]
            )
        case ast.Compare(left=left, ops=[operator], comparators=[ast.Constant(value=None)]):
            subject = _subject(left, carriers, follower)
            if subject is not None and isinstance(operator, (ast.Is, ast.Eq)):
                return Tests([], [subject])
            if subject is not None and isinstance(operator, (ast.IsNot, ast.NotEq)):
                return Tests([subject], [])
        case ast.Call() if callee_name(condition) in ("is_tensor", "isinstance") and condition.args:
            subject = _subject(condition.args[0], carriers, follower)
            return Tests([subject], []) if subject is not None else Tests()
        case ast.Call(args=[ast.GeneratorExp() | ast.ListComp() as every]) if callee_name(condition) in ("any", "all"):
            return _tests_of_all(condition, every, carriers, follower)
        case ast.Name() | ast.Attribute() | ast.Subscript() if ast.unparse(condition) not in follower.wholes:
            subject = _subject(condition, carriers, follower)
            return Tests([subject], []) if subject is not None else Tests()
    return Tests()


def _tests_of_all(
    call: ast.Call, every: ast.GeneratorExp | ast.ListComp, carriers: Carriers, follower: Follower
) -> Tests:
    """`any(g is None for g in grads)` and `all(g is not None for g in grads)` speak of all of `grads`."""
    whole = every.generators[0].iter
    shape = carriers.get(ast.unparse(whole))
    if shape is None or len(every.generators) != 1 or every.generators[0].ifs:
        return Tests()
    inside = dict(carriers)
    bind(every.generators[0].target, element_of(shape), inside)
    tests = tests_of(every.elt, inside, follower)
    if callee_name(call) == "any":
        return Tests([], [whole] if tests.missing else [])
    return Tests([whole] if tests.present else [], [])


def _subject(part: ast.expr, carriers: Carriers, follower: Follower) -> ast.expr | None:
    """The expression of a gradient that a test is about."""
    if isinstance(part, ast.NamedExpr):
        follower.carries(part, carriers)
        part = part.target
    if not isinstance(part, (ast.Name, ast.Attribute, ast.Subscript)) and not follower.is_question(part):
        return None
    return part if follower.carries(part, carriers) is not None else None


def _collection(shapes: list[Shape | None]) -> Shape | None:
    shape = joined(shapes)
    return Rows(shape.fields) if isinstance(shape, Row) else shape


def _parameters(function: ast.Lambda) -> set[str]:
    return {part.arg for part in ast.walk(function.args) if isinstance(part, ast.arg)}


def _root(part: ast.expr) -> str:
    while isinstance(part, ast.Attribute):
        part = part.value
    return part.id if isinstance(part, ast.Name) else ""


def _is_none(part: ast.expr) -> bool:
    return isinstance(part, ast.Constant) and part.value is None


def _is_text(part: ast.expr) -> bool:
    return isinstance(part, ast.JoinedStr) or (isinstance(part, ast.Constant) and isinstance(part.value, str))

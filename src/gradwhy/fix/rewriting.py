"""Fixes that rewrite one expression: a stop is dropped, a freeze lifted, a watch added."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradwhy.fix.situation import (
    NoFixError,
    Parsed,
    Proposal,
    Situation,
    asking_call,
    call_at_place,
    definition,
    function_of,
    proposed,
    with_at,
)
from gradwhy.flow import Applicability, Text
from gradwhy.source.edits import Editor
from gradwhy.source.effects import Reader
from gradwhy.source.statements import dotted, last_name, names_of_module

SAFE, UNSAFE = Applicability.SAFE, Applicability.UNSAFE

_STOPS = frozenset({"stop_gradient"})
_WRAPPERS = frozenset({"Variable", "Parameter"})
_REWRAPPING = frozenset({"constant", "convert_to_tensor"})
_TO_HOST = frozenset({"numpy", "item"})
_COPIES = frozenset({"array", "asarray", "ascontiguousarray", "float32", "float64", "convert_to_numpy"})
"""Functions that make a NumPy array, or number, of what they are given."""
NATIVE = {
    "abs": "abs", "exp": "exp", "log": "math.log", "log1p": "math.log1p", "sqrt": "sqrt", "square": "square",
    "sin": "sin", "cos": "cos", "tan": "tan", "tanh": "tanh", "maximum": "maximum", "minimum": "minimum",
    "sum": "reduce_sum", "mean": "reduce_mean", "max": "reduce_max", "min": "reduce_min", "prod": "reduce_prod",
    "var": "math.reduce_variance", "std": "math.reduce_std", "matmul": "matmul", "add": "add", "subtract": "subtract",
    "multiply": "multiply", "divide": "divide", "power": "pow", "reshape": "reshape", "transpose": "transpose",
    "stack": "stack", "concatenate": "concat", "where": "where", "einsum": "einsum", "expand_dims": "expand_dims",
    "squeeze": "squeeze", "cumsum": "cumsum",
}  # fmt: skip
"""NumPy's functions and TensorFlow's of the same meaning, called with the same arguments."""
_SAME_KEYWORDS = frozenset({"axis", "keepdims"})


def drop_stop(situation: Situation) -> Proposal:
    """`tf.stop_gradient(value)` becomes `value`."""
    parsed, call = call_at_place(situation, lambda call: last_name(call.func) in _STOPS)
    if (
        last_name(call.func) not in _STOPS
        or len(call.args) != 1
        or call.keywords
        or isinstance(call.args[0], ast.Starred)
    ):
        raise NoFixError("no stop with one argument")
    return _replaced("fixes/drop-stop", UNSAFE, parsed, call, parsed.text(call.args[0]), situation)


def unwrap(situation: Situation) -> Proposal:
    """`tf.Variable(value)` becomes `value`."""
    parsed, call = call_at_place(situation, lambda call: last_name(call.func) in _WRAPPERS)
    if last_name(call.func) not in _WRAPPERS or not call.args or isinstance(call.args[0], ast.Starred):
        raise NoFixError("nothing is wrapped")
    if any(keyword.arg not in (None, "name", "trainable") for keyword in call.keywords) or len(call.args) > 1:
        raise NoFixError("the wrapping does more")
    statement = next(part for part in reversed(parsed.way_to(call)) if isinstance(part, ast.stmt))
    names = Reader(parsed.tree).of(statement).binds
    for part in ast.walk(parsed.tree):
        if isinstance(part, ast.Attribute) and part.attr.startswith(("assign", "scatter_")):
            if set(_names(part.value)) & names:
                raise NoFixError("it is assigned to")
    return _replaced("fixes/unwrap", UNSAFE, parsed, call, parsed.text(call.args[0]), situation)


def stay_in_framework(situation: Situation) -> Proposal:
    """`value.numpy()` and `float(value)` become `value`, NumPy's function TensorFlow's of the same meaning."""
    parsed, call = call_at_place(situation, _leaves)
    tensorflow = next(names_of_module(parsed.tree, "tensorflow"), None)
    if isinstance(call.func, ast.Attribute) and call.func.attr in _TO_HOST and not call.args and not call.keywords:
        inner = parsed.text(call.func.value)
    elif isinstance(call.func, ast.Name) and call.func.id == "float" and len(call.args) == 1:
        inner = parsed.text(call.args[0])
    elif _is_copy(call):
        inner = parsed.text(call.args[0])
        if isinstance(call.args[0], (ast.List, ast.ListComp)):
            inner = f"{tensorflow or 'tf'}.stack({inner})"
    else:
        inner = _native(parsed, call, tensorflow)
    way = parsed.way_to(call)
    outer = way[-2]
    is_rewrapped = isinstance(outer, ast.Call) and last_name(outer.func) in _REWRAPPING and outer.args[:1] == [call]
    if is_rewrapped and isinstance(outer, ast.Call) and len(outer.args) == 1 and not outer.keywords:
        return _replaced("fixes/native", UNSAFE, parsed, outer, inner, situation)
    return _replaced("fixes/native", UNSAFE, parsed, call, inner, situation)


def make_float(situation: Situation) -> Proposal:
    """The whole numbers that a source is made from are written as floating-point ones."""
    if any("Gather" in cut.op for cut in situation.finding.cuts):
        raise NoFixError("it is an index")
    parsed, call = definition(situation)
    if last_name(call.func) not in {"Variable", "constant"} or not call.args:
        raise NoFixError("not made from numbers")
    numbers = list(_whole_numbers(call.args[0]))
    dtype = next((keyword.value for keyword in call.keywords if keyword.arg == "dtype"), None)
    if len(call.args) > 1 or (dtype is not None and not last_name(dtype).startswith("int")):
        raise NoFixError("not of whole numbers")
    editor = parsed.editor()
    for number in numbers:
        parsed.replace(editor, number, f"{parsed.text(number)}.0")
    if dtype is not None:
        prefix = (dotted(dtype) or "").rpartition(".")[0]
        parsed.replace(editor, dtype, f"{prefix}.float32" if prefix else "float32")
    return proposed(_title("fixes/float", situation), UNSAFE, editor, parsed)


def make_trainable(situation: Situation) -> Proposal:
    """`trainable=False` becomes `trainable=True` where the source is made."""
    parsed, call = definition(situation)
    given = next((keyword.value for keyword in call.keywords if keyword.arg == "trainable"), None)
    if not isinstance(given, ast.Constant) or given.value is not False:
        raise NoFixError("not made as untrainable here")
    return _replaced("fixes/trainable", UNSAFE, parsed, given, "True", situation)


def ask_trainable_only(situation: Situation) -> Proposal:
    """`model.variables`, where the gradient is asked for and where it is used, becomes `model.trainable_variables`."""
    parsed, asking = asking_call(situation)
    given = _sources_argument(asking)
    if not isinstance(given, ast.Attribute) or given.attr not in ("variables", "weights"):
        raise NoFixError("the sources are not all of a model's variables")
    owner, way = ast.unparse(given), parsed.way_to(asking)
    editor = parsed.editor()
    for part in ast.walk(function_of(way)):
        if isinstance(part, ast.Attribute) and ast.unparse(part) == owner and part.lineno >= asking.lineno:
            parsed.replace(editor, part, f"{parsed.text(part.value)}.trainable_{given.attr}")
    return proposed(_title("fixes/ask-trainable", situation), SAFE, editor, parsed)


def make_persistent(situation: Situation) -> Proposal:
    """The tape is made persistent, so that it can be asked again."""
    if situation.question.failure is None or situation.question.failure.kind != "used-up":
        raise NoFixError("the recording was not used up")
    parsed, block = _recorded(situation)
    call = _tape_call(situation, block)
    text = parsed.text(call)
    if any(keyword.arg == "persistent" for keyword in call.keywords) or not text.endswith(")"):
        raise NoFixError("it says whether it is persistent")
    if any(isinstance(part, ast.Starred) for part in call.args) or "\n" in text or "#" in text:
        raise NoFixError("its arguments are not spelled out")
    given = text[:-1].rstrip().rstrip(",")
    more = "persistent=True)" if given.endswith("(") else ", persistent=True)"
    return _replaced("fixes/persistent", SAFE, parsed, call, given + more, situation)


def watch_value(situation: Situation) -> Proposal:
    """`tape.watch(variable)` of a Keras variable watches the TensorFlow variable that it holds."""
    parsed, asking = asking_call(situation)
    if last_name(asking.func) != "watch" or len(asking.args) != 1 or isinstance(asking.args[0], ast.Starred):
        raise NoFixError("no watch of one argument")
    given = asking.args[0]
    text = parsed.text(given)
    is_list = len(situation.question.asked) > 1 or isinstance(given, (ast.List, ast.Tuple)) or "variables" in text
    is_plain = isinstance(given, (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.List, ast.Tuple))
    if not is_list and not is_plain:
        raise NoFixError("not a plain name")
    used = {part.id for part in ast.walk(parsed.tree) if isinstance(part, ast.Name)}
    each = next(name for name in ("v", "variable", "each_variable") if name not in set(_names(given)) & used)
    code = f"[{each}.value for {each} in {text}]" if is_list else f"{text}.value"
    return _replaced("fixes/watch-value", SAFE, parsed, given, code, situation)


def watch_first(situation: Situation) -> Proposal:
    """A watch that comes too late moves to the start of the block."""
    parsed, block = _recorded(situation)
    scope = situation.recording
    assert scope is not None
    values = {asked.value for asked in situation.asked}
    spans = [w.span for w in scope.watches if w.value in values and w.span is not None and w.span.file == parsed.shown]
    if not spans:
        raise NoFixError("nothing is watched late")
    through = parsed.around(spans[0])
    watch = next((held for held in block.body if any(held is part for part in through)), None)
    if not isinstance(watch, ast.Expr):
        raise NoFixError("the watch does not stand in the block")
    reader = Reader(parsed.tree)
    needed = reader.of(watch).reads
    above = block.body[: block.body.index(watch)]
    last = max((i for i, held in enumerate(above) if reader.of(held).binds & needed), default=-1)
    if last + 1 >= len(above):
        raise NoFixError("it is watched as soon as it is there")
    editor = parsed.editor()
    editor.move([parsed.spot(watch)], before=parsed.spot(above[last + 1]))
    return proposed(_title("fixes/watch-early", situation, line=watch.lineno), SAFE, editor, parsed)


def watch_source(situation: Situation) -> Proposal:
    """`tape.watch(source)` as the first statement of the block."""
    parsed, block = _recorded(situation)
    item = next((i for i in block.items if i.context_expr is _tape_call(situation, block)), None)
    if item is None or not isinstance(item.optional_vars, ast.Name):
        raise NoFixError("the tape has no name")
    asking_file, asking = asking_call(situation)
    if asking_file.shown != parsed.shown:
        raise NoFixError("asked in another file")
    home = function_of(parsed.way_to(block))
    if function_of(parsed.way_to(asking)) is not home:
        raise NoFixError("asked in another function")
    names = _watched_names(situation, parsed, asking)
    roots = {name.partition(".")[0].partition("[")[0] for name in names}
    reader = Reader(parsed.tree)
    last = max((i for i, held in enumerate(block.body) if reader.of(held).binds & roots), default=-1)
    spelled = names[0] if len(names) == 1 else f"[{', '.join(names)}]"
    code = f"{item.optional_vars.id}.watch({spelled})"
    editor = parsed.editor()
    if last < 0:
        editor.insert(code, before=parsed.spot(block.body[0]))
    else:
        editor.insert(code, after=parsed.spot(block.body[last]))
    return proposed(_title("fixes/watch", situation, code=code), SAFE, editor, parsed)


def _watched_names(situation: Situation, parsed: Parsed, asking: ast.Call) -> list[str]:
    given = _sources_argument(asking)
    is_all = len(situation.asked) == len(situation.question.asked)
    if given is not None and is_all and isinstance(given, (ast.Name, ast.Attribute)):
        return [parsed.text(given)]
    names = list(dict.fromkeys(asked.source.name for asked in situation.asked))
    spelled = set(map(ast.unparse, given.elts)) if isinstance(given, (ast.List, ast.Tuple)) else set()
    if not names or not set(names) <= spelled:
        raise NoFixError("the sources are not spelled out")
    return names


def _is_copy(call: ast.Call) -> bool:
    is_one = len(call.args) == 1 and not call.keywords and not isinstance(call.args[0], ast.Starred)
    return is_one and isinstance(call.func, ast.Attribute) and call.func.attr in _COPIES


def _leaves(call: ast.Call) -> bool:
    """Whether a call, as it is written, takes a value out of the framework."""
    is_float = isinstance(call.func, ast.Name) and call.func.id == "float"
    return _is_copy(call) or is_float or (isinstance(call.func, ast.Attribute) and call.func.attr in _TO_HOST)


def _native(parsed: Parsed, call: ast.Call, tensorflow: str | None) -> str:
    numpy = next(names_of_module(parsed.tree, "numpy"), None)
    name = dotted(call.func) or ""
    function = NATIVE.get(name.rpartition(".")[2])
    if numpy is None or tensorflow is None or name.rpartition(".")[0] != numpy or function is None:
        raise NoFixError("TensorFlow has no function of this meaning")
    if any(keyword.arg not in _SAME_KEYWORDS for keyword in call.keywords):
        raise NoFixError("an argument means something else")
    text = parsed.text(call)
    return f"{tensorflow}.{function}{text[len(parsed.text(call.func)) :]}"


def _whole_numbers(given: ast.expr) -> Iterator[ast.Constant]:
    if isinstance(given, (ast.List, ast.Tuple)):
        for element in given.elts:
            yield from _whole_numbers(element)
    elif isinstance(given, ast.UnaryOp):
        yield from _whole_numbers(given.operand)
    elif isinstance(given, ast.Constant) and type(given.value) is int:
        yield given
    elif not (isinstance(given, ast.Constant) and type(given.value) is float):
        raise NoFixError("not spelled out as numbers")


def _recorded(situation: Situation) -> tuple[Parsed, ast.With]:
    scope = situation.recording
    if scope is None or scope.span is None:
        raise NoFixError("no recording with a place")
    parsed = situation.parsed(scope.span)
    return parsed, with_at(parsed, scope.span)


def _tape_call(situation: Situation, block: ast.With) -> ast.Call:
    """The call in a block's header that makes the question's tape."""
    scope = situation.recording
    name = scope.name if scope is not None else ""
    calls = [
        (item.context_expr, item.optional_vars)
        for item in block.items
        if isinstance(item.context_expr, ast.Call) and last_name(item.context_expr.func) == "GradientTape"
    ]
    named = [call for call, held in calls if isinstance(held, ast.Name) and held.id == name]
    chosen = named or [call for call, _ in calls]
    if len(chosen) != 1 or not isinstance(chosen[0], ast.Call):
        raise NoFixError("not one tape in the header")
    return chosen[0]


def _sources_argument(asking: ast.Call) -> ast.expr | None:
    if len(asking.args) > 1 and not any(isinstance(argument, ast.Starred) for argument in asking.args[:2]):
        return asking.args[1]
    return next((keyword.value for keyword in asking.keywords if keyword.arg == "sources"), None)


def _replaced(
    key: str, grade: Applicability, parsed: Parsed, part: ast.expr, code: str, situation: Situation
) -> Proposal:
    editor: Editor = parsed.editor()
    parsed.replace(editor, part, code)
    return proposed(_title(key, situation, line=part.lineno, code=code), grade, editor, parsed)


def _title(key: str, situation: Situation, **values: str | int | float) -> Text:
    names = situation.finding.sources
    known: dict[str, str | int | float] = {
        "source": names[0].name if names else "",
        "target": situation.question.target,
    }
    return Text(key, known | values)


def _names(part: ast.AST) -> Iterator[str]:
    return (inner.id for inner in ast.walk(part) if isinstance(inner, ast.Name))

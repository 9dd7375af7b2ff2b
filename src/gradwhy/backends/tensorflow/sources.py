"""The sources of a question: their names, and the facts about them that no path shows."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

from gradwhy.backends.tensorflow import records as rec
from gradwhy.backends.tensorflow.ops import is_float
from gradwhy.backends.tensorflow.record import Recorder
from gradwhy.flow import Source, SourceFact, Span
from gradwhy.source.locate import call_at, path_to
from gradwhy.source.names import Names
from gradwhy.source.positions import places_of

ALIASES = {"_kernel": "kernel", "_embeddings": "embeddings"}
SKIPPED = (
    "_tracker",
    "_trainable_variables",
    "_non_trainable_variables",
    "_operations",
    "_operations_by_depth",
    "_nodes_by_depth",
    "_inbound_nodes",
    "_outbound_nodes",
    "_self_tracked_trackables",
    "_obj_reference_counts_dict",
    "_metrics",
    "_saved_model_inputs_spec",
    "_trainable_variables_indices",
    "_run_eagerly",
)
_STATISTICS = frozenset(
    {
        "moving_mean",
        "moving_variance",
        "seed_generator_state",
        "iteration",
        "iterations",
        "learning_rate",
        "total",
        "count",
    }
)
_COLLECTIONS = ("trainable_variables", "trainable_weights", "variables", "weights")


@dataclass(frozen=True, slots=True)
class Asked:
    """A source as the program passed it: the object, and the tensor or variable handle by which it is recorded.

    `key` is None for what never has a value, such as a symbolic tensor of a Keras model.
    """

    given: Any
    key: Any


def flat_sources(sources: Any) -> list[Any]:
    """The leaves of the structure that the program passed."""
    if isinstance(sources, dict):
        return [leaf for key in sorted(sources, key=str) for leaf in flat_sources(sources[key])]
    if isinstance(sources, (list, tuple)):
        return [leaf for part in sources for leaf in flat_sources(part)]
    return [sources]


def key_of(given: Any) -> Any:
    """The tensor, or the variable's handle, that stands for a source in the records."""
    inner = inner_variable(given)
    handle = getattr(inner, "handle", None) if hasattr(type(inner), "handle") else None
    if handle is not None:
        return handle
    return inner if hasattr(inner, "_numpy_internal") or hasattr(inner, "graph") else None


def inner_variable(given: Any) -> Any:
    """The TensorFlow variable inside a Keras variable; anything else as it is."""
    if type(given).__module__.startswith("keras."):
        held = getattr(given, "__dict__", {}).get("_value")
        return held if held is not None else given
    return given


def dtype_of(given: Any) -> str:
    """The name of a source's dtype, empty where it has none."""
    dtype = getattr(given, "dtype", "")
    return str(getattr(dtype, "name", dtype))


def facts_of(given: Any) -> frozenset[SourceFact]:
    """What is known of a source besides its path."""
    kind = type(given)
    if kind.__name__ == "KerasTensor":
        return frozenset({SourceFact.SYMBOLIC})
    found = set()
    dtype = dtype_of(given)
    if dtype and not is_float(dtype):
        found.add(SourceFact.INTEGER)
    if getattr(given, "trainable", True) is False:
        last = str(getattr(given, "path", getattr(given, "name", ""))).split(":")[0].rpartition("/")[2]
        is_statistic = last in _STATISTICS or SourceFact.INTEGER in found
        found.add(SourceFact.STATISTIC if is_statistic else SourceFact.FROZEN)
        found.discard(SourceFact.INTEGER)
    return frozenset(found)


class SourceNames:
    """The user's names for the sources of one question."""

    def __init__(self, frames: Sequence[FrameType], passed: str | None) -> None:
        self.names = Names(
            frames,
            aliases=ALIASES,
            tables={"_layers": "layers"},
            openers=_sequential,
            same=_canonical,
            is_leaf=_is_array,
            skip=SKIPPED,
        )
        self.passed = passed

    def source(self, given: Any, extra: Sequence[str] = ()) -> Source:
        """A source by its shortest name, with the other ones, its class and its shape."""
        name, aliases = self.names.of(given)
        if not name:
            name = framework_name(given)
        collections = tuple(c for c in collections_of(self.passed, (name, *aliases)) if c != name)
        others = (*collections, *(a for a in extra if a != name), *(a for a in aliases if a not in collections))
        inner = inner_variable(given)
        return Source(name, others[:8], _class_name(inner), _shape(given))


def framework_name(given: Any) -> str:
    """What the framework calls a source that no name of the program reaches."""
    name = str(getattr(given, "path", "") or getattr(given, "_handle_name", "") or getattr(given, "_name", "") or "")
    return name.split(":")[0] or type(given).__name__


def collections_of(passed: str | None, names: Sequence[str]) -> tuple[str, ...]:
    """The collections, such as `model.trainable_variables`, in the text of what was passed that hold the named source.

    Where the owner goes by other names elsewhere, its collection does, too.
    """
    if not passed:
        return ()
    try:
        tree = ast.parse(passed, mode="eval")
    except SyntaxError:
        return ()
    found = []
    for part in ast.walk(tree):
        if isinstance(part, ast.Attribute) and part.attr in _COLLECTIONS:
            owner = ast.unparse(part.value)
            inside = {n[len(owner) :] for n in names if n.startswith((f"{owner}.", f"{owner}["))}
            if inside:
                found.append(f"{owner}.{part.attr}")
                found += [f"{n[: -len(i)]}.{part.attr}" for n in names for i in inside if n.endswith(i) and n != i]
    return tuple(dict.fromkeys(found))


def passed_text(span: Span | None, text: str | None) -> str | None:
    """The text of the sources argument; a plain name is followed to what it was last assigned."""
    if span is None or text is None or not text.isidentifier():
        return text
    functions = [p for p in path_to(span) if isinstance(p, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef))]
    for scope in reversed(functions):
        best: ast.expr | None = None
        for part in ast.walk(scope):
            if isinstance(part, ast.Assign) and part.lineno <= span.line:
                if any(isinstance(t, ast.Name) and t.id == text for t in part.targets):
                    best = part.value
        if best is not None:
            return ast.unparse(best)
    return text


def full_argument(span: Span | None, position: int, keyword: str) -> str | None:
    """The whole text of an argument of the call at `span`."""
    call = call_at(span) if span is not None and span.column else None
    if call is None:
        return None
    for given in call.keywords:
        if given.arg == keyword:
            return ast.unparse(given.value)
    return ast.unparse(call.args[position]) if position < len(call.args) else None


def zipped_with(text: str | None) -> str | None:
    """The second part of a `zip(...)`, the text itself for anything else."""
    tree = ast.parse(text, mode="eval").body if text else None
    is_zip = isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id == "zip"
    return ast.unparse(tree.args[1]) if is_zip and len(tree.args) > 1 else text  # type: ignore[union-attr]


def definition_of(recorder: Recorder, key: Any) -> Span | None:
    """Where the program made a source, None where that was not seen."""
    made = recorder.seen(key)
    if made is None or not made.record[rec.FRAMES]:
        return None
    places = places_of(made.record[rec.FRAMES][:1])
    return places[0].span if places else None


def _sequential(value: Any) -> list[tuple[str, Any]] | None:
    """The layers of a Keras `Sequential` as its `layers` counts them: without the input layer that it keeps first."""
    if type(value).__name__ != "Sequential" or not type(value).__module__.startswith("keras."):
        return None
    layers = list(value.__dict__.get("_layers", ()))
    if layers and type(layers[0]).__name__ == "InputLayer":
        layers = layers[1:]
    return [(f".layers[{index}]", layer) for index, layer in enumerate(layers)]


def _canonical(value: Any) -> Any:
    return inner_variable(value)


def _is_array(value: Any) -> bool:
    is_closed = type(value).__name__ == "GradientTape"
    return is_closed or hasattr(value, "_numpy_internal") or type(value).__module__.partition(".")[0] == "numpy"


def _class_name(inner: Any) -> str:
    name = type(inner).__name__
    if hasattr(type(inner), "handle"):
        return "Variable"
    return "Tensor" if name in ("EagerTensor", "SymbolicTensor") else name


def _shape(given: Any) -> tuple[int | None, ...] | None:
    try:
        return tuple(None if d is None else int(d) for d in given.shape)
    except (AttributeError, TypeError, ValueError):
        return None

"""The flow model as JSON and back, by the types of its fields."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from enum import Enum
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


class ModelError(ValueError):
    """The JSON does not have the shape of the model; the message names the field."""


def to_json(value: Any) -> Any:
    """`value`, a dataclass of the flow model, as what `json.dumps` takes."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {json_name(f): to_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        return {str(k): to_json(v) for k, v in value.items()}
    if isinstance(value, frozenset):
        return sorted(to_json(v) for v in value)
    if isinstance(value, (list, tuple)):
        return [to_json(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no NaN and no infinity; a report about NaN must still be JSON.
    return value


def from_json(kind: type[T], raw: Any) -> T:
    """The model object of type `kind` that `to_json` gave; ModelError where `raw` has another shape.

    Unknown keys are passed over, so that an older gradwhy reads a report with fields added later.
    """
    return typing.cast(T, _read(kind, raw, kind.__name__))


def json_name(field: dataclasses.Field[Any]) -> str:
    return str(field.metadata.get("json", field.name))


@cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _read(kind: Any, raw: Any, where: str) -> Any:
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return _read_union(args, raw, where)
    if kind is type(None):
        return _expect(raw is None, None, where, "null")
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _read_dataclass(kind, raw, where)
    if isinstance(kind, type) and issubclass(kind, Enum):
        try:
            return kind(raw)
        except ValueError:
            raise ModelError(f"{where}: {raw!r} is not one of {', '.join(str(m.value) for m in kind)}") from None
    if origin in (tuple, frozenset):
        _expect(isinstance(raw, list), None, where, "a list")
        return origin(_read(args[0], item, f"{where}[{i}]") for i, item in enumerate(raw))
    if origin is dict:
        _expect(isinstance(raw, dict), None, where, "an object")
        return {str(k): _read(args[1], v, f"{where}.{k}") for k, v in raw.items()}
    if kind is float:
        if raw in ("nan", "inf", "-inf"):
            return float(raw)
        return _expect(isinstance(raw, (int, float)) and not isinstance(raw, bool), raw, where, "a number")
    if kind in (int, str, bool):
        good = isinstance(raw, kind) and not (kind is int and isinstance(raw, bool))
        return _expect(good, raw, where, kind.__name__)
    raise TypeError(f"{where}: the model has a field of type {kind!r}, which the codec does not know")


def _read_union(args: tuple[Any, ...], raw: Any, where: str) -> Any:
    problem: ModelError | None = None
    for arg in args:
        try:
            return _read(arg, raw, where)
        except ModelError as wrong:
            if problem is None or arg is not type(None):
                problem = wrong
    assert problem is not None
    raise problem


def _read_dataclass(kind: Any, raw: Any, where: str) -> Any:
    _expect(isinstance(raw, dict), None, where, "an object")
    hints, given = _hints(kind), {}
    for field in dataclasses.fields(kind):
        name = json_name(field)
        if name in raw:
            given[field.name] = _read(hints[field.name], raw[name], f"{where}.{name}")
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise ModelError(f"{where}: {name!r} is missing")
    return kind(**given)


def _expect(holds: bool, value: Any, where: str, what: str) -> Any:
    if not holds:
        raise ModelError(f"{where}: expected {what}")
    return value

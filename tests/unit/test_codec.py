"""The model survives JSON, and broken JSON is refused with the field's name."""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
import types
import typing
from enum import Enum
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradwhy import flow
from gradwhy.flow import Finding, FlowGraph, ModelError, Op, Report, Source, Span, from_json, to_json

MODELS = [kind for _, kind in inspect.getmembers(flow, dataclasses.is_dataclass)]
"""Every class of the model; one that is added is tested without being listed."""

TEXT = st.text(max_size=8)
FINITE = st.floats(allow_nan=False, allow_infinity=False)


def of_type(hint: Any, *, depth: int) -> st.SearchStrategy[Any]:
    """Any value of the type of a field; collections are small, and below `depth` models there are no more of them."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    most = 2 if depth else 0
    if origin in (typing.Union, types.UnionType):
        kept = [arg for arg in args if depth or not dataclasses.is_dataclass(arg)]
        # Beside `str` only what is finite: the others are written as text.
        finite = [FINITE if arg is float and str in args else of_type(arg, depth=depth) for arg in kept]
        return st.one_of(finite)
    if dataclasses.is_dataclass(hint):
        return of_model(typing.cast(type, hint), depth=depth - 1)
    if inspect.isclass(hint) and issubclass(hint, Enum):
        return st.sampled_from(list(hint))
    if origin is tuple:
        return st.lists(of_type(args[0], depth=depth), max_size=most).map(tuple)
    if origin is frozenset:
        return st.frozensets(of_type(args[0], depth=depth), max_size=most)
    if origin is dict:
        return st.dictionaries(TEXT, of_type(args[1], depth=depth), max_size=most)
    return {
        str: TEXT,
        int: st.integers(),
        bool: st.booleans(),
        float: st.floats(allow_nan=False),
        type(None): st.none(),
    }[hint]


@cache
def of_model(kind: type, *, depth: int = 2) -> st.SearchStrategy[Any]:
    hints, depth = typing.get_type_hints(kind), max(depth, 0)
    return st.builds(kind, **{f.name: of_type(hints[f.name], depth=depth) for f in dataclasses.fields(kind)})


def through_json(value: Any) -> Any:
    """What is left of `value` after a report file: strict JSON, which every reader takes."""
    return from_json(type(value), json.loads(json.dumps(to_json(value), allow_nan=False)))


def test_every_class_of_the_model_is_known_here() -> None:
    assert {Span, Source, Op, FlowGraph, Finding, Report} <= set(MODELS)
    assert all(kind.__dataclass_params__.frozen for kind in MODELS)


@pytest.mark.parametrize("kind", MODELS, ids=lambda kind: kind.__name__)
@settings(max_examples=25, deadline=None)
@given(choice=st.data())
def test_every_model_survives_json(kind: type, choice: st.DataObject) -> None:
    value = choice.draw(of_model(kind))
    assert through_json(value) == value


@pytest.mark.parametrize("number", [math.inf, -math.inf])
def test_an_infinite_norm_survives_strict_json(number: float) -> None:
    proved = flow.ProvedSource(status=flow.Status.NAN, norm=number, first_values=(number, 1.0))
    assert through_json(proved) == proved


def test_a_norm_that_is_not_a_number_survives_strict_json() -> None:
    read = through_json(flow.ProvedSource(status=flow.Status.NAN, norm=math.nan))
    assert math.isnan(read.norm)


def test_a_field_is_written_under_its_json_name() -> None:
    raw = to_json(Source(name="x", class_name="Variable"))
    assert raw == {"name": "x", "aliases": [], "class": "Variable", "shape": None}


def test_unknown_keys_are_passed_over() -> None:
    assert from_json(Span, {"file": "a.py", "line": 1, "added_later": {"deep": []}}) == Span("a.py", 1)


def test_what_has_a_default_may_be_missing() -> None:
    assert from_json(Source, {"name": "x"}) == Source("x")


# --- broken JSON


@pytest.mark.parametrize("kind", MODELS, ids=lambda kind: kind.__name__)
@settings(max_examples=25, deadline=None)
@given(choice=st.data())
def test_a_field_of_a_wrong_type_is_named(kind: type, choice: st.DataObject) -> None:
    raw = json.loads(json.dumps(to_json(choice.draw(of_model(kind)))))
    name = choice.draw(st.sampled_from(sorted(raw)))
    # No field of the model holds a list of lists.
    broken = dict(raw, **{name: [[["wrong"]]]})
    with pytest.raises(ModelError) as told:
        from_json(kind, broken)
    assert f"{kind.__name__}.{name}" in str(told.value)


@pytest.mark.parametrize("kind", MODELS, ids=lambda kind: kind.__name__)
@settings(max_examples=10, deadline=None)
@given(choice=st.data())
def test_a_missing_field_is_named(kind: type, choice: st.DataObject) -> None:
    required = {
        f.metadata.get("json", f.name)
        for f in dataclasses.fields(kind)
        if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
    }
    raw = to_json(choice.draw(of_model(kind)))
    for name in required:
        with pytest.raises(ModelError, match=f"^{kind.__name__}: '{name}' is missing$"):
            from_json(kind, {key: value for key, value in raw.items() if key != name})


@pytest.mark.parametrize(
    ("kind", "raw", "message"),
    [
        (Report, [], "Report: expected an object"),
        (Span, {"file": "a.py", "line": "1"}, "Span.line: expected int"),
        (Span, {"file": "a.py", "line": True}, "Span.line: expected int"),
        (Span, {"file": None, "line": 1}, "Span.file: expected str"),
        (Source, {"name": "x", "shape": [1, "2"]}, "Source.shape[1]: expected"),
        (Source, {"name": "x", "aliases": "y"}, "Source.aliases: expected a list"),
        (
            FlowGraph,
            {"values": [{"id": 0, "kind": "thing", "dtype": "", "shape": None}]},
            "FlowGraph.values[0].kind: 'thing' is not one of variable, tensor, host",
        ),
        (
            flow.Proof,
            {"sources": {"x": {"status": 1}}, "target_unchanged": None},
            "Proof.sources.x.status: 1 is not one",
        ),
        (flow.ProvedSource, {"status": "ok", "norm": "large"}, "ProvedSource.norm: expected"),
        (flow.Text, {"key": "a", "values": {"line": None}}, "Text.values.line: expected"),
    ],
)
def test_the_message_tells_the_field_and_what_was_expected(kind: type, raw: Any, message: str) -> None:
    with pytest.raises(ModelError) as told:
        from_json(kind, raw)
    assert str(told.value).startswith(message)

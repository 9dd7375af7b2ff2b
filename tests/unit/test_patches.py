"""Patches come off as they went on, and a hook never harms the program."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gradwhy.backends.contract import Answer
from gradwhy.backends.patches import Hooks, hook_body, open_patches, patch, standing


class RecordingWitness:
    def __init__(self) -> None:
        self.failures: list[tuple[str, BaseException]] = []

    def answered(self, answer: Answer) -> None:
        raise AssertionError("no test here asks a question")

    def escaped(self, problem: BaseException) -> None:
        raise AssertionError("no test here raises out of a question")

    def failed(self, what: str, problem: BaseException) -> None:
        self.failures.append((what, problem))


class Framework:
    def __init__(self) -> None:
        self.calls: list[Any] = []

    def compute(self, value: int) -> int:
        """Doubles."""
        self.calls.append(value)
        if value < 0:
            raise ValueError("negative")
        return 2 * value

    @staticmethod
    def fixed(value: int) -> int:
        return value + 1

    @classmethod
    def named(cls, value: int) -> str:
        return f"{cls.__name__}{value}"


class Derived(Framework):
    pass


ORIGINAL = dict(vars(Framework))


@pytest.fixture
def witness() -> RecordingWitness:
    return RecordingWitness()


@pytest.fixture
def hooks(witness: RecordingWitness) -> Iterator[Hooks]:
    built = Hooks(witness)
    yield built
    built.take_off()
    assert dict(vars(Framework)) == ORIGINAL
    assert "compute" not in vars(Derived)


def raising(problem: BaseException) -> Callable[..., Any]:
    def body(*args: Any, **kwargs: Any) -> None:
        raise problem

    return body


# --- patch and standing


def test_undo_puts_back_what_was_there() -> None:
    owner = types.SimpleNamespace(answer=1)
    undo = patch(owner, "answer", 2)
    assert owner.answer == 2
    undo()
    assert owner.answer == 1


def test_undo_removes_an_attribute_that_was_inherited() -> None:
    undo = patch(Derived, "compute", lambda self, value: 0)
    assert Derived().compute(4) == 0
    undo()
    assert "compute" not in vars(Derived)
    assert Derived().compute(4) == 8


def test_undo_removes_an_attribute_that_was_absent() -> None:
    owner = types.SimpleNamespace()
    patch(owner, "answer", 2)()
    assert not hasattr(owner, "answer")


@pytest.mark.parametrize("name", ["fixed", "named"])
def test_undo_puts_back_the_descriptor_itself(name: str) -> None:
    before = vars(Framework)[name]
    patch(Framework, name, lambda value: None)()
    assert vars(Framework)[name] is before


def test_undo_leaves_what_the_program_put_over_our_patch() -> None:
    owner = types.SimpleNamespace(answer=1)
    undo = patch(owner, "answer", 2)
    owner.answer = 3
    undo()
    assert owner.answer == 3
    assert open_patches() == ()


def test_undo_called_twice_undoes_once() -> None:
    undone: list[str] = []
    undo = standing("a callback", lambda: undone.append("once"))
    undo()
    undo()
    assert undone == ["once"]


def test_open_patches_names_what_stands() -> None:
    first = patch(Framework, "compute", None)
    second = standing("a callback", lambda: None)
    assert open_patches() == ("Framework.compute", "a callback")
    first()
    assert open_patches() == ("a callback",)
    second()
    assert open_patches() == ()


def test_a_patch_that_cannot_be_set_is_not_counted_as_standing() -> None:
    with pytest.raises(TypeError):
        patch(int, "answer", 2)
    assert open_patches() == ()


# --- Hooks: the order of undoing


def test_take_off_undoes_the_last_patch_first(hooks: Hooks) -> None:
    order: list[int] = []
    for number in (1, 2, 3):
        hooks.add(standing(f"patch {number}", functools.partial(order.append, number)))
    hooks.take_off()
    assert order == [3, 2, 1]


def test_two_patches_of_one_attribute_come_off_to_the_original(hooks: Hooks) -> None:
    owner = types.SimpleNamespace(answer=1)
    hooks.patch(owner, "answer", 2)
    hooks.patch(owner, "answer", 3)
    hooks.take_off()
    assert owner.answer == 1


def test_an_undo_that_raises_does_not_keep_the_others_from_being_undone(hooks: Hooks) -> None:
    owner = types.SimpleNamespace(answer=1)
    hooks.patch(owner, "answer", 2)
    hooks.add(standing("a callback", raising(RuntimeError("stuck"))))
    with pytest.raises(RuntimeError, match="stuck"):
        hooks.take_off()
    assert owner.answer == 1
    assert open_patches() == ()


# --- Hooks: what a wrapped function does


def test_wrapped_function_keeps_its_result_name_and_arguments(hooks: Hooks) -> None:
    seen: list[Any] = []
    hooks.wrap(
        Framework,
        "compute",
        "compute",
        before=lambda args, kwargs: ("token", args[1:], kwargs),
        after=lambda token, result, args, kwargs: seen.append((token, result)),
    )
    framework = Framework()
    assert framework.compute(value=4) == 8
    assert framework.compute(5) == 10
    assert seen == [(("token", (), {"value": 4}), 8), (("token", (5,), {}), 10)]
    assert Framework.compute.__doc__ == "Doubles."
    assert Framework.compute.__name__ == "compute"


def test_wrapped_function_raises_what_it_raised(hooks: Hooks) -> None:
    seen: list[Any] = []
    hooks.wrap(
        Framework,
        "compute",
        "compute",
        before=lambda args, kwargs: "token",
        after=lambda *args: seen.append("after"),
        raised=lambda token, problem, args, kwargs: seen.append((token, str(problem))),
    )
    with pytest.raises(ValueError, match="negative"):
        Framework().compute(-1)
    assert seen == [("token", "negative")]


@pytest.mark.parametrize(("name", "expected"), [("fixed", 5), ("named", "Derived4")])
def test_wrapped_static_and_class_methods_stay_what_they_are(hooks: Hooks, name: str, expected: object) -> None:
    seen: list[Any] = []
    hooks.wrap(Framework, name, name, after=lambda token, result, args, kwargs: seen.append(result))
    assert getattr(Derived, name)(4) == expected
    assert getattr(Derived(), name)(4) == expected
    assert seen == [expected, expected]


def test_a_function_reached_before_the_hooks_came_off_is_quiet_after(hooks: Hooks) -> None:
    seen: list[Any] = []
    hooks.wrap(Framework, "compute", "compute", before=lambda args, kwargs: seen.append(args))
    kept = Framework().compute
    hooks.take_off()
    assert kept(4) == 8
    assert seen == []


# --- Hooks: our own failures


@pytest.mark.parametrize("kind", [RuntimeError, MemoryError, RecursionError, AssertionError, StopIteration])
@pytest.mark.parametrize("moment", ["before", "after", "raised"])
def test_a_hook_that_raises_takes_all_hooks_off_and_the_program_goes_on(
    hooks: Hooks, witness: RecordingWitness, kind: type[Exception], moment: str
) -> None:
    owner = types.SimpleNamespace(answer=1)
    hooks.patch(owner, "answer", 2)
    hooks.wrap(Framework, "compute", "compute", **{moment: raising(kind("ours"))})
    framework = Framework()
    with pytest.raises(ValueError, match=r"^negative$"):
        framework.compute(-1)
    assert framework.compute(4) == 8
    assert framework.calls == [-1, 4]
    assert [(what, type(problem)) for what, problem in witness.failures] == [(f"compute.{moment}", kind)]
    assert not hooks.are_on
    assert owner.answer == 1
    assert open_patches() == ()


def test_a_failing_hook_is_told_once(hooks: Hooks, witness: RecordingWitness) -> None:
    first = hooks.guarded("first", raising(RuntimeError("one")))
    second = hooks.guarded("second", raising(RuntimeError("two")))
    assert first() is None
    assert second() is None
    hooks.fail("third", RuntimeError("three"))
    assert [what for what, _ in witness.failures] == ["first"]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_what_is_the_users_own_reaches_the_program_once_the_hooks_are_off(
    hooks: Hooks, witness: RecordingWitness, kind: type[BaseException], moment: str
) -> None:
    hooks.wrap(Framework, "compute", "compute", **{moment: raising(kind("theirs"))})
    with pytest.raises(kind, match="theirs"):
        Framework().compute(4)
    assert witness.failures == []
    assert not hooks.are_on
    assert open_patches() == ()


def test_a_real_recursion_in_a_hook_is_survived(hooks: Hooks, witness: RecordingWitness) -> None:
    def endless(args: Any, kwargs: Any) -> Any:
        return endless(args, kwargs)

    hooks.wrap(Framework, "compute", "compute", before=endless)
    assert Framework().compute(4) == 8
    assert [type(problem) for _, problem in witness.failures] == [RecursionError]


def test_the_program_may_use_as_much_of_the_stack_as_it_likes(hooks: Hooks, witness: RecordingWitness) -> None:
    hooks.wrap(Framework, "compute", "compute", before=lambda args, kwargs: None)
    framework = Framework()

    def deep(left: int) -> int:
        return framework.compute(4) if left == 0 else deep(left - 1)

    depth = sys.getrecursionlimit()
    with pytest.raises(RecursionError):
        deep(depth)
    assert framework.compute(4) == 8


def test_hook_body_can_be_replaced_by_the_failure_harness(
    hooks: Hooks, witness: RecordingWitness, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []

    def recording(what: str, body: Callable[..., Any]) -> Callable[..., Any]:
        names.append(what)
        return body

    monkeypatch.setattr("gradwhy.backends.patches.hook_body", recording)
    hooks.wrap(Framework, "compute", "compute", before=lambda *a: None, after=lambda *a: None, raised=lambda *a: None)
    hooks.guarded("callback", lambda: None)
    assert names == ["compute.before", "compute.after", "compute.raised", "callback"]


def test_hook_body_gives_the_body_itself() -> None:
    def body() -> None: ...

    assert hook_body("a hook", body) is body

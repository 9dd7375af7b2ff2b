"""The questions that a program asks JAX, observed where it asks them."""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from operator import index as as_integer
from types import FrameType
from typing import Any

import jax

from gradwhy.backends.contract import Answer, Witness
from gradwhy.backends.jax import describe, failures, unasked
from gradwhy.backends.jax.answers import Telling
from gradwhy.backends.jax.asking import Asking, Manner
from gradwhy.backends.jax.record import MOST_FRAMES, Pass, Recorder, Stretch, ValueRecord, hide
from gradwhy.backends.jax.turns import concrete
from gradwhy.backends.jax.unasked import Unasked
from gradwhy.backends.patches import Hooks, standing
from gradwhy.backends.stand_in import stand_in
from gradwhy.flow import Status
from gradwhy.source import positions

ASKED_WITH_ARGNUMS = ("grad", "value_and_grad", "jacrev", "jacobian", "jacfwd", "hessian")


class Questions:
    """Watches every call of a function that JAX differentiates."""

    def __init__(self, recorder: Recorder, hooks: Hooks, witness: Witness) -> None:
        self._recorder = recorder
        self._hooks = hooks
        self._witness = witness
        self._numbers = count(1)
        # Whether the next question at a place is watched fully: the first one is, and the one after a bad answer.
        self._is_armed: dict[object, bool] = {}
        # What a question leaves out is looked for once: it is read from the program's text.
        self._unasked: dict[object, tuple[Unasked, ...]] = {}
        self._pullbacks: weakref.WeakKeyDictionary[Any, Asking] = weakref.WeakKeyDictionary()
        self._pullback_types: set[type] = set()

    def attach(self) -> None:
        """Put our own functions in the place of those that differentiate."""
        for name in ASKED_WITH_ARGNUMS:
            self._hooks.patch(jax, name, self._differentiating(getattr(jax, name), f"jax.{name}"))
        self._hooks.patch(jax, "vjp", self._pulling_back(jax.vjp))
        self._hooks.add(standing("jax.vjp's results", self._pullbacks.clear))

    def _differentiating(self, original: Callable[..., Any], kind: str) -> Callable[..., Any]:
        @functools.wraps(original)
        def differentiate(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            try:
                plain = original(fun, *args, **kwargs)
            except BaseException as problem:
                hide(problem)
                raise
            if not self._hooks.are_on:
                return plain
            argnums = kwargs.get("argnums", args[0] if args else 0)
            has_aux = bool(kwargs.get("has_aux", args[1] if len(args) > 1 else False))
            watched = original(self._watching(fun), *args, **kwargs)
            return self._asking(plain, watched, fun=fun, manner=Manner(kind, argnums, has_aux))

        return differentiate

    def _asking(
        self, plain: Callable[..., Any], watched: Callable[..., Any], *, fun: Callable[..., Any], manner: Manner
    ) -> Callable[..., Any]:
        """What differentiates `fun`, as `plain` does, and is known by the same name."""
        begin = self._hooks.guarded(f"{manner.kind}.begin", self._begin)
        answered = self._hooks.guarded(f"{manner.kind}.answered", self._answered)
        raised = self._hooks.guarded(f"{manner.kind}.raised", self._raised)
        here = self._recorder.here

        def ask(*args: Any, **kwargs: Any) -> Any:
            asking = begin(manner, fun, args)
            before = here.passing, here.pending
            here.pending = asking
            try:
                result = plain(*args, **kwargs) if asking is None else watched(*args, **kwargs)
            except BaseException as problem:
                here.passing, here.pending = before
                if asking is not None:
                    raised(asking, problem)
                hide(problem)
                raise
            here.passing, here.pending = before
            if asking is not None:
                answered(asking, result)
            return result

        vars(ask).update(vars(plain))
        for name in ("__name__", "__qualname__", "__doc__", "__module__", "__annotations__"):
            setattr(ask, name, getattr(plain, name))
        return ask

    def _pulling_back(self, original: Callable[..., Any]) -> Callable[..., Any]:
        begin = self._hooks.guarded("jax.vjp.begin", self._begin)
        pulled = self._hooks.guarded("jax.vjp.pulled", self._remember_pullback)
        raised = self._hooks.guarded("jax.vjp.raised", self._raised)
        here = self._recorder.here

        @functools.wraps(original)
        def vjp(fun: Callable[..., Any], *primals: Any, **kwargs: Any) -> Any:
            manner = Manner("jax.vjp", range(len(primals)), bool(kwargs.get("has_aux", False)))
            asking = begin(manner, fun, primals) if callable(fun) else None
            before = here.passing, here.pending
            here.pending = asking
            try:
                result = original(fun if asking is None else self._watching(fun), *primals, **kwargs)
            except BaseException as problem:
                here.passing, here.pending = before
                if asking is not None:
                    raised(asking, problem)
                hide(problem)
                raise
            here.passing, here.pending = before
            if asking is not None:
                pulled(asking, result)
            return result

        return vjp

    def _watching(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        """`fun`, with the time during which it runs recorded for the question that is about to call it."""
        enter = self._hooks.guarded("jax.differentiated.enter", self._enter)
        leave = self._hooks.guarded("jax.differentiated.leave", self._leave)
        broke = self._hooks.guarded("jax.differentiated.broke", self._broke)
        here = self._recorder.here

        def watched(*args: Any, **kwargs: Any) -> Any:
            asking, here.pending = here.pending, None
            if asking is None:
                return fun(*args, **kwargs)
            before = here.depth, here.open, here.passing
            here.depth, here.passing = 0, None
            enter(asking, args)
            try:
                # A warning of the function's may be meant for what called it: that was JAX.
                result = stand_in(sys._getframe(1))(fun, args, kwargs)
            except BaseException as problem:
                here.depth, here.open, here.passing = before
                broke(asking, problem)
                hide(problem, frames=2)
                raise
            here.depth, here.open, here.passing = before
            leave(asking, result)
            return result

        try:
            functools.update_wrapper(watched, fun)
        except Exception:
            # A callable object of the program's may refuse to show its attributes; JAX does without them, too.
            return watched
        return watched

    def _begin(self, manner: Manner, fun: Callable[..., Any], args: tuple[Any, ...]) -> Asking | None:
        is_one = isinstance(manner.argnums, int) or not hasattr(manner.argnums, "__iter__")
        numbers = tuple(as_integer(n) for n in ((manner.argnums,) if is_one else manner.argnums))
        if any(not -len(args) <= n < len(args) for n in numbers):
            return None
        argnums = tuple(n % len(args) for n in numbers)
        frames = positions.user_frames(sys._getframe(3), MOST_FRAMES)
        asking = Asking(manner, fun, args=args, argnums=argnums, frames=frames, recorder=self._recorder)
        asking.passing.is_held = self._is_armed.get(asking.key, True)
        asking.left_out = describe.left_out_of_module(fun)
        asking.arrays = [leaf for n in argnums for leaf in jax.tree_util.tree_leaves(args[n])]
        return asking

    def _enter(self, asking: Asking, args: tuple[Any, ...]) -> None:
        recorder, here = self._recorder, self._recorder.here
        asking.leaves = [recorder.of(a) or recorder.begin(a) for a in asking.arrays]
        recorder.now()
        asking.stretch = Stretch(next(self._numbers), asking.manner.kind, recorder.now(), asking.frames)
        here.open = (*here.open, asking.stretch)
        given = [leaf for n in asking.argnums for leaf in jax.tree_util.tree_leaves(args[n])]
        asking.tracers = [recorder.begin(t) if isinstance(t, jax.core.Tracer) else None for t in given]
        for number, tracer in enumerate(asking.tracers):
            if tracer is not None:
                tracer.argument = number
        asking.tag = next((t.tags[0] for t in asking.tracers if t is not None and t.tags), None)

    def _leave(self, asking: Asking, result: Any) -> None:
        recorder, here = self._recorder, self._recorder.here
        if asking.stretch is None:
            return
        asking.stretch.end = recorder.now()
        value = result[0] if asking.manner.has_aux and isinstance(result, (tuple, list)) and result else result
        values = jax.tree_util.tree_leaves(value)
        records = [recorder.of(v) for v in values]
        asking.targets = [r for r in records if r is not None]
        asking.is_more_returned = not asking.manner.has_aux and isinstance(result, (tuple, list)) and len(values) > 1
        if asking.manner.has_aux and value is not result and len(result) > 1:
            beside, _ = jax.tree_util.tree_flatten_with_path(result[1])
            known = [(jax.tree_util.keystr(path), recorder.of(v)) for path, v in beside]
            asking.aux = [(path, record) for path, record in known if record is not None]
        asking.is_traced = any(concrete(v) is None for v in values)
        asking.has_left = True
        if not asking.manner.is_forward:
            passing = here.passing = asking.passing
            # Once a place has had a good answer, the way back is watched again only after a bad one.
            passing.is_idle = not passing.is_held and not here.open and not asking.is_traced

    def _broke(self, asking: Asking, problem: BaseException) -> None:
        """The differentiated function raised: look at it while JAX has not yet cut the traceback short."""
        if asking.stretch is not None:
            asking.stretch.end = self._recorder.now()
            asking.left = failures.exit_of(problem, self._recorder)
            self._recorder.here.failed = ()

    def _answered(self, asking: Asking, result: Any) -> None:
        if not asking.has_left:
            return
        gradients = jax.tree_util.tree_leaves(_gradients_in(asking, result))
        try:
            self._tell(asking, gradients)
        finally:
            self._forget(asking, gradients)

    def _tell(self, asking: Asking, gradients: Sequence[Any]) -> None:
        telling = Telling(asking, [self._record_of(asking, g) for g in gradients], self._asking_frame())
        is_first = asking.key not in self._unasked
        if is_first:
            found = [u for u in unasked.of(asking) if u.record is not None and telling.uses(u.record)]
            # What is kept for later must not keep the program's arrays.
            self._unasked[asking.key] = tuple(replace(u, record=None) for u in found)
        asking.unasked = tuple(found) if is_first else self._unasked[asking.key]
        statuses = telling.statuses(gradients)
        self._is_armed[asking.key] = any(s is not Status.OK for s in statuses)
        if statuses:
            self._witness.answered(Answer(asking.manner.kind, "jax", asking.key, statuses, telling.build))

    def _record_of(self, asking: Asking, gradient: Any) -> ValueRecord | None:
        """The record of a gradient; None where JAX put a zero there while it compiled."""
        known = self._recorder.of(gradient)
        if known is None and not asking.is_traced:
            known = self._recorder.begin(gradient)
            known.is_unseen = True
        return known

    def _raised(self, asking: Asking, problem: BaseException) -> None:
        failure = failures.recognised(problem, asking)
        if failure is None:
            return
        telling = Telling(asking, [], self._asking_frame(), failure)
        self._witness.answered(Answer(asking.manner.kind, "jax", asking.key, telling.statuses(()), telling.build))
        self._witness.escaped(problem)

    def _remember_pullback(self, asking: Asking, result: Any) -> None:
        """Wait for the program to call what `jax.vjp` gave: only then it asks."""
        pullback = result[1]
        if not asking.has_left:
            return
        asking.let_go(describe.leaf_paths(asking.fun, asking.args, asking.argnums))
        self._pullbacks[pullback] = asking
        kind = type(pullback)
        if kind not in self._pullback_types:
            self._pullback_types.add(kind)
            self._hooks.wrap(
                kind,
                "__call__",
                "jax.vjp.call",
                before=self._before_pullback,
                after=self._after_pullback,
                raised=self._broken_pullback,
            )

    def _before_pullback(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Asking | None, Pass | None]:
        asking, here = self._pullbacks.get(args[0]) if args else None, self._recorder.here
        before = here.passing
        if asking is not None:
            given = jax.tree_util.tree_leaves(args[1:])
            asking.seeds = [self._recorder.of(leaf) or self._recorder.begin(leaf) for leaf in given]
            asking.frames = positions.user_frames(sys._getframe(3), MOST_FRAMES)
            here.passing = asking.passing = Pass()
        return asking, before

    def _after_pullback(self, token: tuple[Asking | None, Pass | None], result: Any, args: Any, kwargs: Any) -> None:
        asking, self._recorder.here.passing = token
        if asking is not None:
            self._answered(asking, result)

    def _broken_pullback(self, token: tuple[Asking | None, Pass | None], problem: Any, args: Any, kwargs: Any) -> None:
        _, self._recorder.here.passing = token

    def _forget(self, asking: Asking, gradients: Sequence[Any]) -> None:
        """Let go of what lies behind arguments and gradients, unless another question may still ask for it."""
        asking.passing.ops.clear()
        asking.seeds = []
        if self._recorder.here.open or asking.manner.is_pulled:
            return
        for value in (*asking.arrays, *gradients):
            record = self._recorder.of(value)
            if record is not None and not isinstance(value, jax.core.Tracer):
                self._recorder.begin(value)

    def _asking_frame(self) -> FrameType | None:
        """The innermost of the user's frames that runs now."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and not positions.is_user_code(frame.f_code):
            frame = frame.f_back
        return frame


def _gradients_in(asking: Asking, result: Any) -> Any:
    if asking.manner.kind == "jax.value_and_grad":
        return result[1]
    if asking.manner.is_pulled or not asking.manner.has_aux:
        return result
    return result[0]

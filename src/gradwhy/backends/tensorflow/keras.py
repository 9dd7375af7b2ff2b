"""Keras's own doors: which layer runs, which model gave numbers away, and which variables an optimizer does not know."""

from __future__ import annotations

import inspect
import sys
import weakref
from collections.abc import Callable
from typing import Any

from gradwhy.backends.contract import Witness
from gradwhy.backends.patches import Hooks
from gradwhy.backends.tensorflow.doors import Doors
from gradwhy.backends.tensorflow.frames import RawFrames, set_landmark, walk
from gradwhy.backends.tensorflow.record import Recorder
from gradwhy.backends.tensorflow.sources import key_of
from gradwhy.flow import Text

Entered = tuple[tuple["weakref.ref[Any]", ...], RawFrames | None]
"""What was open before a layer's call."""

_LAYER = "keras.src.layers.layer"
_TRAINER = "keras.src.backend.tensorflow.trainer"
_OPTIMIZER = "keras.src.optimizers.base_optimizer"


class Keras:
    """Patches Keras 3 when the program has imported it."""

    def __init__(self, recorder: Recorder, doors: Doors, unknown: Callable[..., None], witness: Witness) -> None:
        self.recorder, self.doors, self.unknown, self.witness = recorder, doors, unknown, witness
        self.is_attached = False
        self._hooks: Hooks | None = None

    def attach(self, hooks: Hooks) -> None:
        self._hooks = hooks

    def look(self) -> None:
        """Attach to Keras if it is there by now. TensorFlow imports it late, and programs may never use it."""
        if self.is_attached or self._hooks is None or not self._hooks.are_on:
            return
        if "tf_keras" in sys.modules:
            self.witness.declined(Text("closing/tf-keras"))
            self._hooks.take_off()
            return
        layer, optimizer = sys.modules.get(_LAYER), sys.modules.get(_OPTIMIZER)
        if layer is None or optimizer is None or not hasattr(layer, "Layer"):
            return
        self.is_attached = True
        hooks = self._hooks
        called = inspect.unwrap(layer.Layer.__call__).__code__
        if called.co_filename == layer.__file__:
            # Else somebody else has put a function of theirs there, whose file may be the user's.
            set_landmark(called)
        hooks.wrap(layer.Layer, "__call__", "keras.call", before=self._enters, after=self._leaves, raised=self._leaves)
        hooks.wrap(
            optimizer.BaseOptimizer,
            "apply",
            "keras.apply",
            before=self._applies,
            after=self._applied,
            raised=self._not_applied,
        )
        trainer = sys.modules.get(_TRAINER)
        if trainer is not None and hasattr(trainer, "TensorFlowTrainer"):
            for name in ("predict", "predict_on_batch"):
                door = self._predicted(name)
                hooks.wrap(trainer.TensorFlowTrainer, name, f"keras.{name}", before=self._predicts, after=door)

    def _enters(self, args: tuple[Any, ...], kwargs: Any) -> Entered:
        state = self.recorder.state
        entered = state.layers, state.outer
        state.layers = (*state.layers, weakref.ref(args[0]))
        # No frame behind this call moves before it ends, so the ops in it need not look there again.
        state.outer = walk(sys._getframe(3), state.outer)[0]
        return entered

    def _leaves(self, entered: Entered | None, result: Any, args: tuple[Any, ...], kwargs: Any) -> None:
        if entered is not None:
            state = self.recorder.state
            state.layers, state.outer = entered

    def _predicts(self, args: tuple[Any, ...], kwargs: Any) -> bool:
        return True

    def _predicted(self, name: str) -> Any:
        def predicted(token: Any, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            """A model's prediction is plain numbers, made from its variables and from what it was given."""
            model, given = args[0], args[1] if len(args) > 1 else kwargs.get("x")
            recorder = self.recorder
            inputs = [recorder.of(key) for v in model_variables(model) if (key := key_of(v)) is not None]
            known = recorder.seen(given)
            if known is not None:
                inputs.append(known)
            for array in result if isinstance(result, (list, tuple)) else [result]:
                if hasattr(array, "dtype"):
                    self.doors.note_exit(tuple(inputs), array, f"model.{name}", sys._getframe(3))

        return predicted

    def _applies(self, args: tuple[Any, ...], kwargs: Any) -> bool:
        """An optimizer's work is nobody's path: nothing of it is recorded."""
        state = self.recorder.state
        was = state.is_muted
        state.is_muted = True
        return was

    def _applied(self, was: bool, result: Any, args: tuple[Any, ...], kwargs: Any) -> None:
        self.recorder.state.is_muted = bool(was)

    def _not_applied(self, was: bool, problem: BaseException, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """An optimizer refused a variable that it was not built for."""
        self.recorder.state.is_muted = bool(was)
        optimizer = args[0]
        variables = args[2] if len(args) > 2 else kwargs.get("trainable_variables")
        known = getattr(optimizer, "_trainable_variables_indices", None)
        if not isinstance(problem, ValueError) or not variables or not known:
            return
        strangers = [v for v in variables if optimizer._var_key(v) not in known]
        if strangers:
            self.unknown(strangers, problem, sys._getframe(3))


def model_variables(model: Any) -> list[Any]:
    """All variables of a Keras layer or model, by Keras's own property, whatever a subclass makes of it."""
    layer = sys.modules.get(_LAYER)
    if layer is None or not isinstance(model, layer.Layer):
        return []
    return list(layer.Layer.variables.fget(model))

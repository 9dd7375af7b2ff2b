"""The TensorFlow backend: what an eager program, its tapes and its compiled functions do to gradients."""

from __future__ import annotations

import importlib
import sys
import threading
from typing import Any

from gradwhy.backends.contract import Witness
from gradwhy.backends.patches import Hooks, hook_body, standing
from gradwhy.backends.tensorflow.doors import Doors
from gradwhy.backends.tensorflow.functions import Functions
from gradwhy.backends.tensorflow.keras import Keras
from gradwhy.backends.tensorflow.questions import Questions
from gradwhy.backends.tensorflow.record import Recorder
from gradwhy.backends.tensorflow.scopes import Tapes

_MODULES = {
    "ops": "tensorflow.python.framework.ops",
    "dtypes": "tensorflow.python.framework.dtypes",
    "op_defs": "tensorflow.python.framework.op_def_registry",
    "constant_op": "tensorflow.python.framework.constant_op",
    "func_graph": "tensorflow.python.framework.func_graph",
    "op_callbacks": "tensorflow.python.framework.op_callbacks",
    "backprop": "tensorflow.python.eager.backprop",
    "record": "tensorflow.python.eager.record",
    "atomic_function": "tensorflow.python.eager.polymorphic_function.atomic_function",
    "tf_stack": "tensorflow.python.util.tf_stack",
    "script_ops": "tensorflow.python.ops.script_ops",
}


class TensorFlowBackend:
    """Observes TensorFlow through its op callback and a few doors; see `record` for what is kept."""

    framework = "tensorflow"
    oldest = (2, 21)

    def __init__(self) -> None:
        self._hooks: Hooks | None = None
        self._questions: Questions | None = None

    def version(self) -> str:
        return str(sys.modules["tensorflow"].__version__)

    def attach(self, witness: Witness) -> None:
        hooks = self._hooks = Hooks(witness)
        modules = {name: importlib.import_module(path) for name, path in _MODULES.items()}
        recorder = Recorder()
        try:
            tapes, functions, doors = Tapes(recorder), Functions(recorder), Doors(recorder)
            questions = Questions(witness, recorder, tapes, functions, doors, modules)
            functions.attach(hooks, modules)
            doors.attach(hooks, modules)
            tapes.attach(hooks, modules["backprop"])
            questions.attach(hooks, modules["backprop"])
            keras = Keras(recorder, doors, questions.unknown_to_optimizer, witness)
            keras.attach(hooks)
            recorder.on_variable = tapes.on_push = keras.look  # type: ignore[method-assign]
            self._questions = questions
            self._listen(hooks, recorder, modules["op_callbacks"])
        except BaseException as problem:
            hooks.fail("tensorflow.attach", problem)

    def detach(self) -> None:
        if self._hooks is not None:
            self._hooks.take_off()

    def settle(self, problem: BaseException | None) -> None:
        if self._hooks is not None and self._hooks.are_on and self._questions is not None:
            self._hooks.guarded("tensorflow.settle", self._questions.settle)(problem)

    def why(self, target: object, source: object) -> bool:
        if self._hooks is None or self._questions is None:
            return False
        return bool(self._hooks.guarded("tensorflow.why", self._questions.why)(target, source, sys._getframe(1)))

    def _listen(self, hooks: Hooks, recorder: Recorder, op_callbacks: Any) -> None:
        """Hear of every op, on this thread and on every thread that the program starts."""
        on_op = hook_body("tensorflow.op", recorder.on_op)

        def hearing() -> Any:
            state = recorder.state

            def heard(
                op_type: Any, inputs: Any, attrs: Any, outputs: Any, op_name: Any = None, graph: Any = None
            ) -> None:
                if not hooks.are_on:
                    return
                try:
                    on_op(state, op_type, inputs, outputs, op_name, graph)
                except BaseException as problem:
                    hooks.fail("tensorflow.op", problem)

            return heard

        listening = threading.local()

        def listen() -> None:
            if getattr(listening, "heard", None) is None:
                listening.heard = hearing()
                op_callbacks.add_op_callback(listening.heard)

        def stop() -> None:
            heard, listening.heard = getattr(listening, "heard", None), None
            if heard is not None:
                op_callbacks.remove_op_callback(heard)

        listen()
        hooks.add(standing("tensorflow.op_callback", stop))
        begin = hooks.guarded("tensorflow.thread", listen)
        hooks.wrap(threading.Thread, "_bootstrap_inner", "tensorflow.thread", before=lambda args, kwargs: begin())


def create() -> TensorFlowBackend:
    """The backend, not yet attached."""
    return TensorFlowBackend()

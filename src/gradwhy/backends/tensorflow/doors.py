"""Where values leave TensorFlow for NumPy or Python and come back, and where user-defined gradients are recorded."""

from __future__ import annotations

import sys
import weakref
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from types import CodeType, FrameType, FunctionType
from typing import Any

from gradwhy.backends.patches import Hooks
from gradwhy.backends.tensorflow.frames import walk
from gradwhy.backends.tensorflow.inferred import LIKELY, Inferred
from gradwhy.backends.tensorflow.record import Recorder
from gradwhy.backends.tensorflow.records import LEAF, NUMBER, Made, Record, Written, dtype_number
from gradwhy.source.positions import is_user_code

_MOST_FLOATS = 4096
_MOST_EXITS = 48
_MOST_TRUTHS = 256
_MOST_LOOKED_AT = 64
_MOST_COMPARED = 5_000
HOST = "host"
"""The EXTRA of a record whose inputs left the framework: their edge is cut."""
TRUTH = "bool"
"""The op of an exit through `bool`: the tensor itself was the condition."""
CUSTOM = "custom"
"""The EXTRA of a record of a user-defined gradient is a `CustomGradient`."""

_EXITS = {
    "numpy": ".numpy()",
    "__array__": "numpy.asarray",
    "__float__": "float",
    "__int__": "int",
    "__index__": "int",
    "__complex__": "complex",
}


class CustomGradient:
    """A user-defined gradient: its function's code, and for which inputs it gave None or zeros."""

    __slots__ = ("code", "given_none", "given_zero")

    def __init__(self, code: CodeType | None) -> None:
        self.code = code
        self.given_none: set[int] = set()
        self.given_zero: set[int] = set()

    def note(self, given: Any) -> None:
        """What the user's function gave for each input."""
        for index, gradient in enumerate(given if isinstance(given, (list, tuple)) else [given]):
            if gradient is None:
                self.given_none.add(index)
            elif hasattr(gradient, "_numpy_internal") and not gradient._numpy_internal().any():
                self.given_zero.add(index)
            else:
                self.given_none.discard(index)
                self.given_zero.discard(index)


class Doors:
    """The host doors of one run.

    A link is only read when a gradient is missing, so that a false one cannot hurt a healthy program.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        recorder.entered = self.entered  # type: ignore[method-assign]
        self.arrays: dict[int, tuple[weakref.ref[Any], Written]] = {}
        self.floats: OrderedDict[float, list[Written]] = OrderedDict()
        self.exits: dict[int, deque[tuple[int, Written]]] = {}
        self.truths: deque[Written] = deque(maxlen=_MOST_TRUTHS)
        """The tensors that Python asked whether they are true: nothing comes back of one, yet it may choose what runs."""
        self.text = Inferred(recorder, self.exits, self._origin)
        recorder.left_around = self.text.around  # type: ignore[method-assign]

    def attach(self, hooks: Hooks, modules: dict[str, Any]) -> None:
        self._hooks = hooks
        tensor = modules["ops"]._EagerTensorBase
        for name, said in _EXITS.items():
            if name in vars(tensor):
                hooks.wrap(tensor, name, f"tensorflow.{name}", after=self._left_by(said))
        hooks.wrap(tensor, "__bool__", "tensorflow.__bool__", after=self._asked_for_truth)
        constant = modules["constant_op"]
        converted = hooks.guarded("tensorflow.convert", self._converted)
        hooks.patch(
            constant, "convert_to_eager_tensor", self._watched_conversion(constant.convert_to_eager_tensor, converted)
        )
        hooks.wrap(modules["ops"], "_create_graph_constant", "tensorflow.constant", after=self._graph_constant)
        begin = hooks.guarded("tensorflow.custom.before", self._custom)
        record = modules["record"]
        hooks.patch(record, "record_operation", self._watched_operation(record.record_operation, begin))
        script = modules["script_ops"]
        if hasattr(script, "py_func_common"):
            hooks.wrap(
                script, "py_func_common", "tensorflow.numpy_function", before=self._hidden, after=self._numpy_function
            )
        if hasattr(script, "EagerFunc"):
            hooks.wrap(
                script.EagerFunc, "__call__", "tensorflow.py_function", before=self._py_begins, after=self._py_ends
            )

    def question_answered(self) -> None:
        """Forget the numbers that left before the question: a float links only within one."""
        self.floats.clear()

    # Leaving

    def _left_by(self, said: str) -> Any:
        def left(token: Any, result: Any, args: tuple[Any, ...], kwargs: Any) -> None:
            state = self.recorder.state
            if not state.is_ours:
                self.left(args[0], result, said, sys._getframe(2))

        return left

    def left(self, tensor: Any, result: Any, said: str, frame: FrameType | None) -> None:
        """`tensor` left the framework as `result`."""
        made = self.recorder.seen(tensor)
        if made is None or made.record is NUMBER:
            return
        self.note_exit((made,), result, said, frame)

    def _asked_for_truth(self, token: Any, result: Any, args: tuple[Any, ...], kwargs: Any) -> None:
        state = self.recorder.state
        made = self.recorder.seen(args[0]) if state.scopes and not state.is_ours else None
        if made is None or made.record is NUMBER:
            return
        frames, mine = walk(sys._getframe(2))
        # What a library decides for its own ends is no choice of the program's.
        if frames and mine:
            self.truths.append(
                Written([TRUTH, (made,), frames, state.scopes, next(self.recorder.clock), HOST, mine, 0])
            )

    def decisions(self) -> Iterator[Written]:
        """What left the framework, and may have decided what ran."""
        yield from self.truths
        yield from {id(exit): exit for exits in self.exits.values() for _, exit in exits}.values()

    def note_exit(self, inputs: tuple[Any, ...], result: Any, said: str, frame: FrameType | None) -> None:
        frames, mine = walk(frame)
        if not frames:
            return
        recorder = self.recorder
        exit = Written([said, inputs, frames, recorder.state.scopes, next(recorder.clock), HOST, mine, 0])
        kind = type(result)
        if kind is float:
            self.floats.setdefault(result, []).append(exit)
            if len(self.floats) > _MOST_FLOATS:
                self.floats.popitem(last=False)
        elif hasattr(result, "dtype") and hasattr(result, "ndim"):
            if result.ndim == 0 and result.dtype.kind == "f":
                self.floats.setdefault(float(result), []).append(exit)
            else:
                self._note_array(result, exit)
        recorder.has_exits = True
        # Whoever called the function in which a value left may use what the function made of it.
        for code, lasti in frames:
            self.exits.setdefault(id(code), deque(maxlen=_MOST_EXITS)).append((lasti, exit))

    def _note_array(self, array: Any, exit: Written) -> None:
        key = id(array)
        arrays = self.arrays

        def forget(dead: Any) -> None:
            if key in arrays and arrays[key][0] is dead:
                del arrays[key]

        try:
            arrays[key] = (weakref.ref(array, forget), exit)
        except TypeError:
            return

    # Coming back

    def _watched_conversion(self, original: Any, converted: Any) -> Any:
        recorder = self.recorder
        number = self._hooks.guarded("tensorflow.number", self._number)

        def convert_to_eager_tensor(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            # Most of what is converted is a number in the program's text. That it is none of the rest is all there is to know.
            kind = type(args[0]) if args else None
            if kind is int or kind is str or kind is bool or (kind is float and not recorder.has_exits):
                number(result)
                return result
            converted(result, args[0] if args else kwargs["value"])
            return result

        return convert_to_eager_tensor

    def _number(self, tensor: Any) -> None:
        # TensorFlow keeps some numbers for itself and hands the same tensor out again.
        if self.recorder.seen(tensor) is None:
            self.recorder.number(tensor)

    def _converted(self, result: Any, given: Any) -> None:
        if given is not result and not self.recorder.state.is_ours and self.recorder.seen(result) is None:
            self.entered(result, given, sys._getframe(2))

    def _graph_constant(self, token: Any, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A host value became a constant of a graph that is being built."""
        entry = self.recorder.graphs.get(result.graph) if self.recorder.has_exits else None
        sources = self.origins(args[0] if args else kwargs["value"]) if entry is not None else ()
        if sources and entry is not None:
            entry.constants[result.op.name] = tuple(sources)

    def entered(self, tensor: Any, given: Any, frame: FrameType) -> Made:
        """`tensor` was made from the host value `given`, which may have left the framework before."""
        recorder = self.recorder
        sources, is_observed = self.origins(given), True
        if type(given) is float and not sources:
            sources, is_observed = self.text.computed(given, frame), False
            if not sources:
                return recorder.number(tensor)
        frames, mine = walk(frame)
        if not sources and frames and not recorder.state.is_backward and _has_floats(given):
            sources, is_observed = self.text.likely(given, frame), False
        record: Record = [
            LEAF,
            (),
            frames,
            recorder.state.scopes,
            next(recorder.clock),
            None,
            mine,
            dtype_number(tensor),
        ]
        if sources:
            record[0], record[1], record[5] = "constant", tuple(sources), HOST if is_observed else LIKELY
        return recorder.keep(tensor, record)

    def origins(self, given: Any) -> list[Any]:
        """The exits, or records, from which a host value was seen to come."""
        found: list[Any] = []
        for part in _parts(given):
            exit = self._origin(part)
            if exit is not None and exit not in found:
                found.append(exit)
        return found

    def _origin(self, value: Any) -> Any:
        if type(value) is float or (hasattr(value, "dtype") and getattr(value, "ndim", None) == 0):
            return self._float_origin(float(value)) if _is_real(value) else None
        while value is not None:
            known = self.arrays.get(id(value))
            if known is not None and known[0]() is value:
                return known[1]
            base = getattr(value, "base", None)
            if isinstance(base, memoryview):
                return self._by_memory(value)
            value = base
        return None

    def _by_memory(self, array: Any) -> Made | None:
        """The living tensor whose memory an array shows: `numpy.asarray(tensor)` copies nothing and tells nobody."""
        address = array.__array_interface__["data"][0]
        asarray = sys.modules["numpy"].asarray
        for made in list(self.recorder.made.values())[-_MOST_COMPARED:]:
            tensor = made()
            if tensor is None or made.record is NUMBER or tensor.shape != array.shape or not tensor.dtype.is_floating:
                continue
            if asarray(tensor).__array_interface__["data"][0] == address:
                return made
        return None

    def _float_origin(self, value: float) -> Any:
        exits = self.floats.get(value, ())
        return exits[0] if len(exits) == 1 and value not in (0.0, 1.0) else None

    # NumPy and Python functions that TensorFlow calls

    def _hidden(self, args: tuple[Any, ...], kwargs: Any) -> int:
        return next(self.recorder.clock)

    def _numpy_function(self, token: Any, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        inputs = args[1] if len(args) > 1 else kwargs.get("inp", ())
        recorder = self.recorder
        made = tuple(m for m in (_made_of(recorder, t) for t in inputs) if m is not None)
        frames, mine = walk(sys._getframe(2))
        record: Record = ["numpy_function", made, frames, recorder.state.scopes, next(recorder.clock), HOST, mine, 1]
        for index, tensor in enumerate(result if isinstance(result, (list, tuple)) else [result]):
            if tensor is not None and hasattr(tensor, "_numpy_internal"):
                recorder.keep(tensor, record, index)

    def _py_begins(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A `py_function` runs its body on eager tensors of its own; the op that holds it is reported afterwards."""
        tensors = args[3] if len(args) > 3 else kwargs.get("args", ())
        recorder = self.recorder
        bodies = []
        for tensor in tensors:
            inner: Record = ["py_function", (), (), recorder.state.scopes, next(recorder.clock), None, True, 1]
            if hasattr(tensor, "_numpy_internal"):
                recorder.keep(tensor, inner)
            bodies.append(inner)
        return bodies

    def _py_ends(self, token: Any, result: Any, args: tuple[Any, ...], kwargs: Any) -> None:
        outputs = result if isinstance(result, (list, tuple)) else [result]
        made = tuple(self.recorder.seen(t) for t in outputs)
        self.recorder.state.body = (token, made)

    # User-defined gradients

    def _watched_operation(self, original: Any, begin: Any) -> Any:
        """`record_operation` with the user's backward function observed, not changed."""

        def record_operation(*args: Any, **kwargs: Any) -> Any:
            observed = begin(args, kwargs)
            if observed is not None and "backward_function" in kwargs:
                kwargs["backward_function"] = observed
            elif observed is not None:
                args = (*args[:3], observed, *args[4:])
            return original(*args, **kwargs)

        return record_operation

    def _custom(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """`record_operation(name, outputs, inputs, backward)`: one op in the tape's eyes."""
        caller = sys._getframe(3)
        if not caller.f_code.co_filename.endswith("custom_gradient.py"):
            return None
        names = ("op_type", "output_tensors", "input_tensors", "backward_function")
        name, outputs, inputs, backward = (*args, *(kwargs[n] for n in names[len(args) :]))[:4]
        recorder = self.recorder
        frames, mine = walk(caller)
        function = _user_function(backward)
        # The function itself would keep alive all that it closes over.
        custom = CustomGradient(function.__code__ if function is not None else None)
        made = tuple(recorder.of(t) for t in inputs)
        number = dtype_number(outputs[0]) if outputs else 0
        record: Record = [
            str(name), made, frames, recorder.state.scopes, next(recorder.clock), custom, mine, number
        ]  # fmt: skip
        for index, tensor in enumerate(outputs):
            recorder.keep(tensor, record, index)
        note = self._hooks.guarded("tensorflow.custom.after", custom.note)

        def observed(*upstream: Any) -> Any:
            given = backward(*upstream)
            note(given)
            return given

        return observed


def _made_of(recorder: Recorder, given: Any) -> Made | None:
    handle = getattr(given, "handle", None) if hasattr(type(given), "handle") else None
    key = handle if handle is not None else given
    return recorder.of(key) if hasattr(key, "_numpy_internal") or handle is not None else None


def _is_real(value: Any) -> bool:
    return type(value) is float or getattr(getattr(value, "dtype", None), "kind", "") == "f"


def _has_floats(given: Any) -> bool:
    """Whether a host value holds real numbers: integers and booleans say too little to link anything."""
    return any(_is_real(part) for part in _parts(given))


def _parts(given: Any) -> Iterable[Any]:
    """The host values in what was converted: itself, or the first members of a list."""
    if isinstance(given, (list, tuple)):
        for part in given[:_MOST_LOOKED_AT]:
            yield from _parts(part)
    else:
        yield given


def _user_function(backward: Any) -> Any:
    """The user's own gradient function inside the wrapper that TensorFlow made of it."""
    for cell in getattr(backward, "__closure__", None) or ():
        held = cell.cell_contents
        if isinstance(held, FunctionType):
            if is_user_code(held.__code__):
                return held
    return None

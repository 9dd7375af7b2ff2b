"""What each primitive does to a gradient."""

from __future__ import annotations

from collections.abc import Sequence

from gradwhy.flow import Barrier, Passage

Edge = tuple[Passage, Barrier | None]

FLOWS: Edge = (Passage.FLOWS, None)

_STOPPED = frozenset({"stop_gradient"})
# The derivative is zero wherever it exists (JAX 0.10: `ad.defjvp_zero` and rules that give a symbolic zero).
_ZERO_DERIVATIVE = frozenset({"floor", "ceil", "round", "sign", "nextafter", "argmax", "argmin", "clz", "is_finite"})
_COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "eq_to", "lt_to", "le_to"})
_CALLBACKS = frozenset({"pure_callback", "io_callback", "python_callback", "outside_call"})
_CUSTOM = frozenset({"custom_jvp_call", "custom_vjp_call"})
_NO_REVERSE = frozenset({"while"})
# The first input that is a position in the ones before it.
_FIRST_INDEX = {"gather": 1, "dynamic_slice": 1, "dynamic_update_slice": 2}
_CHOICES = frozenset({"select_n", "cond", "switch"})


def is_differentiable(dtype: str) -> bool:
    """Whether values of a dtype carry a derivative in JAX."""
    return dtype.startswith(("float", "bfloat", "complex")) and dtype != "float0"


def passage(name: str, position: int, read: str, made: str, *, is_forward: bool = False) -> Edge:
    """What the primitive `name` does to a gradient from an output of dtype `made` to its input number `position`.

    `read` is that input's dtype. `is_forward` says that the question differentiates forward, where loops of unknown
    length have a derivative.
    """
    if name in _STOPPED:
        return Passage.CUT, Barrier.STOPPED
    if name in _CALLBACKS:
        return Passage.CUT, Barrier.HOST
    if not is_differentiable(read):
        return _whole_number(name, position)
    if name in _ZERO_DERIVATIVE:
        return Passage.CUT, Barrier.NOT_DIFFERENTIABLE
    if name in _COMPARISONS:
        return Passage.CUT, Barrier.CONDITION
    if not is_differentiable(made):
        return Passage.CUT, Barrier.INTEGER if name == "convert_element_type" else Barrier.NOT_DIFFERENTIABLE
    if name in _NO_REVERSE and not is_forward:
        return Passage.CUT, Barrier.NOT_REGISTERED
    return FLOWS


def dropped(name: str, given: Edge) -> Edge:
    """The edge of an op of which JAX kept no derivative, though it was asked to: `given`, if that already says why."""
    if given[0] is not Passage.FLOWS:
        return given
    return Passage.CUT, Barrier.CUSTOM if name in _CUSTOM else Barrier.NOT_DIFFERENTIABLE


def is_custom(name: str) -> bool:
    """Whether the derivative of the primitive is a rule that somebody wrote for one function."""
    return name in _CUSTOM


def _whole_number(name: str, position: int) -> Edge:
    if name in _CHOICES and position == 0:
        # What made the value a condition is the cut; that it then chooses is no second one.
        return Passage.NOTHING, Barrier.INTEGER
    if _is_position(name, position):
        return Passage.NOTHING, Barrier.INDEX
    return Passage.CUT, Barrier.INTEGER


def _is_position(name: str, position: int) -> bool:
    if name.startswith("scatter"):
        return position == 1
    return name in _FIRST_INDEX and position >= _FIRST_INDEX[name]


def dtypes_of(avals: Sequence[object]) -> tuple[str, ...]:
    """The dtypes of what an op reads or makes, as text; empty for what has none."""
    return tuple(str(getattr(aval, "dtype", "")) for aval in avals)

"""Which host value came from which value of the framework.

A value leaves as an array, a number or a list; later a host value comes back. Three kinds of link, the strongest first: the
same object or memory, the same number, and a value that left in the function in which one came back. The first two were
observed. The third is only a candidate, which the function's text has to confirm (`confirmed`).
"""

from __future__ import annotations

import struct
import weakref
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Any, Generic, TypeVar

from gradwhy.host.reading import feeding_names

Key = TypeVar("Key")
Frame = tuple[CodeType, int]
"""A user's function, and the instruction in it that ran."""

_MOST_ARRAYS = 256
_MOST_NUMBERS = 4096
_MOST_FUNCTIONS = 256
_MOST_IN_FUNCTION = 24
_MOST_PARTS = 64
_FEWEST_BITS = 20
"""A number with fewer significant bits (0.5, 3.0) may be equal by chance."""


@dataclass(frozen=True, slots=True)
class Exit(Generic[Key]):
    """A value that left the framework: where, and when."""

    key: Key
    frame: Frame | None
    when: int


@dataclass(frozen=True, slots=True)
class _Array(Generic[Key]):
    ref: weakref.ref[Any]
    start: int
    end: int
    exit: Exit[Key]


class HostLinks(Generic[Key]):
    """The host values of one run that came from the framework. `Key` is a backend's own word for a value."""

    def __init__(self) -> None:
        self._arrays: OrderedDict[int, _Array[Key]] = OrderedDict()
        self._numbers: OrderedDict[float, Exit[Key] | None] = OrderedDict()
        self._has_exits = False
        self._by_function: OrderedDict[int, tuple[CodeType, deque[Exit[Key]]]] = OrderedDict()

    @property
    def has_exits(self) -> bool:
        """Whether anything left since the last question, so that a number that comes in is worth a look."""
        return self._has_exits

    def left(self, value_key: Key, host_object: Any, frame_key: Frame | None, when: int) -> None:
        """The value `value_key` left the framework as `host_object`."""
        exit = Exit(value_key, frame_key, when)
        self._has_exits = True
        for part in _parts(host_object):
            if _is_array(part):
                self._note_array(part, exit)
            elif type(part) is float and _is_telling(part):
                # A number that left twice says nothing about which of the two came back.
                self._numbers[part] = None if part in self._numbers else exit
        while len(self._numbers) > _MOST_NUMBERS:
            self._numbers.popitem(last=False)
        if frame_key is not None:
            self._note_function(frame_key[0], exit)

    def origin(self, host_object: Any, frame_key: Frame | None) -> tuple[Key, bool] | None:
        """The value that a host value came from, and whether that was observed; not observed is a candidate only."""
        for part in _parts(host_object):
            exit = self._of_array(part) if _is_array(part) else self._numbers.get(part) if type(part) is float else None
            if exit is not None:
                return exit.key, True
        candidates = self.candidates(frame_key)
        return (candidates[0].key, False) if candidates else None

    def candidates(self, frame_key: Frame | None) -> tuple[Exit[Key], ...]:
        """The values that left in the function of `frame_key`, the latest first."""
        if frame_key is None:
            return ()
        known = self._by_function.get(id(frame_key[0]))
        return tuple(reversed(known[1])) if known else ()

    def question_answered(self) -> None:
        """Forget the numbers that left so far: they link only within one question."""
        self._numbers.clear()
        self._has_exits = False

    def _note_array(self, array: Any, exit: Exit[Key]) -> None:
        key = id(array)

        def forget(dead: Any) -> None:
            known = self._arrays.get(key)
            if known is not None and known.ref is dead:
                del self._arrays[key]

        try:
            self._arrays[key] = _Array(weakref.ref(array, forget), *_memory(array), exit)
        except TypeError:
            return
        self._arrays.move_to_end(key)
        while len(self._arrays) > _MOST_ARRAYS:
            self._arrays.popitem(last=False)

    def _note_function(self, code: CodeType, exit: Exit[Key]) -> None:
        known = self._by_function.get(id(code))
        # The code is kept beside its exits: an id is only good while its object lives.
        if known is None:
            known = self._by_function[id(code)] = (code, deque(maxlen=_MOST_IN_FUNCTION))
        self._by_function.move_to_end(id(code))
        known[1].append(exit)
        while len(self._by_function) > _MOST_FUNCTIONS:
            self._by_function.popitem(last=False)

    def _of_array(self, array: Any) -> Exit[Key] | None:
        if not self._arrays:
            return None
        part = array
        while part is not None:
            known = self._arrays.get(id(part))
            if known is not None and known.ref() is part:
                return known.exit
            part = getattr(part, "base", None)
        start, end = _memory(array)
        for known in reversed(list(self._arrays.values())):
            if start < known.end and known.start < end and known.ref() is not None:
                return known.exit
        return None


def confirmed(left: Frame | None, back: Frame | None) -> bool:
    """Whether the text of the function says that what came back at `back` was computed from what left at `left`."""
    if left is None or back is None or left[0] is not back[0]:
        return False
    feeding = feeding_names(*back)
    return feeding is not None and feeding.covers(*left)


def _parts(host_object: Any) -> Iterator[Any]:
    """A host value, or the first members of a list of them."""
    todo = deque([host_object])
    given = 0
    while todo and given < _MOST_PARTS:
        part = todo.popleft()
        given += 1
        if type(part) in (list, tuple):
            todo.extend(_first(part))
        else:
            yield part


def _first(parts: Iterable[Any]) -> list[Any]:
    return [part for part, _ in zip(parts, range(_MOST_PARTS), strict=False)]


def _is_array(value: Any) -> bool:
    return hasattr(type(value), "__array_interface__")


def _memory(array: Any) -> tuple[int, int]:
    """The first address of an array's memory, and the one past its last, as far as it lies in one piece."""
    start = int(array.__array_interface__["data"][0])
    return start, start + int(array.nbytes)


def _is_telling(number: float) -> bool:
    """Whether a number has enough significant bits not to be equal to another one by chance."""
    (bits,) = struct.unpack("<Q", struct.pack("<d", number))
    mantissa = bits & ((1 << 52) - 1)
    return number == number and mantissa != 0 and 53 - (mantissa & -mantissa).bit_length() + 1 >= _FEWEST_BITS

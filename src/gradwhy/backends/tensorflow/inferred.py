"""Links between host values that nobody saw, and that stand in the program's text."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from types import CodeType, FrameType
from typing import Any

from gradwhy.backends.tensorflow.record import Recorder
from gradwhy.backends.tensorflow.records import FRAMES, INPUTS, NUMBER, Made, Record, Written
from gradwhy.flow import Span
from gradwhy.host.around import lines_around
from gradwhy.host.reading import (
    Feeding,
    Leaving,
    feeding_names,
    first_of,
    inner_exit,
    leaving_inside_function,
    resolved,
)
from gradwhy.source.locate import is_within
from gradwhy.source.positions import is_user_code, span_of

_MOST_INFERRED = 32
"""How often the text is read for values that come back at one place: a training loop brings its data in there for ever."""
LIKELY = "likely"
"""The same, where the link was inferred and not observed."""


class Inferred:
    """Reads in the text what a host value was computed from. `exits` are those seen, by the code in which they were."""

    def __init__(
        self,
        recorder: Recorder,
        exits: dict[int, deque[tuple[int, Written]]],
        origin: Callable[[Any], Any],
    ) -> None:
        self.recorder, self.exits, self.origin = recorder, exits, origin
        self.counts: dict[tuple[int, int], int] = {}

    def computed(self, number: float, frame: FrameType | None) -> list[Any]:
        """The values that left in the lines in which a Python number was computed; none for one that stands in the text."""
        frame = _users_frame(frame)
        if frame is None or self.recorder.state.is_backward or not self.exits:
            return []
        key = id(frame.f_code), frame.f_lasti
        count = self.counts.get(key, 0)
        if count >= _MOST_INFERRED:
            return []
        if _is_held_around(number, frame):
            self.counts[key] = count + 1
            return self.around(span_of(frame.f_code, frame.f_lasti))
        exits = self.exits.get(id(frame.f_code))
        if not exits:
            return []
        only = frozenset(name for name, value in frame.f_locals.items() if value is number)
        feeding = self._feeding(frame, only)
        if feeding is None:
            return []
        if only:
            return list(dict.fromkeys(exit for lasti, exit in exits if feeding.covers(frame.f_code, lasti)))
        # A number without a name is the library's own, unless the very expression computes one.
        here = span_of(frame.f_code, frame.f_lasti)
        found = [exit for lasti, exit in exits if exit.record[FRAMES][0] == (frame.f_code, lasti)]
        spans = [(exit, _place(exit)) for exit in found] if here is not None and here.column else []
        return list(dict.fromkeys(exit for exit, at in spans if at is not None and here and is_within(at, here)))

    def _feeding(self, frame: FrameType, only: frozenset[str] | None = None) -> Feeding | None:
        place = (id(frame.f_code), frame.f_lasti)
        self.counts[place] = self.counts.get(place, 0) + 1
        return feeding_names(frame.f_code, frame.f_lasti, only) if self.counts[place] <= _MOST_INFERRED else None

    def likely(self, given: Any, frame: FrameType | None) -> list[Any]:
        """The values from which, by the text of the function, a host value was likely computed."""
        frame = _users_frame(frame)
        feeding = self._feeding(frame) if frame is not None else None
        if feeding is None or frame is None:
            return []
        found: list[Any] = []
        names = dict(frame.f_globals) if frame.f_locals is frame.f_globals else frame.f_locals
        for name, reads_at in feeding.names:
            value = names.get(name, frame.f_globals.get(name))
            span = inner_exit(reads_at, lambda called: resolved(called, frame)) or reads_at
            for exit in self._as_exit(value, name, span, frame):
                found.append(exit)
        for lasti, exit in self.exits.get(id(frame.f_code), ()):
            if feeding.covers(frame.f_code, lasti) and exit not in found:
                found.append(exit)
        seen_at = {at.line for exit in found if (at := _place(exit)) is not None}
        found += self._unnamed(feeding, frame, seen_at)
        return list(dict.fromkeys([*found, *self.around(span_of(frame.f_code, frame.f_lasti))]))

    def around(self, span: Span | None) -> list[Any]:
        """The values that left at the lines, outside of the function at `span`, where what its expression reads was computed."""
        lines = lines_around(span) if span is not None and self.exits else frozenset()
        if span is None or not lines:
            return []
        known = {id(exit): exit for exits in self.exits.values() for _, exit in exits}
        return [exit for exit in known.values() if any(_is_at(f, span.file, lines) for f in exit.record[FRAMES])]

    def _unnamed(self, feeding: Feeding, frame: FrameType, seen_at: set[int]) -> Iterable[Any]:
        """The values that nothing names, made in the arguments of the calls that turn values into host values.

        `seen_at` holds the lines at which values were seen to leave: there is nothing more to find.
        """
        for call in feeding.calls:
            inside = () if call.function is None else leaving_inside_function(resolved(call.function, frame))
            if call.function is not None and not inside:
                continue
            # What is passed to a function leaves at the first such call in it.
            passed = Leaving(first_of(inside) if inside else call.span, call.arguments)
            for leaving in (passed, *inside):
                if leaving.span.line in seen_at:
                    continue
                made = [m for span in leaving.arguments if (m := self._last_within(span)) is not None]
                for one in made:
                    scopes, time = self.recorder.state.scopes, next(self.recorder.clock)
                    yield _Read(["numpy", (one,), (), scopes, time, LIKELY, True, 0], leaving.span)
                if made:
                    break

    def _last_within(self, span: Span) -> Written | None:
        """The value that was made last by an op in the text at `span`."""
        for record in reversed(self.recorder.recent):
            frames = record[FRAMES]
            at = span_of(*frames[0]) if frames and record[INPUTS] else None
            if at is not None and at.file == span.file and is_within(at, span):
                return Written(record)
        return None

    def _as_exit(self, value: Any, name: str, span: Any, frame: FrameType) -> Iterable[Any]:
        recorder = self.recorder
        made = recorder.seen(value)
        if made is not None and made.record is not NUMBER:
            record: Record = ["numpy", (made,), (), recorder.state.scopes, next(recorder.clock), LIKELY, True, 0]
            yield _Read(record, span)
            return
        origin = self.origin(value) if hasattr(value, "base") else None
        if origin is not None:
            if isinstance(origin, Made):
                record = ["numpy", (origin,), (), recorder.state.scopes, next(recorder.clock), LIKELY, True, 0]
                yield _Read(record, span)
            else:
                yield origin


class _Read(Written):
    """A value that left where a NumPy function read it, which was not seen but stands in the text at `span`."""

    __slots__ = ("span",)

    def __init__(self, record: Record, span: Any) -> None:
        super().__init__(record)
        self.span = span


def _users_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame of the user's own code."""
    while frame is not None and not is_user_code(frame.f_code):
        frame = frame.f_back
    return frame


def _is_at(frame: tuple[CodeType, int], file: str, lines: frozenset[int]) -> bool:
    at = span_of(*frame)
    return at is not None and at.file == file and at.line in lines


def _is_held_around(number: float, frame: FrameType) -> bool:
    """Whether a number of the function comes from around it: a global that it names, or an attribute of its object."""
    # Most numbers stand in the text of the function: to look at its names each time would cost more than all else.
    if any(value is number for value in frame.f_code.co_consts):
        return False
    if any(value is number for value in frame.f_locals.values()):
        return False
    held = getattr(frame.f_locals.get("self"), "__dict__", {})
    return any(frame.f_globals.get(name, held.get(name)) is number for name in frame.f_code.co_names)


def _place(exit: Any) -> Span | None:
    """Where a value was seen to leave."""
    if isinstance(exit, _Read):
        return exit.span  # type: ignore[no-any-return]
    frames = exit.record[FRAMES]
    return span_of(*frames[0]) if frames else None

"""How closely the program is watched: which gradients are looked at, when the mode leaves, and when it comes back."""

from __future__ import annotations

from collections.abc import Hashable

from gradwhy.flow import Status

MOST_QUIET = 3
"""After that many backward passes in a row with nothing new the mode is taken off."""
_MOST_LOOKS_AT_WRONG = 4
_MOST_ANSWERS = 64


class Attention:
    """Which questions were asked before, and with which answers."""

    def __init__(self) -> None:
        self._answers: dict[Hashable, set[tuple[Status, ...]]] = {}
        self._times: dict[Hashable, int] = {}
        self._last: dict[Hashable, tuple[Hashable, tuple[Status, ...]]] = {}
        self._states: dict[int, tuple[int, int]] = {}
        self._quiet = 0

    @property
    def is_satisfied(self) -> bool:
        """Whether the last answers told nothing new."""
        return self._quiet >= MOST_QUIET

    def is_due(self, place: Hashable) -> bool:
        """Whether a full look is to be taken at the next pass from a place.

        It is dear. So it is taken at the first pass, at every one that comes twice as late as the one looked at before,
        and for a while at each one as long as something is wrong.
        """
        times = self._times.get(place, 0) + 1
        is_wrong = any(status is not Status.OK for status in self.last(place)[1])
        return times & (times - 1) == 0 or (is_wrong and times <= _MOST_LOOKS_AT_WRONG)

    def last(self, place: Hashable) -> tuple[Hashable, tuple[Status, ...]]:
        """The key and the statuses of the last answer to a question from a place."""
        return self._last.get(place, (place, ()))

    def saw(self, place: Hashable, key: Hashable, statuses: tuple[Status, ...], *, is_pass: bool) -> None:
        """A question was answered; `is_pass` says that it was a backward pass, which the quiet ones are counted by."""
        self._times[place] = self._times.get(place, 0) + 1
        self._last[place] = (key, statuses)
        answers = self._answers.setdefault(key, set())
        if statuses in answers:
            self._quiet += is_pass
            return
        self._quiet = 0
        if len(answers) < _MOST_ANSWERS:
            answers.add(statuses)

    def is_news(self, optimizer: int, parameters: int, missing: int) -> bool:
        """Whether an optimizer holds another number of parameters, or of missing gradients, than at its last step."""
        state = (parameters, missing)
        is_news = self._states.get(optimizer, state) != state
        self._states[optimizer] = state
        if is_news:
            self._quiet = 0
        return is_news

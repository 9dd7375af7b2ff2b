"""How long the program is watched, and when it is watched again."""

from __future__ import annotations

from collections.abc import Hashable

from gradwhy.flow import Status

MOST_QUIET = 3
"""After that many questions in a row with nothing new the mode is taken off."""


class Attention:
    """Which questions were asked before, and with which answers."""

    def __init__(self) -> None:
        self._seen: dict[Hashable, set[tuple[Status, ...]]] = {}
        self._states: dict[int, tuple[int, int]] = {}
        self._quiet = 0

    @property
    def is_satisfied(self) -> bool:
        """Whether the last answers told nothing new."""
        return self._quiet >= MOST_QUIET

    def is_first(self, key: Hashable) -> bool:
        """Whether the question was not asked before."""
        return key not in self._seen

    def saw(self, key: Hashable, statuses: tuple[Status, ...], *, is_pass: bool) -> None:
        """A question was answered; `is_pass` says that it was a backward pass, which the quiet ones are counted by."""
        answers = self._seen.setdefault(key, set())
        if statuses in answers:
            self._quiet += is_pass
        else:
            self._quiet = 0
            if len(answers) < 64:
                answers.add(statuses)

    def is_news(self, optimizer: int, parameters: int, missing: int) -> bool:
        """Whether an optimizer holds another number of parameters, or of missing gradients, than at its last step."""
        state = (parameters, missing)
        is_news = self._states.get(optimizer, state) != state
        self._states[optimizer] = state
        if is_news:
            self._quiet = 0
        return is_news

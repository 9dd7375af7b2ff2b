"""Who observes this process now, and the question that the program itself may put to them."""

from __future__ import annotations

from gradwhy.backends.contract import Backend
from gradwhy.running.attach import Attachments

_standing: list[Attachments] = []


def begin(attachments: Attachments) -> None:
    """From now on, these backends answer for the process."""
    _standing.append(attachments)


def end(attachments: Attachments) -> None:
    """No longer; calling it twice is harmless."""
    if attachments in _standing:
        _standing.remove(attachments)


def answer(target: object, source: object) -> bool:
    """Have the user's own question answered, see `gradwhy.why`; False where nobody observes."""
    backends: tuple[Backend, ...] = _standing[-1].backends if _standing else ()
    if not backends:
        return False
    if not any(backend.why(target, source) for backend in backends):
        raise TypeError(
            "gradwhy.why takes a target and a source of one observed framework, such as a loss and a variable"
        )
    return True

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


def why(target: object, source: object) -> bool:
    """Explain, beside the program's own output, why no gradient goes from `target` to `source`, or say that one does.

    `target` and `source` are values of one framework: a loss, and a variable, parameter or tensor of any shape. The answer
    is printed and kept in the report like any other finding. Gives whether somebody answered: False where the program runs
    without `gradwhy run`, so that the call may stay in a program. TypeError where no observed framework knows the two.
    """
    backends: tuple[Backend, ...] = _standing[-1].backends if _standing else ()
    if not backends:
        return False
    if not any(backend.why(target, source) for backend in backends):
        raise TypeError(
            "gradwhy.why takes a target and a source of one observed framework, such as a loss and a variable"
        )
    return True

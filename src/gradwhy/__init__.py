"""Why does this gradient not arrive, and what do I change?"""

from gradwhy.version import __version__

__all__ = ["__version__", "why"]


def why(target: object, source: object) -> bool:
    """Explain, beside the program's own output, why no gradient goes from `target` to `source`, or say that one does.

    `target` and `source` are values of one framework: a loss, and a variable, parameter or tensor of any shape. The answer
    is printed and kept in the report like any other finding. Gives whether somebody answered: False where the program runs
    without `gradwhy run`, so that the call may stay in a program. TypeError where no observed framework knows the two.
    """
    # A program that only imports us, and every start of the command line, pays for nothing that it does not use.
    from gradwhy.running.observing import answer

    return answer(target, source)

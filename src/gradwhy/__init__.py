"""Why does this gradient not arrive, and what do I change?"""

from gradwhy.running.observing import why
from gradwhy.version import __version__

__all__ = ["__version__", "why"]

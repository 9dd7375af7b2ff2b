"""The program leaves with a status of its own after a gradient was lost."""

import atexit
import sys

import jax

atexit.register(print, "at exit")
if jax.grad(lambda w: jax.lax.stop_gradient(w) * 2.0)(2.0) == 0.0:
    sys.exit(3)

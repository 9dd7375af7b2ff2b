"""The user interrupts the program, and it says so."""

import os
import signal

import jax

try:
    for step in range(10):
        print(step, jax.grad(lambda w: jax.lax.stop_gradient(w) ** 2)(2.0))
        if step == 2:
            os.kill(os.getpid(), signal.SIGINT)
except KeyboardInterrupt:
    print("interrupted")
raise KeyboardInterrupt

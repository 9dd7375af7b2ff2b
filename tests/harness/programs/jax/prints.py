"""Both streams, warnings, logging, and tracebacks that the program prints itself."""

import logging
import sys
import traceback
import warnings

import jax
import jax.numpy as jnp

logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s", stream=sys.stdout)
print("gradient", jax.grad(lambda w: jnp.sum(jnp.round(w)))(jnp.array([1.0, 2.0])))
print("to the other stream", file=sys.stderr)
print(__name__, __file__, sys.argv, sys.path[0], sys.modules["__main__"].__dict__ is globals())

try:
    jax.grad(lambda w: w * 2)(jnp.ones(3))
except TypeError as problem:
    print("vector:", problem)
    traceback.print_exc(file=sys.stdout)
    logging.exception("logged")
    print("frames", [frame.name for frame in traceback.extract_tb(problem.__traceback__)])

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    warnings.warn("the program's own", UserWarning, stacklevel=1)
    jax.grad(lambda w: jnp.asarray(w, jnp.float64) * 2)(1.0)
print([(str(warning.message)[:40], warning.lineno, warning.filename == __file__) for warning in caught])
sys.stdout.write("no newline at the end")

"""Both streams, warnings, logging, and tracebacks that the program prints itself."""

import logging
import sys
import traceback
import warnings

import tensorflow as tf

logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s", stream=sys.stdout)
w = tf.Variable([1.0, 2.0])

with tf.GradientTape() as tape:
    loss = tf.reduce_sum(tf.round(w))
print("gradient", tape.gradient(loss, w))
print("to the other stream", file=sys.stderr)
print(__name__, __file__, sys.argv, sys.path[0], sys.modules["__main__"].__dict__ is globals())

try:
    tape.gradient(loss, w)
except RuntimeError as problem:
    print("again:", problem)
    traceback.print_exc(file=sys.stdout)
    logging.exception("logged")
    print("frames", [frame.name for frame in traceback.extract_tb(problem.__traceback__)])

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    warnings.warn("the program's own", UserWarning, stacklevel=1)
print([(str(warning.message), warning.lineno) for warning in caught])

try:
    with tf.GradientTape() as tape:
        tape.watch("text")
except Exception as problem:
    print(type(problem).__name__, problem)
sys.stdout.write("no newline at the end")

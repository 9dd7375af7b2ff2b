"""Both streams, warnings, logging, and tracebacks that the program prints itself."""

import logging
import sys
import traceback
import warnings

import torch

logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s", stream=sys.stdout)
w = torch.tensor([1.0, 2.0], requires_grad=True)
loss = torch.sum(torch.round(w)) + torch.sum(w * w)
loss.backward()
print("gradient", w.grad)
print("to the other stream", file=sys.stderr)
print(__name__, __file__, sys.argv, sys.path[0], sys.modules["__main__"].__dict__ is globals())

try:
    loss.backward()
except RuntimeError as problem:
    print("again:", problem)
    traceback.print_exc(file=sys.stdout)
    logging.exception("logged")
    print("frames", [frame.name for frame in traceback.extract_tb(problem.__traceback__)])

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    warnings.warn("the program's own", UserWarning, stacklevel=1)
    print((w * 2).grad)
print([(str(warning.message)[:40], warning.lineno, warning.filename == __file__) for warning in caught])
sys.stdout.write("no newline at the end")

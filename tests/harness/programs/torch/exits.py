"""The program leaves with a status of its own after a gradient was lost."""

import atexit
import sys

import torch

atexit.register(print, "at exit")
w = torch.tensor(2.0, requires_grad=True)
v = torch.tensor(1.0, requires_grad=True)
loss = w.detach() * v
if torch.autograd.grad(loss, w, allow_unused=True)[0] is None:
    sys.exit(3)

"""The user interrupts the program, and it says so."""

import os
import signal

import torch

w = torch.tensor(2.0, requires_grad=True)
v = torch.tensor(1.0, requires_grad=True)
try:
    for step in range(10):
        loss = torch.square(w.detach()) * v
        print(step, torch.autograd.grad(loss, w, allow_unused=True))
        if step == 2:
            os.kill(os.getpid(), signal.SIGINT)
except KeyboardInterrupt:
    print("interrupted")
raise KeyboardInterrupt

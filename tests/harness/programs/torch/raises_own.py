"""An error of the program's own, with a cause, deep in its own functions."""

import torch


class Unusable(Exception):
    pass


def loss_of(x):
    try:
        return torch.matmul(x, x)
    except RuntimeError as problem:
        raise Unusable("shapes do not fit") from problem


w = torch.ones((2, 3), requires_grad=True)
loss = loss_of(w)
print("not reached")

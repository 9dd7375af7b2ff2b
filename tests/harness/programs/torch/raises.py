"""A missing gradient that ends the program with an error of the framework."""

import torch

torch.manual_seed(1)
model = torch.nn.Linear(3, 2)


def train(x):
    loss = model(x).detach().mean()
    print("requires", loss.requires_grad)
    loss.backward()


train(torch.ones(2, 3))
print("not reached")

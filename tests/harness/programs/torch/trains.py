"""A loop with random numbers, an optimizer and a healthy gradient: every bit of it is printed."""

import hashlib
import random

import numpy as np
import torch
from torch import nn

print("random", float(np.random.default_rng(3).normal()).hex())
torch.manual_seed(7)
random.seed(1)
np.random.seed(1)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
x, y = torch.randn(16, 4), torch.rand(16, 1)

for step in range(5):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(step, loss.item().hex(), float(norm).hex())

for name, parameter in model.named_parameters():
    print(name, hashlib.sha256(parameter.detach().numpy().tobytes()).hexdigest())
print("random", random.random(), np.random.random().hex(), torch.rand(()).item().hex())

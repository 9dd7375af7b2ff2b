"""What PyTorch refuses, and goes on from: writes, optimizers, copies, several processes."""

import copy

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

torch.manual_seed(1)
net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
twin = copy.deepcopy(net)
print(all(torch.equal(a, b) for a, b in zip(net.parameters(), twin.parameters(), strict=True)))


def refused(what):
    try:
        what()
    except (RuntimeError, ValueError) as problem:
        print(type(problem).__name__, str(problem).splitlines()[0][:70])


weight = torch.ones(2, requires_grad=True)
refused(lambda: weight.add_(1.0))
refused(lambda: torch.tensor([1, 2]).requires_grad_())
refused(lambda: torch.optim.SGD([weight * 2], lr=0.1))
refused(lambda: torch.optim.SGD([], lr=0.1))
refused(lambda: copy.deepcopy(weight * 2))

optimizer = torch.optim.SGD(twin.parameters(), lr=0.1)
twin(torch.randn(2, 3)).sum().backward()
optimizer.zero_grad()
optimizer.step()
print(twin[0].weight.grad)

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
spare = nn.ModuleDict({"used": nn.Linear(3, 1), "spare": nn.Linear(3, 1)})
spare.forward = lambda x: spare["used"](x)
parallel = DistributedDataParallel(spare)
parallel(torch.randn(2, 3)).sum().backward()
refused(lambda: parallel(torch.randn(2, 3)))
dist.destroy_process_group()

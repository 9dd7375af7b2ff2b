"""Programs in which a gradient is missing, or zero, as it should be: no more than a note is said."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from observed import Ran

SILENT = {
    "low-rank-adapter-begins-with-zeros": """
class Adapted(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base, self.down, self.up = base, nn.Linear(8, 2, bias=False), nn.Linear(2, 4, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.base(x) + 2.0 * self.up(self.down(x))


net = Adapted(nn.Linear(8, 4).requires_grad_(False))
opt = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad])
net(torch.randn(5, 8)).pow(2).mean().backward()
opt.step()
""",
    "gated-branch-begins-with-zeros": """
branch, head, gate = nn.Linear(8, 8), nn.Linear(8, 1), nn.Linear(8, 8)
nn.init.zeros_(gate.weight)
nn.init.zeros_(gate.bias)
opt = torch.optim.Adam([*branch.parameters(), *head.parameters(), *gate.parameters()])
x = torch.randn(5, 8)
head(x + gate(x) * torch.tanh(branch(x))).pow(2).mean().backward()
opt.step()
""",
    "state-begins-with-zeros": """
cell, old, head = nn.RNNCell(3, 4), nn.Linear(4, 4), nn.Linear(4, 1)
opt = torch.optim.SGD([*cell.parameters(), *old.parameters(), *head.parameters()], lr=0.1)
h = torch.zeros(2, 4)
h = cell(torch.randn(2, 3), h) + old(torch.zeros(2, 4))
head(h).pow(2).mean().backward()
opt.step()
""",
    "last-bias-in-a-loss-of-gradients": """
net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.Adam(net.parameters())
x = torch.randn(9, 2, requires_grad=True)
slope = torch.autograd.grad(net(x).sum(), x, create_graph=True)[0]
slope.pow(2).mean().backward()
opt.step()
""",
    "frozen-parameters-that-nobody-owns": """
backbone, head = nn.Linear(4, 8).requires_grad_(False), nn.Linear(8, 2)
opt = torch.optim.SGD(head.parameters(), lr=0.1)
head(backbone(torch.randn(8, 4))).pow(2).mean().backward()
opt.step()
""",
    "frozen-parameters-that-the-optimizer-holds": """
net = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2))
net[0].requires_grad_(False)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
with torch.no_grad():
    features = net[0](torch.randn(8, 4))
net[1](features).pow(2).mean().backward()
opt.step()
""",
    "discriminator-and-generator-in-turn": """
G, D = nn.Linear(2, 3), nn.Linear(3, 1)
og, od = torch.optim.SGD(G.parameters(), lr=0.1), torch.optim.SGD(D.parameters(), lr=0.1)
for _ in range(3):
    fake = G(torch.randn(8, 2))
    od.zero_grad()
    (F.softplus(-D(torch.randn(8, 3))) + F.softplus(D(fake.detach()))).mean().backward()
    od.step()
    og.zero_grad()
    F.softplus(-D(fake)).mean().backward()
    og.step()
""",
    "target-network-and-moving-average": """
import copy

q = nn.Linear(4, 2)
target = copy.deepcopy(q)
average = torch.optim.swa_utils.AveragedModel(q)
opt = torch.optim.Adam(q.parameters())
for _ in range(3):
    with torch.no_grad():
        goal = 0.9 * target(torch.randn(8, 4)).max(1).values
    opt.zero_grad()
    F.mse_loss(q(torch.randn(8, 4))[:, 0], goal).backward()
    opt.step()
    average.update_parameters(q)
    for slow, fast in zip(target.parameters(), q.parameters()):
        slow.data.mul_(0.99).add_(0.01 * fast.data)
""",
    "teacher-hidden-in-a-list": """
class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.hidden = nn.Linear(4, 2), [nn.Linear(4, 2)]

    def forward(self, x):
        return F.mse_loss(self.net(x), self.hidden[0](x))


student = Student()
opt = torch.optim.SGD(student.parameters(), lr=0.1)
student(torch.randn(8, 4)).backward()
opt.step()
""",
    "layers-in-a-list-that-another-optimizer-holds": """
class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.main, self.others = nn.Linear(4, 2), [nn.Linear(2, 2), nn.Linear(2, 1)]

    def forward(self, x):
        return self.others[1](self.others[0](self.main(x)))


two = Two()
first = torch.optim.SGD(two.parameters(), lr=0.1)
second = torch.optim.SGD([p for layer in two.others for p in layer.parameters()], lr=0.1)
two(torch.randn(8, 4)).pow(2).mean().backward()
first.step()
second.step()
""",
    "head-that-no-loss-needs": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.pooler, self.head, self.spare = (nn.Linear(4, 4) for _ in range(4))

    def forward(self, x):
        h = self.body(x)
        return self.head(h), torch.tanh(self.pooler(h))


net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
net(torch.randn(8, 4))[0].pow(2).mean().backward()
opt.step()
print(sum(p.grad.norm().item() > 0 for p in net.parameters() if p.grad is not None))
""",
    "one-gradient-given-up-on-purpose": """
net, last = nn.Linear(4, 4), nn.Linear(4, 1)
opt = torch.optim.SGD([*net.parameters(), *last.parameters()], lr=0.1)
last(net(torch.randn(8, 4))).pow(2).mean().backward()
for p in last.parameters():
    p.grad = None
opt.step()
""",
    "gradients-made-sure-to-be-cleared": """
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
net(torch.randn(8, 4)).pow(2).mean().backward()
opt.step()
opt.zero_grad()
assert all(p.grad is None for p in net.parameters())
print([p.grad is None for p in net.parameters()])
""",
    "experts-that-a-batch-leaves-out": """
experts, gate = nn.ModuleList(nn.Linear(4, 4) for _ in range(4)), nn.Linear(4, 4)
opt = torch.optim.SGD([*experts.parameters(), *gate.parameters()], lr=0.1)
for step in range(4):
    x = torch.randn(2, 4)
    out = gate(x).softmax(1)[:, step : step + 1] * experts[step](x)
    opt.zero_grad()
    out.pow(2).mean().backward()
    opt.step()
""",
}


@pytest.mark.parametrize("name", SILENT)
def test_nothing_is_wrong(name: str, run: Callable[[str], Ran]) -> None:
    ran = run(SILENT[name])
    assert ran.plain.status == 0, ran.plain.err
    assert not ran.loud, [(found.cause, [source.name for source in found.sources]) for found in ran.loud]

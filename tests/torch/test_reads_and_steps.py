"""Gradients that are missing without an exception: where `.grad` is read, and where an optimizer steps."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from observed import Ran

LOST = {
    "result-of-an-op": (
        "non-leaf",
        "prompt",
        """
prompt = torch.randn(4, requires_grad=True) * 0.02  # here
prompt.pow(2).sum().backward()
print(prompt.grad)
""",
    ),
    "parametrized-weight": (
        "non-leaf",
        "layer.weight",
        """
from torch.nn.utils.parametrizations import weight_norm

layer = weight_norm(nn.Linear(3, 3))
layer(torch.ones(1, 3)).sum().backward()
print(layer.weight.grad)  # here
""",
    ),
    "misspelt-attribute": (
        "not-watched",
        "image",
        """
image = torch.rand(3, 3)
image.require_grad = True  # here
nn.Linear(3, 1)(image).sum().backward()
print(image.grad)
""",
    ),
    "plain-tensor-in-a-module": (
        "not-watched",
        "m.scale",
        """
class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.scale = nn.Linear(2, 2), torch.ones(2)  # here

    def forward(self, x):
        return self.lin(x) * self.scale


m = Scaled()
m(torch.ones(1, 2)).sum().backward()
print(m.scale.grad)
""",
    ),
    "cleared-before-the-step": (
        "cleared",
        "net.weight",
        """
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    net(torch.randn(8, 4)).pow(2).mean().backward()
    opt.zero_grad()  # here
    opt.step()
""",
    ),
    "cleared-before-the-read": (
        "cleared",
        "net.weight",
        """
net = nn.Linear(4, 1)
net(torch.randn(8, 4)).pow(2).mean().backward()
net.zero_grad()  # here
print(net.weight.grad)
""",
    ),
    "optimizer-made-before-the-head": (
        "unregistered",
        "opt.param_groups[0]['params'][2]",
        """
net = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 9))
opt = torch.optim.Adam(net.parameters())
net[1] = nn.Linear(8, 2)  # here
for _ in range(2):
    opt.zero_grad()
    net(torch.randn(8, 4)).pow(2).mean().backward()
    opt.step()
""",
    ),
    "optimizer-of-a-model-that-was-made-anew": (
        "unregistered",
        "opt.param_groups[0]['params'][0]",
        """
def build():
    return nn.Linear(4, 2)


net = build()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
net = build()  # here
net(torch.randn(8, 4)).pow(2).mean().backward()
opt.step()
""",
    ),
    "modules-in-a-dict": (
        "unregistered",
        "net.experts['b'].weight",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(4, 8)
        self.experts = {"a": nn.Linear(8, 2), "b": nn.Linear(8, 2)}  # here

    def forward(self, x):
        h = self.stem(x)
        return self.experts["a"](h) + self.experts["b"](h)


net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    opt.zero_grad()
    net(torch.randn(8, 4)).pow(2).mean().backward()
    opt.step()
""",
    ),
    "copy-is-trained": (
        "rewrapped",
        "net.weight",
        """
import copy

net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
worker = copy.deepcopy(net)  # here
worker(torch.randn(8, 4)).pow(2).mean().backward()
opt.step()
""",
    ),
    "gradient-function-gives-none": (
        "custom-gradient",
        "bias",
        """
class AddBias(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, b):
        return x + b

    @staticmethod
    def backward(ctx, g):
        return g, None  # here


bias, w = nn.Parameter(torch.zeros(3)), nn.Parameter(torch.randn(4, 3))
opt = torch.optim.SGD([bias, w], lr=0.1)
AddBias.apply(torch.randn(5, 4) @ w, bias).pow(2).mean().backward()
opt.step()
""",
    ),
    "decorator-pauses": (
        "paused",
        "net.weight",
        """
net, head = nn.Linear(4, 8), nn.Linear(8, 1)
opt = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)


@torch.no_grad()  # here
def encode(x):
    return net(x)


head(encode(torch.randn(8, 4))).pow(2).mean().backward()
opt.step()
""",
    ),
}


@pytest.mark.parametrize("name", LOST)
def test_a_missing_gradient_is_explained_at_its_line(name: str, run: Callable[[str], Ran]) -> None:
    cause, source, text = LOST[name]
    ran = run(text)
    assert ran.told(source).cause == cause
    assert ran.lines(source) & ran.marked


TWO_HEADS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.main, self.aux = nn.Linear(4, 8), nn.Linear(8, 2), nn.Linear(8, 1)

    def forward(self, x):
        h = self.body(x)
        FORWARD


net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
net(torch.randn(8, 4)).pow(2).mean().backward()
opt.step()
"""


@pytest.mark.parametrize(
    ("forward", "label", "line"),
    [("score, _ = self.main(h), self.aux(h); return score", "dropped", 14), ("return self.main(h)", "beside", 14)],
)
def test_a_part_that_no_loss_needs_is_noted_where_the_parts_beside_it_are_used(
    forward: str, label: str, line: int, run: Callable[[str], Ran]
) -> None:
    ran = run(TWO_HEADS.replace("FORWARD", forward))
    (found,) = ran.report.findings
    assert (found.cause, {source.name for source in found.sources}) == ("unused", {"net.aux.weight", "net.aux.bias"})
    assert found.place is not None and found.place.line == line
    assert found.labels[0].text.key == f"unused/labels/{label}"
    assert not ran.loud


def test_a_read_of_such_a_part_is_an_error(run: Callable[[str], Ran]) -> None:
    ran = run(TWO_HEADS.replace("FORWARD", "return self.main(h)").replace("opt.step()", "print(net.aux.weight.grad)"))
    assert ran.told("net.aux.weight").cause == "unused"

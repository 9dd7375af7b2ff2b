"""The exceptions of PyTorch's: which source, which cause, at which line; and the exception itself is what it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from gradwhy.flow import Severity
from observed import Ran


@dataclass(frozen=True, slots=True)
class Refused:
    """A program that ends with an exception, and what is to be said of it."""

    message: str
    cause: str
    source: str
    text: str


REFUSED = {
    "no-grad-fn": Refused(
        "does not require grad and does not have a grad_fn",
        "non-differentiable-op",
        "net.weight",
        """
net = nn.Linear(4, 3)
chosen = net(torch.randn(8, 4)).argmax(1)  # here
(chosen.float() - 1).pow(2).mean().backward()
""",
    ),
    "no-leaf-is-alive": Refused(
        "does not require grad",
        "rebound",
        "w",
        """
w = torch.randn(4, 1, requires_grad=True)
x = torch.randn(16, 4)
for step in range(2):
    loss = (x @ w).pow(2).mean()
    loss.backward()
    with torch.no_grad():
        w = w - 0.1 * w.grad  # here
""",
    ),
    "frozen-without-an-optimizer": Refused(
        "does not require grad",
        "frozen",
        "net.weight",
        """
net = nn.Linear(4, 1)
net.weight.requires_grad_(False)  # here
net.bias.requires_grad_(False)  # here
net(torch.randn(8, 4)).mean().backward()
""",
    ),
    "item-assignment": Refused(
        "modified by an inplace operation",
        "in-place",
        "lin.weight",
        """
lin = nn.Linear(4, 4)
h = torch.sigmoid(lin(torch.randn(5, 4)))
h[:, 0] = 0.0  # here
h.sum().backward()
""",
    ),
    "augmented-assignment": Refused(
        "modified by an inplace operation",
        "in-place",
        "lin.weight",
        """
lin = nn.Linear(4, 4)
h = torch.exp(lin(torch.randn(5, 4)))
kept = h * 1.0
h *= 2.0  # here
(h + kept).sum().backward()
""",
    ),
    "step-of-an-optimizer": Refused(
        "modified by an inplace operation",
        "in-place",
        "actor.weight",
        """
actor, critic = nn.Linear(3, 2), nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(critic.parameters(), lr=0.1)
actor_loss = -critic(actor(torch.randn(5, 3))).mean()
critic(torch.randn(5, 2)).pow(2).mean().backward()
opt.step()  # here
actor_loss.backward()
""",
    ),
    "leaf": Refused(
        "a leaf Variable that requires grad is being used in an in-place operation",
        "in-place",
        "w",
        """
w = torch.ones(3, requires_grad=True)
w += 1.0  # here
""",
    ),
    "view-of-a-leaf": Refused(
        "a view of a leaf Variable that requires grad is being used in an in-place operation",
        "in-place",
        "w",
        """
w = torch.ones(3, requires_grad=True)
w[0] = 1.0  # here
""",
    ),
    "second-backward": Refused(
        "backward through the graph a second time",
        "wrong-tape",
        "lin.weight",
        """
lin = nn.Linear(4, 4)
h = torch.sigmoid(lin(torch.randn(5, 4)))
h.pow(2).sum().backward()
h.exp().sum().backward()  # here
""",
    ),
    "not-used": Refused(
        "appears to not have been used in the graph",
        "unused",
        "b.weight",
        """
a, b = nn.Linear(3, 3), nn.Linear(3, 3)
x = torch.randn(2, 3)
loss = a(x).sum()
penalty = b(x).pow(2).sum()  # here
torch.autograd.grad(loss, [a.weight, b.weight])
""",
    ),
    "several-numbers": Refused(
        "grad can be implicitly created only for scalar outputs",
        "non-scalar-target",
        "net.weight",
        """
net = nn.Linear(4, 3)
losses = F.cross_entropy(net(torch.randn(8, 4)), torch.zeros(8, dtype=torch.long), reduction="none")  # here
losses.backward()
""",
    ),
    "integers": Refused(
        "nly Tensors of floating point dtype can require gradients",
        "integer-dtype",
        "x",
        """
x = torch.tensor([1, 2, 3])  # here
x.requires_grad_()
""",
    ),
    "once-differentiable": Refused(
        "marked with @once_differentiable",
        "custom-gradient",
        "w",
        """
from torch.autograd.function import once_differentiable


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    @once_differentiable  # here
    def backward(ctx, g):
        return 2 * g * ctx.saved_tensors[0]


w = torch.randn(3, requires_grad=True)
slope = torch.autograd.grad((Square.apply(w) * w).sum(), w, create_graph=True)[0]
slope.pow(2).sum().backward()
""",
    ),
    "optimizer-without-a-leaf": Refused(
        "can't optimize a non-leaf Tensor",
        "non-leaf",
        "latent",
        """
latent = torch.randn(1, 6, requires_grad=True).double()  # here
torch.optim.Adam([latent])
""",
    ),
    "optimizer-without-a-leaf-from-a-generator": Refused(
        "can't optimize a non-leaf Tensor",
        "non-leaf",
        "latent",
        """
latent = torch.randn(1, 6, requires_grad=True) * 0.1  # here
torch.optim.SGD((t for t in [latent]), lr=0.1)
""",
    ),
    "optimizer-without-parameters": Refused(
        "optimizer got an empty parameter list",
        "unregistered",
        "net.layers[0].weight",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(4, 8), nn.Linear(8, 1)]  # here


net = Net()
torch.optim.SGD(net.parameters(), lr=0.1)
""",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_the_refusal_is_explained_and_stays_what_it_is(name: str, run: Callable[[str], Ran]) -> None:
    refused = REFUSED[name]
    ran = run(refused.text)
    assert ran.plain.status == 1 and refused.message in ran.observed.err
    assert ran.plain.err.splitlines()[-1] in ran.observed.err
    found = ran.told(refused.source)
    assert (found.cause, found.severity) == (refused.cause, Severity.ERROR)
    assert ran.lines(refused.source) & ran.marked


def test_the_write_and_the_op_that_kept_the_value_are_both_named(run: Callable[[str], Ran]) -> None:
    ran = run("lin = nn.Linear(4, 4)\nh = torch.tanh(lin(torch.ones(2, 4)))\nh.mul_(2.0)\nh.sum().backward()\n")
    found = ran.told("lin.weight")
    assert {label.text.key: label.span.line for label in found.labels} == {
        "in-place/labels/cut": 8,
        "in-place/labels/saved": 7,
        "labels/target": 9,
    }


def test_both_passes_are_named_where_the_graph_was_freed(run: Callable[[str], Ran]) -> None:
    ran = run("w = torch.ones(3, requires_grad=True)\nloss = w.exp().sum()\nloss.backward()\nloss.backward()\n")
    found = ran.told("w")
    assert found.place is not None and found.place.line == 9
    assert 8 in {label.span.line for label in found.labels}


def test_sources_that_have_their_gradient_are_not_blamed_for_a_write(run: Callable[[str], Ran]) -> None:
    ran = run(REFUSED["step-of-an-optimizer"].text)
    assert {source.name for found in ran.loud for source in found.sources} == {"actor.weight", "actor.bias"}


def test_an_exception_that_the_program_expects_is_its_own(run: Callable[[str], Ran]) -> None:
    ran = run("w = torch.ones(3)\ntry:\n    w.view(2, 2)\nexcept RuntimeError as problem:\n    print(problem)\n")
    assert ran.plain.status == 0 and not ran.report.findings


LATE = """
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)


def validate():
    SWITCH
    return net(torch.randn(8, 4)).pow(2).mean().item()


for epoch in range(2):
    for _ in range(10):
        loss = net(torch.randn(8, 4)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    AFTER
    print(validate() > 0)
"""


@pytest.mark.parametrize(
    ("switch", "after", "cause", "line"),
    [
        ("torch.set_grad_enabled(False)", "pass", "paused", 12),
        ("pass", "net.requires_grad_(False)", "frozen", 22),
        ("pass", "loss.backward()", "wrong-tape", 22),
    ],
)
def test_what_is_refused_after_the_watching_has_ended_is_explained(
    switch: str, after: str, cause: str, line: int, run: Callable[[str], Ran]
) -> None:
    ran = run(LATE.replace("SWITCH", switch).replace("AFTER", after))
    assert ran.plain.status == 1
    found = ran.told("net.weight")
    assert (found.cause, found.severity) == (cause, Severity.ERROR)
    assert found.place is not None and found.place.line == line


def test_an_exception_of_the_programs_own_is_not_explained(run: Callable[[str], Ran]) -> None:
    own = 'raise RuntimeError("element 0 of tensors does not require grad and does not have a grad_fn")'
    ran = run(LATE.replace("SWITCH", "pass").replace("AFTER", own))
    assert ran.plain.status == 1 and not ran.report.findings

"""Long runs: the same numbers to the last bit, the same compiled graphs, flat memory, and what begins late is found."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from gradwhy.flow import Status
from observed import Ran

LOOP = """
opt = torch.optim.AdamW(net.parameters(), lr=1e-2)
for step in range(100):
    opt.zero_grad()
    loss = loss_of(step)
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
    print(loss.item().hex())
print([p.detach().double().sum().item().hex() for p in net.parameters()], torch.rand(1).item().hex())
"""
MODELS = {
    "mlp": """
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 3))


def loss_of(step):
    return F.cross_entropy(net(torch.randn(16, 8)), torch.randint(0, 3, (16,)))
""",
    "cnn": """
net = nn.Sequential(
    nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 3)
)


def loss_of(step):
    return F.cross_entropy(net(torch.randn(4, 1, 8, 8)), torch.randint(0, 3, (4,)))
""",
    "transformer": """
embed, head = nn.Embedding(20, 16), nn.Linear(16, 20)
block = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
net = nn.ModuleList([embed, block, head])


def loss_of(step):
    ids = torch.randint(0, 20, (2, 7))
    hidden = block(embed(ids[:, :-1]), nn.Transformer.generate_square_subsequent_mask(6))
    return F.cross_entropy(head(hidden).flatten(0, 1), ids[:, 1:].flatten())
""",
}


@pytest.mark.parametrize("name", MODELS)
def test_a_hundred_steps_give_the_same_bits(name: str, run: Callable[[str], Ran]) -> None:
    ran = run(MODELS[name] + LOOP)
    assert ran.plain.status == 0 and len(ran.plain.out.splitlines()) == 101
    assert not ran.loud


def test_a_compiled_model_has_the_same_graphs_and_the_same_results(run: Callable[[str], Ran]) -> None:
    ran = run("""
graphs = []


def counting(graph, inputs):
    graphs.append(len(graph.graph.nodes))
    return graph.forward


net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
compiled = torch.compile(net, backend=counting)


@torch.compile(backend=counting)
def loss_of(out):
    if out.shape[0] > 4:
        out = out * 2
    return out.pow(2).mean()


for _ in range(8):
    opt.zero_grad()
    loss = loss_of(compiled(torch.randn(16, 8)))
    loss.backward()
    opt.step()
    print(loss.item().hex())
print(graphs)
""")
    assert ran.plain.status == 0 and ran.plain.out.splitlines()[-1].count(",") == 1
    assert not ran.loud


LATE = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.side, self.head = nn.Linear(4, 8), nn.Linear(8, 8), nn.Linear(8, 1)

    def forward(self, x, step):
        h = self.body(x)
        if step < 500 or BRANCH:
            h = h + self.side(h)
        return self.head(h)


net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(510):
    if step == 500 and FREEZE:
        net.side.requires_grad_(False)  # here
    opt.zero_grad()
    net(torch.randn(4, 4), step).pow(2).mean().backward()
    opt.step()
"""


def test_a_freeze_that_begins_at_step_500_is_found(run: Callable[[str], Ran]) -> None:
    ran = run(LATE.replace("BRANCH", "True").replace("FREEZE", "True"))
    (found,) = ran.report.findings
    assert (found.cause, {source.name for source in found.sources}) == ("frozen", {"net.side.weight", "net.side.bias"})
    assert found.place is not None and found.place.line in ran.marked


def test_a_branch_that_is_left_from_step_500_on_is_found(run: Callable[[str], Ran]) -> None:
    ran = run(LATE.replace("BRANCH", "False").replace("FREEZE", "False"))
    (found,) = ran.report.findings
    assert (found.cause, {source.name for source in found.sources}) == ("unused", {"net.side.weight", "net.side.bias"})
    (asked,) = [q for q in ran.report.questions if q.kind == "optimizer.step"]
    assert {source.name: Status.NONE.value in source.outcomes for source in asked.sources}["net.side.weight"]


CARRIED = """
import json, resource

cell, readout = nn.GRUCell(3, 4), nn.Linear(4, 1)
weights = [*cell.parameters(), *readout.parameters()]
hidden, ema, sizes = torch.zeros(2, 4), torch.zeros(()), []
for step in range(3001):
    hidden = cell(torch.randn(2, 3), hidden)
    loss = readout(hidden).pow(2).mean()
    loss.backward()
    ema = 0.9 * ema + 0.1 * loss.detach()
    with torch.no_grad():
        for p in weights:
            p -= 0.01 * p.grad
            p.grad = None
    hidden = hidden.detach()
    if step in (1000, 3000):
        sizes.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
open("sizes.json", "w").write(json.dumps(sizes))
"""


def test_a_state_that_is_carried_on_costs_no_memory_by_the_step(run: Callable[[str], Ran]) -> None:
    """The program has no optimizer after whose step the watching could end, so that every op of it is recorded."""
    ran = run(CARRIED)
    early, late = json.loads((ran.observed.folder / "sizes.json").read_text(encoding="utf-8"))
    assert (late - early) * 1024 < 2000 * 100
    assert not ran.loud

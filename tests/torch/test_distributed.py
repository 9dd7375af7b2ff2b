"""Two processes under `torchrun`: each rank tells of the parameter that no loss needs, and where it is dropped."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.main, self.aux = nn.Linear(4, 8), nn.Linear(8, 2), nn.Linear(8, 1)

    def forward(self, x):
        h = torch.relu(self.body(x))
        scores, confidence = self.main(h), self.aux(h)
        return scores


dist.init_process_group("gloo")
model = DistributedDataParallel(TwoHeads())
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(2):
    optimizer.zero_grad()
    model(torch.randn(3, 4)).square().mean().backward()
    optimizer.step()
"""


def test_each_rank_names_the_parameter_and_the_line_that_drops_it(tmp_path: Path) -> None:
    (tmp_path / "ddp.py").write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "NO_COLOR": "1", "CUDA_VISIBLE_DEVICES": "", "COLUMNS": "120"}
    done = subprocess.run(
        [*command, "-m", "gradwhy", "run", "ddp.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 1 and "Expected to have finished reduction" in done.stderr
    for rank in (0, 1):
        assert done.stderr.count(f"ddp.py:15:44 (rank {rank})") == 1
    told = [line for line in done.stderr.splitlines() if line.startswith("error[")]
    assert told == ["error[unused]: no gradient reaches `model.module.aux.weight` and"] * 2

"""An op on the path has no derivative for what it reads, or one that is zero everywhere."""

from __future__ import annotations

from gradwhy.diagnose.claims import at_cut
from gradwhy.diagnose.lost import Claim, Lost
from gradwhy.flow import CARRIES_NOTHING, Barrier

GOES_BEFORE = ("unknown",)

_LABELS = {Barrier.INDEX: "index", Barrier.CONDITION: "condition", Barrier.SAMPLE: "sample"}
_HELP_BY_BARRIER = {Barrier.CONDITION: "threshold", Barrier.SAMPLE: "sample"}
_HELP_BY_OP = {
    "argmax": "argmax",
    "argmin": "argmax",
    "round": "round",
    "rint": "round",
    "floor": "round",
    "ceil": "round",
    "sign": "round",
    "sort": "rank",
    "argsort": "rank",
    "topk": "rank",
    "top_k": "rank",
    "topkv2": "rank",
}


def recognise(lost: Lost) -> Claim | None:
    """A claim where the op nearest to the source carries no derivative on."""
    region = lost.region
    if region is None or region.barrier not in CARRIES_NOTHING | {Barrier.NOT_DIFFERENTIABLE}:
        return None
    name = region.first.op.name.rpartition(".")[2].lower()
    default = "index" if region.barrier is Barrier.INDEX else "default"
    help = _HELP_BY_OP.get(name) or _HELP_BY_BARRIER.get(region.barrier, default)
    return at_cut(lost, "non-differentiable-op", label=_LABELS.get(region.barrier, "cut"), help=help)

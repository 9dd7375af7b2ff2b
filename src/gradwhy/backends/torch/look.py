"""A full look at one backward pass: which of its gradients are zero, not finite or missing, and where they turn so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from gradwhy.flow import Status

MOST_NODES = 20_000
_LEAF_SEQUENCE = 2**64 - 1


class Passing:
    """What one node of autograd's graph was given in a backward pass, and what it gave to each of its inputs.

    `inputs` pairs the sequence number of the node behind each input, or the id of the leaf, with the status of the gradient.
    """

    __slots__ = ("given", "inputs", "name", "sequence")

    def __init__(self, name: str, sequence: int) -> None:
        self.name = name
        self.sequence = sequence
        self.given = Status.NONE
        self.inputs: tuple[tuple[int, bool, Status], ...] = ()


class Look:
    """One backward pass that is watched: armed before it runs, read after."""

    def __init__(self) -> None:
        self.passings: list[Passing] = []
        self.received: dict[int, Status] = {}
        """The status of the gradient that each leaf received, by id."""
        self._handles: list[Any] = []

    def arm(self, nodes: Iterable[Any]) -> None:
        """Hook every node of the graph behind `nodes`."""
        for node in list(graph(nodes)):
            variable = getattr(node, "variable", None)
            if variable is not None:
                self._handles.append(node.register_hook(self._leaf_hook(id(variable))))
            else:
                self._handles.append(node.register_hook(self._hook(node)))

    def disarm(self) -> None:
        """Take every hook off."""
        while self._handles:
            self._handles.pop().remove()

    def _hook(self, node: Any) -> Any:
        passing = Passing(node.name(), node._sequence_nr())
        behind = [_behind(following) for following, _ in node.next_functions]
        self.passings.append(passing)

        def passed(grad_inputs: tuple[Tensor | None, ...], grad_outputs: tuple[Tensor | None, ...]) -> None:
            passing.given = worst(grad_outputs)
            passing.inputs = tuple(
                (*key, status_of(gradient))
                for key, gradient in zip(behind, grad_inputs, strict=False)
                if key is not None
            )

        return passed

    def _leaf_hook(self, key: int) -> Any:
        def received(grad_inputs: tuple[Tensor | None, ...], grad_outputs: tuple[Tensor | None, ...]) -> None:
            self.received[key] = worst(grad_outputs)

        return received


def graph(nodes: Iterable[Any]) -> Iterator[Any]:
    """Every node of autograd's graph behind `nodes`, itself included, at most `MOST_NODES`."""
    todo = [node for node in nodes if node is not None]
    seen: set[Any] = set()
    while todo and len(seen) < MOST_NODES:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        yield node
        todo.extend(following for following, _ in node.next_functions if following is not None)


def leaves_of(nodes: Iterable[Any]) -> list[Tensor]:
    """The leaves that a backward pass from `nodes` reaches."""
    return [node.variable for node in graph(nodes) if hasattr(node, "variable")]


def worst(gradients: Iterable[Tensor | None]) -> Status:
    """NaN if one of them is not finite, else OK if one is not zero, else ZERO; NONE where there is none."""
    found = {status_of(gradient) for gradient in gradients}
    return next((status for status in (Status.NAN, Status.OK, Status.ZERO) if status in found), Status.NONE)


def status_of(gradient: Tensor | None) -> Status:
    """What came back: nothing, a zero in every element, something that is not finite, or a gradient."""
    if gradient is None:
        return Status.NONE
    with torch._C.DisableTorchFunction(), torch.no_grad():
        values = gradient.detach()
        if values.layout is not torch.strided:
            values = values.coalesce().values() if values.layout is torch.sparse_coo else values.values()
        if values.numel() == 0 or values.device.type == "meta":
            return Status.OK
        largest = float(values.abs().max())
    if largest != largest or largest == float("inf"):
        return Status.NAN
    return Status.ZERO if largest == 0.0 else Status.OK


def can_look() -> bool:
    """Whether ops of ours would go unseen: a dispatch mode of the program's would count them, a transform would run them."""
    return torch._C._len_torch_dispatch_stack() == 0 and not torch._C._are_functorch_transforms_active()


def _behind(node: Any) -> tuple[int, bool] | None:
    """The sequence number of a node, or the id of the leaf behind it, with whether it is a leaf."""
    if node is None:
        return None
    variable = getattr(node, "variable", None)
    return (id(variable), True) if variable is not None else (node._sequence_nr(), False)

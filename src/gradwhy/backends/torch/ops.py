"""What each function of PyTorch's does: to a gradient, to memory, to the host."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from gradwhy.backends.torch.trail import Call, Edge, Record
from gradwhy.flow import Barrier, Passage

Rule = tuple[Passage, Barrier | None]

FLOWS: Rule = (Passage.FLOWS, None)

NEW_PARAMETER = "nn.Parameter"
DEEP_COPY = "copy.deepcopy"
FROM_NUMPY = "torch.from_numpy"
LEGACY_TENSOR = "torch.Tensor"
GRADIENT = "torch.autograd.grad"
CHECKPOINT = "CheckpointFunction"
HIDDEN = "(inside)"
"""The place among the arguments of what a custom function reads without being given it."""


def _property(name: str) -> Any:
    """An attribute of tensors as it is kept, with what reads and writes it."""
    return inspect.getattr_static(Tensor, name)


SET_ITEM: Any = Tensor.__setitem__
SET_DATA: Any = _property("data").__set__
SET_GRAD_MODE: Any = torch._C._set_grad_enabled
GET_DATA: Any = _property("data").__get__
GET_GRAD: Any = _property("grad").__get__
SET_GRAD: Any = _property("grad").__set__

LEAVING: frozenset[Any] = frozenset(
    getattr(Tensor, name)
    for name in "item __float__ __int__ __index__ __complex__ numpy __array__ tolist __dlpack__".split()
)
ENTERING: frozenset[Any] = frozenset(
    {torch.tensor, torch.as_tensor, torch.asarray, torch.scalar_tensor, torch.frombuffer}
)
SWITCHING: frozenset[Any] = frozenset({Tensor.requires_grad_, _property("requires_grad").__set__})
DETACHING: frozenset[Any] = frozenset({Tensor.detach, torch.detach, GET_DATA})
QUESTIONS: frozenset[Any] = frozenset({Tensor.backward, torch.autograd.backward, torch.autograd.grad})


def _named(names: str, owners: Iterable[Any] = (Tensor, torch)) -> frozenset[Any]:
    """The functions of these names, on tensors and in the module."""
    found: set[Any] = set()
    for owner in owners:
        for name in names.split():
            held = getattr(owner, name, None)
            if held is not None:
                found.add(held.__get__ if type(held).__name__ == "getset_descriptor" else held)
    return frozenset(found)


ALIASING: frozenset[Any] = DETACHING | _named(
    "view view_as reshape reshape_as flatten unflatten ravel squeeze unsqueeze transpose swapaxes swapdims permute movedim "
    "moveaxis expand expand_as broadcast_to narrow select diagonal unfold as_strided chunk split tensor_split unbind "
    "hsplit vsplit dsplit t adjoint real imag view_as_real view_as_complex __getitem__ T mT H mH contiguous"
)

# What says nothing about where a value comes from.
SILENT: frozenset[Any] = (
    _named(
        "dim size stride numel nelement ndimension storage_offset storage untyped_storage data_ptr element_size get_device "
        "is_floating_point is_complex is_contiguous is_pinned is_shared is_storage is_tensor is_signed is_same_size "
        "register_hook register_post_accumulate_grad_hook retain_grad type_as_dtype has_names result_type "
        "_has_compatible_shallow_copy_type _is_view __repr__ __len__ __hash__ __format__ __str__ __dir__ __reduce_ex__ "
        "__bool__ __contains__ equal allclose is_nonzero _nnz is_grad_enabled"
    )
    | frozenset(
        getattr(Tensor, name).__get__
        for name in (
            "shape dtype device requires_grad is_leaf grad_fn ndim layout itemsize nbytes _version is_sparse is_cuda is_meta "
            "is_mkldnn is_quantized is_sparse_csr is_nested is_cpu is_mps is_xpu is_xla is_ipu is_hpu is_mtia is_vulkan "
            "is_maia retains_grad name names _base output_nr _backward_hooks _grad _grad_fn volatile _post_accumulate_grad_hooks"
        ).split()
        if type(getattr(Tensor, name, None)).__name__ == "getset_descriptor"
    )
    | frozenset(
        getattr(Tensor, name).__set__
        for name in "_backward_hooks _post_accumulate_grad_hooks names _grad".split()
        if type(getattr(Tensor, name, None)).__name__ == "getset_descriptor"
    )
)

_NEW_VALUE = frozenset(
    {"tensor", "new_tensor", "as_tensor", "asarray", "__deepcopy__", DEEP_COPY, NEW_PARAMETER, LEGACY_TENSOR}
)
# The derivative is zero wherever it exists, though autograd has a formula for it (PyTorch 2.13).
_ZERO_DERIVATIVE = frozenset(
    "round floor ceil trunc fix sign sgn frac_ floor_divide __floordiv__ __rfloordiv__ heaviside signbit "
    "round_ floor_ ceil_ trunc_ fix_ sign_ sgn_ floor_divide_ heaviside_ zero_ fill_".split()
)
PRODUCTS = frozenset(
    "mul multiply matmul mm bmm mv dot linear bilinear einsum addmm baddbmm addbmm tensordot inner outer kron conv1d conv2d "
    "conv3d conv_transpose1d conv_transpose2d conv_transpose3d batch_norm layer_norm group_norm instance_norm rms_norm "
    "scaled_dot_product_attention addcmul lerp rmul rmatmul imul".split()
)
"""Ops in which the gradient of one input is a product with another one."""
RECURRENT = frozenset("rnn_tanh_cell rnn_relu_cell gru_cell lstm_cell rnn_tanh rnn_relu gru lstm".split())
_CASTS = frozenset("to type long int short char byte bool type_as".split())
_SAMPLES = frozenset("multinomial bernoulli bernoulli_ normal poisson binomial".split())
_SHAPE_ONLY = frozenset(
    "zeros_like ones_like empty_like full_like rand_like randn_like randint_like new_zeros new_ones new_empty new_full "
    "new_empty_strided _is_all_true".split()
)
_SHAPE_SLOTS: dict[str, frozenset[int | str]] = dict.fromkeys(
    ("expand_as", "view_as", "reshape_as", "type_as", "broadcast_to"), frozenset({1, "other"})
)
_INDEX_SLOTS: dict[str, frozenset[int | str]] = {
    "__getitem__": frozenset({1}),
    "__setitem__": frozenset({1}),
    "embedding": frozenset({0, "input"}),
    "embedding_bag": frozenset({0, "input", 2, "offsets"}),
    "gather": frozenset({2, "index"}),
    "index_select": frozenset({2, "index"}),
    "take": frozenset({1, "index"}),
    "take_along_dim": frozenset({1, "indices"}),
    "cross_entropy": frozenset({1, "target"}),
    "nll_loss": frozenset({1, "target"}),
    "grid_sample": frozenset(),
    **dict.fromkeys(
        (
            f"{name}{end}"
            for name in ("scatter", "scatter_add", "scatter_reduce", "index_add", "index_copy", "index_fill")
            for end in ("", "_")
        ),
        frozenset({2, "index"}),
    ),
    **dict.fromkeys(("index_put", "index_put_"), frozenset({1, "indices"})),
}
_CONDITION_SLOTS: dict[str, frozenset[int | str]] = {
    "where": frozenset({0, "condition"}),
    **dict.fromkeys(
        ("masked_fill", "masked_fill_", "masked_select", "masked_scatter", "masked_scatter_"), frozenset({1, "mask"})
    ),
}
_SHOWN_NAMES = {
    "__array__": "numpy.asarray",
    "__float__": "float",
    "__int__": "int",
    "__index__": "int",
    "__complex__": "complex",
    "__deepcopy__": "copy.deepcopy",
    "__getitem__": "getitem",
    "__dlpack__": "to_dlpack",
}


def is_in_place(func: Any, kwargs: dict[str, Any] | None) -> bool:
    """Whether a function that gave back its first argument has changed it: `contiguous()` and `to(...)` may not have."""
    name = getattr(func, "__name__", "")
    if name.endswith("_") and not name.endswith("__"):
        return name != "requires_grad_"
    return name.startswith("__i") or bool(kwargs and kwargs.get("inplace"))


def name_of(func: Any) -> str:
    """The plain name of a function: `matmul`, `__getitem__`, `data`."""
    if isinstance(func, str):
        return func
    name = getattr(func, "__name__", "")
    if name in ("__get__", "__set__"):
        return str(getattr(func.__self__, "__name__", name))
    return str(name) or type(func).__name__


def shown_name(call: Call) -> str:
    """The op as the user wrote it, as far as its function tells."""
    func = call.func
    name = name_of(func)
    if func == SET_DATA:
        return ".data ="
    if func == SET_ITEM:
        return "setitem"
    if func in LEAVING and name in ("item", "numpy", "tolist"):
        return f".{name}()"
    if func in ENTERING:
        return f"torch.{name}"
    if name in _SHOWN_NAMES:
        return _SHOWN_NAMES[name]
    if func == GET_DATA:
        return ".data"
    if name.endswith("_") and not name.endswith("__"):
        return f".{name}()"
    return name.strip("_") if name.startswith("__") else name


def rule(call: Call, edge: Edge, outputs: Iterable[Record]) -> Rule:
    """What the op does to a gradient on its way back to one of its inputs."""
    slot, value, needs_grad, is_write = edge
    if is_write:
        return Passage.CUT, Barrier.WRITE
    name = name_of(call.func)
    if call.func in LEAVING:
        return Passage.CUT, Barrier.HOST
    if call.func in DETACHING or name == "detach_":
        return Passage.CUT, Barrier.STOPPED
    if call.func == GRADIENT:
        return FLOWS if call.is_recorded else (Passage.CUT, Barrier.STOPPED)
    if slot == HIDDEN and name != CHECKPOINT:
        return Passage.CUT, Barrier.CUSTOM
    if name in _NEW_VALUE:
        return Passage.CUT, Barrier.NEW_OBJECT
    by_slot = _rule_of_slot(name, slot, value)
    if by_slot is not None:
        return by_slot
    return _rule_of_op(name, call, value, list(outputs), needs_grad=needs_grad)


def _rule_of_slot(name: str, slot: int | str, value: Record) -> Rule | None:
    if name in _SAMPLES:
        return Passage.NOTHING, Barrier.SAMPLE
    if name in _SHAPE_ONLY or slot in _SHAPE_SLOTS.get(name, ()):
        return Passage.NOTHING, Barrier.SHAPE
    if slot in _CONDITION_SLOTS.get(name, ()):
        return Passage.NOTHING, Barrier.CONDITION
    if slot in _INDEX_SLOTS.get(name, ()) and not _is_differentiable(value.dtype):
        return Passage.NOTHING, Barrier.INDEX
    return None


def _rule_of_op(name: str, call: Call, value: Record, outputs: list[Record], *, needs_grad: bool) -> Rule:
    if not _is_differentiable(value.dtype):
        return Passage.CUT, Barrier.INTEGER
    if outputs and not any(_is_differentiable(output.dtype) for output in outputs):
        return Passage.CUT, Barrier.INTEGER if name in _CASTS else Barrier.NOT_DIFFERENTIABLE
    if name in _ZERO_DERIVATIVE:
        return Passage.CUT, Barrier.NOT_DIFFERENTIABLE
    if needs_grad and not call.is_recorded and call.pause is None and not _is_written(name):
        return Passage.CUT, Barrier.CUSTOM if isinstance(call.func, str) else Barrier.NOT_REGISTERED
    return FLOWS


def _is_written(name: str) -> bool:
    return name in ("__setitem__", "data") or (name.endswith("_") and not name.endswith("__"))


def _is_differentiable(dtype: Any) -> bool:
    return dtype is None or dtype.is_floating_point or dtype.is_complex

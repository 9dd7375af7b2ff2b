"""Own autograd functions, hooks, double backward, vmap and functional gradients."""

import torch
from torch.func import functional_call, grad, vmap


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        print("backward of", tuple(x.shape), gradient.requires_grad)
        return gradient * 2


x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
x.register_hook(lambda gradient: print("hook", gradient.tolist()))
y = Doubled.apply(x)
(first,) = torch.autograd.grad((y**3).sum(), x, create_graph=True)
(second,) = torch.autograd.grad(first.sum(), x)
print([value.hex() for value in first.tolist()], [value.hex() for value in second.tolist()])

print([value.hex() for value in vmap(grad(lambda v: torch.sin(v) * v))(torch.arange(3.0)).tolist()])
layer = torch.nn.Linear(3, 1)
torch.nn.init.constant_(layer.weight, 0.5)
gradients = grad(lambda p: functional_call(layer, p, (x,)).sum())(dict(layer.named_parameters()))
print({name: value.tolist() for name, value in gradients.items()})
print(torch.autograd.gradcheck(lambda v: v.sin(), torch.randn(3, dtype=torch.double, requires_grad=True)))
with torch.no_grad(), torch.inference_mode():
    print((x * 2).requires_grad, torch.is_grad_enabled(), torch.is_inference_mode_enabled())
print(torch.is_grad_enabled(), torch.overrides.is_tensor_method_or_property(torch.Tensor.add))

import torch

x = torch.tensor([0.0, 0.0, 0.0], requires_grad=True)
w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)

h = torch.sum(torch.square(x))
length = torch.sqrt(h)  # cut
loss = length + torch.sum(w * w)

dx, dw = torch.autograd.grad(loss, [x, w], allow_unused=True)
print("x", None if dx is None else float(dx.norm()))
print("w", None if dw is None else float(dw.norm()))

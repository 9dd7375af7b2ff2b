import torch

x = torch.tensor([0.5, -1.0, 2.0])  # cut
w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)

h = torch.tanh(x * 2.0)  # cut
loss = torch.sum(h * w)
loss.backward()
dx, dw = x.grad, w.grad
print("x", None if dx is None else float(dx.norm()))
print("w", None if dw is None else float(dw.norm()))

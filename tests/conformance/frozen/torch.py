import torch

x = torch.nn.Parameter(torch.tensor([0.5, -1.0, 2.0]))  # place
w = torch.nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))
optimizer = torch.optim.SGD([x, w], lr=0.1)
x.requires_grad_(False)  # place

h = torch.tanh(x * 2.0)  # place
loss = torch.sum(h * w)
loss.backward()
optimizer.step()
dx, dw = x.grad, w.grad
print("x", None if dx is None else float(dx.norm()))
print("w", None if dw is None else float(dw.norm()))

import torch

x = torch.tensor([0.5, -1.0, 2.0], requires_grad=True)
w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)

h = torch.tanh(x * 2.0)
best = torch.argmax(h)  # cut
chosen = torch.nn.functional.one_hot(best, 3).float()
loss = torch.sum(chosen * w)

dx, dw = torch.autograd.grad(loss, [x, w], allow_unused=True)
print("x", None if dx is None else float(dx.norm()))
print("w", None if dw is None else float(dw.norm()))

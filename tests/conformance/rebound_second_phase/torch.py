import torch

x = torch.tensor([0.5, -1.0, 2.0], requires_grad=True)  # place
w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
optimizer = torch.optim.SGD([x, w], lr=0.1)

for step in range(4):
    scale = x if step < 2 else torch.ones(3)  # place
    loss = torch.sum(torch.square(scale * w))  # place
    optimizer.zero_grad()
    loss.backward()  # place
    optimizer.step()  # place
    print("x", x.grad if x.grad is None else float(x.grad.norm()))
    print("w", w.grad if w.grad is None else float(w.grad.norm()))

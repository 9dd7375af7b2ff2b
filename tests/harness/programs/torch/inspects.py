"""A program that looks at the framework and at its own objects."""

import copy
import gc
import inspect
import io
import pickle
import weakref

import numpy as np
import torch

print(torch.autograd.grad.__name__, torch.autograd.grad.__qualname__, torch.autograd.grad.__module__)
print(inspect.signature(torch.autograd.grad), inspect.signature(torch.Tensor.backward))
print(torch.from_numpy.__name__, torch.Tensor.detach.__name__, inspect.isfunction(torch.Tensor.backward))

x = torch.nn.Parameter(torch.tensor([0.5, 1.5]))
array = (x * 2.0).detach().numpy()
print(type(array) is np.ndarray, array.dtype, array.flags.writeable, type(torch.from_numpy(array)).__name__)
print(type(x[0].item()), type(x.tolist()[0]), type(x), type(x.data), sorted(vars(x)))
print(pickle.loads(pickle.dumps(x)), copy.deepcopy(x))

model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh())
copied = copy.deepcopy(model)
file = io.BytesIO()
torch.save(model.state_dict(), file)
torch.nn.utils.vector_to_parameters(torch.ones(6), model.parameters())
print([sorted(vars(parameter)) for parameter in model.parameters()], sorted(vars(copied[0])))
torch.utils.swap_tensors(model[0].weight, torch.nn.Parameter(torch.zeros(2, 2)))
print(model(torch.ones(1, 2)))

y = torch.tanh(x)
held = weakref.ref(y)
(y.sum() * 2).backward()
print([value.hex() for value in x.grad.tolist()])
del y
gc.collect()
print("kept alive", held() is not None)
print(sorted(name for name in globals() if not name.startswith("_")))

"""What `nn.Module` objects hold, seen from their parameters: their owners, their neighbours, what hides in plain containers."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator

from torch import Tensor, nn
from torch.nn import Parameter

_CONTAINERS = (nn.ModuleList, nn.ModuleDict, nn.ParameterList, nn.ParameterDict, nn.Sequential)
_TABLES = frozenset({"_modules", "_parameters", "_buffers"})
_DEEPEST = 3


def live_modules() -> list[nn.Module]:
    """Every module that is alive. Looks through all objects of the process: only for an answer that is wrong."""
    return [found for found in gc.get_objects() if issubclass(type(found), nn.Module) and "_modules" in vars(found)]


def children(module: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """The modules that are registered in `module`, by name."""
    for name, child in module._modules.items():
        if child is not None:
            yield name, child


def registered(module: nn.Module) -> Iterator[Parameter]:
    """The parameters of `module` and of what is registered in it, without running any code of the program's."""
    seen: set[int] = set()
    todo = [module]
    while todo:
        current = todo.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield from (parameter for parameter in current._parameters.values() if parameter is not None)
        todo.extend(child for _, child in children(current))


class Owners:
    """Which module holds which, upwards."""

    def __init__(self) -> None:
        self._parents: dict[int, tuple[nn.Module, str]] = {}
        self._owners: dict[int, tuple[nn.Module, str]] = {}
        for module in live_modules():
            for name, child in children(module):
                self._parents.setdefault(id(child), (module, name))
            for name, parameter in module._parameters.items():
                if parameter is not None:
                    self._owners.setdefault(id(parameter), (module, name))

    def chain(self, parameter: Tensor) -> Iterator[tuple[nn.Module, object]]:
        """The modules around a parameter, the innermost first, each with what of it holds the parameter."""
        held: object = parameter
        found = self._owners.get(id(parameter))
        seen: set[int] = set()
        while found is not None and id(found[0]) not in seen:
            module = found[0]
            seen.add(id(module))
            yield module, held
            held, found = module, self._parents.get(id(module))

    def name_in_parent(self, module: nn.Module) -> str | None:
        """The attribute under which the module is kept, where it is a mere container of others."""
        found = self._parents.get(id(module))
        return found[1] if found is not None and issubclass(type(module), _CONTAINERS) else None


def neighbours(module: nn.Module, held: object) -> Iterator[Parameter]:
    """The parameters in `module` that are not part of `held`."""
    yield from (p for p in module._parameters.values() if p is not None and p is not held)
    for _, child in children(module):
        if child is not held:
            yield from registered(child)


def hidden(modules: Iterable[nn.Module], *, even_alone: bool = False) -> list[Parameter]:
    """The parameters that modules keep in plain lists and dicts, where nobody looks for parameters.

    One module alone in a list is the usual way to hide it on purpose; it counts only with `even_alone`.
    """
    found: dict[int, Parameter] = {}
    for module in modules:
        own = {id(parameter) for parameter in registered(module)}
        for name, value in vars(module).items():
            kind = type(value)
            if name in _TABLES or name.startswith("_") or kind not in (list, tuple, dict):
                continue
            if len(value) == 1 and kind is not dict and not even_alone:
                continue
            found |= {id(p): p for p in _within(value, _DEEPEST) if id(p) not in own and p.requires_grad}
    return list(found.values())


def _within(value: object, depth: int) -> Iterator[Parameter]:
    if isinstance(value, Parameter):
        yield value
    elif issubclass(type(value), nn.Module):
        yield from registered(value)  # type: ignore[arg-type]
    elif depth and type(value) in (list, tuple, dict):
        parts = value.values() if isinstance(value, dict) else value
        for part in list(parts):  # type: ignore[call-overload]
            yield from _within(part, depth - 1)


def all_of(module: nn.Module) -> Iterator[nn.Module]:
    """The module and all that is registered in it."""
    seen: set[int] = set()
    todo = [module]
    while todo:
        current = todo.pop()
        if id(current) not in seen:
            seen.add(id(current))
            yield current
            todo.extend(child for _, child in children(current))

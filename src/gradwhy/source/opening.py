"""What an object is made of, read without running any code of the program."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from types import (
    BuiltinFunctionType,
    CodeType,
    FrameType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any

from gradwhy.source.positions import is_user_file

MOST_ELEMENTS = 1_000
"""Of a longer list or dict, what comes after is not looked at."""

DEFAULT_SKIPPED = frozenset(
    {"_tracker", "_trainable_variables", "_non_trainable_variables", "_saved_model_inputs_spec"}
)

_PLAIN = frozenset(
    {bool, int, float, complex, str, bytes, bytearray, type(None), type(Ellipsis), type(NotImplemented), range, slice}
    | {FunctionType, BuiltinFunctionType, MethodType, CodeType, FrameType, property, classmethod, staticmethod}
    | {GetSetDescriptorType, MemberDescriptorType, set, frozenset, memoryview}
)
# Namespaces of the standard library that programs keep their objects in; its other objects are not looked into.
_STANDARD_HOLDERS = frozenset({"argparse", "collections", "types", "dataclasses", "enum"})
_dict_of_type: Callable[[type], Mapping[str, object]] = vars(type)["__dict__"].__get__
_dict_of_module: Callable[[object], dict[str, object]] = vars(ModuleType)["__dict__"].__get__


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an expression: its text, how far it reaches, whether it is a private name, and how long it reads."""

    text: str
    reach: int
    is_private: bool = False
    steps: int = 1


@dataclass(frozen=True, slots=True)
class Opening:
    """How objects are opened; the fields are those of `names.Names`."""

    aliases: Mapping[str, str]
    tables: Mapping[str, str]
    openers: Callable[[object], Iterable[tuple[str, object]] | None] | None
    is_leaf: Callable[[object], bool] | None
    skip: frozenset[str]

    def parts(self, value: object) -> Iterator[tuple[Part, object]]:
        """The objects that `value` holds, each with the step that leads to it."""
        try:
            yield from ((part, child) for part, child in self._parts(value) if not is_plain(child))
        except Exception:
            # A container that changes under our hands, or a caller's `openers` or `is_leaf` that fails: less is known.
            return

    def _parts(self, value: object) -> Iterator[tuple[Part, object]]:
        if self.is_leaf is not None and self.is_leaf(value):
            return
        given = self.openers(value) if self.openers is not None else None
        if given is not None:
            yield from ((Part(suffix, 1), child) for suffix, child in given)
            return
        kind = type(value)
        # `isinstance` would ask a proxy for its `__class__`, which is code of the program's.
        if issubclass(kind, (list, tuple, deque)):
            yield from self._elements(value)
        elif issubclass(kind, dict):
            yield from _entries(value)
        elif issubclass(kind, ModuleType):
            yield from self._module(value)
        elif issubclass(kind, type):
            yield from _class_attributes(value)  # type: ignore[arg-type]
        elif _is_opened(kind):
            yield from self._attributes(value)
        # What a library hangs on its own lists and dicts is bookkeeping.
        if issubclass(kind, (list, tuple, dict, deque)) and _is_user_class(kind):
            yield from self._attributes(value)

    def _elements(self, value: object) -> Iterator[tuple[Part, object]]:
        kind = type(value)
        fields = _from_mro(kind, "_fields") if issubclass(kind, tuple) else None
        bases: tuple[Any, ...] = (list, tuple, deque)
        base = next(base for base in bases if issubclass(kind, base))
        for index, child in enumerate(islice(base.__iter__(value), MOST_ELEMENTS)):
            if isinstance(fields, tuple) and index < len(fields):
                yield Part(f".{fields[index]}", 2, str(fields[index]).startswith("_")), child
            else:
                yield Part(f"[{index}]", 1), child

    def _module(self, value: object) -> Iterator[tuple[Part, object]]:
        namespace = _dict_of_module(value)
        file = namespace.get("__file__")
        if isinstance(file, str) and is_user_file(file):
            for name, child in list(namespace.items()):
                yield from self._attribute(str(name), child)

    def _attributes(self, value: object) -> Iterator[tuple[Part, object]]:
        kind = type(value)
        for name, child in instance_attributes(value):
            yield from self._attribute(_unmangled(name, kind), child)
        for base in kind.__mro__:
            if _is_user_class(base):
                yield from _class_attributes(base)

    def _attribute(self, name: str, child: object) -> Iterator[tuple[Part, object]]:
        if name in self.skip or name[:2] == name[-2:] == "__" or not name.isidentifier():
            return
        if name in self.tables:
            yield from self._table(self.tables[name], child)
        elif name in self.aliases:
            yield Part(f".{self.aliases[name]}", 1), child
        else:
            is_private = name.startswith("_")
            yield Part(f".{name}", 4 if is_private else 2, is_private), child

    def _table(self, shown: str, held: object) -> Iterator[tuple[Part, object]]:
        """The children in a framework's own table, as the program would write them."""
        prefix = f".{shown}" if shown else ""
        if issubclass(type(held), dict):
            for key, child in _items(held):
                name = str(key)
                step = f"[{name}]" if name.isdigit() else f".{name}" if name.isidentifier() else f"[{name!r}]"
                yield Part(prefix + step, 1), child
        elif issubclass(type(held), (list, tuple)):
            # `layers[1]` reads as the attribute that the program chose for itself only where there is no such attribute.
            yield from ((Part(prefix + part.text, 1, steps=3), child) for part, child in self._elements(held))


def instance_attributes(value: object) -> list[tuple[str, object]]:
    """The attributes in an object's own dictionary and slots; no property or descriptor of the program is run."""
    found: list[tuple[str, object]] = []
    kind = type(value)
    descriptor = _from_mro(kind, "__dict__")
    if isinstance(descriptor, (GetSetDescriptorType, MemberDescriptorType)):
        namespace = descriptor.__get__(value)
        if type(namespace) is dict:
            found += [(name, child) for name, child in list(namespace.items()) if isinstance(name, str)]
    for base in kind.__mro__:
        members = _dict_of_type(base)
        if "__slots__" in members:
            for name, member in members.items():
                if type(member) is MemberDescriptorType:
                    try:
                        found.append((name, member.__get__(value)))
                    except AttributeError:
                        continue
    return found


def is_plain(value: object) -> bool:
    """Whether an object is a number, a text, a function: nothing that is differentiated and nothing that holds it."""
    return type(value) in _PLAIN


def _entries(value: object) -> Iterator[tuple[Part, object]]:
    for key, child in islice(_items(value), MOST_ELEMENTS):
        if type(key) in (str, int):
            yield Part(f"[{key!r}]", 1), child


def _items(value: Any) -> list[tuple[object, object]]:
    return list(dict.items(value))


def _class_attributes(kind: type) -> Iterator[tuple[Part, object]]:
    """What a class of the program's keeps for all its objects."""
    if _is_user_class(kind):
        for name, child in list(_dict_of_type(kind).items()):
            if not name.startswith("__") and _from_mro(type(child), "__get__") is None:
                yield Part(f".{_unmangled(name, kind)}", 2, name.startswith("_")), child


def _is_user_class(kind: type) -> bool:
    module = sys.modules.get(str(_dict_of_type(kind).get("__module__")))
    if type(module) is not ModuleType:
        return False
    file = vars(module).get("__file__")
    # `__main__` in a notebook has no file.
    return is_user_file(file) if isinstance(file, str) else module is sys.modules.get("__main__")


def _is_opened(kind: type) -> bool:
    module = str(_from_mro(kind, "__module__")).partition(".")[0]
    return kind is SimpleNamespace or module not in sys.stdlib_module_names or module in _STANDARD_HOLDERS


def _from_mro(kind: type, name: str) -> object:
    return next((members[name] for base in kind.__mro__ if name in (members := _dict_of_type(base))), None)


def _unmangled(name: str, kind: type) -> str:
    """`__w` for the `_Model__w` that Python makes of it."""
    for base in kind.__mro__:
        prefix = f"_{base.__name__.lstrip('_')}__"
        if name.startswith(prefix) and len(name) > len(prefix):
            return name[len(prefix) - 2 :]
    return name

"""Objects have the names that the user's frames give them."""

from __future__ import annotations

import collections
import gc
import logging
import sys
import threading
import time
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gradwhy.source import names as names_module
from gradwhy.source.names import MOST_ALIASES, Names
from gradwhy.source.opening import MOST_ELEMENTS


class Tensor:
    """What a framework calls a variable."""

    def __init__(self, inner: object = None) -> None:
        self.inner = inner
        self.hidden = Holder() if inner == "opened" else None


class Holder:
    """Any object with attributes."""

    def __init__(self, **attributes: object) -> None:
        vars(self).update(attributes)


def is_leaf(value: object) -> bool:
    return type(value) is Tensor


def named(value: object, **options: Any) -> tuple[str, tuple[str, ...]]:
    """The name of an object in the frame of the caller alone."""
    return Names([sys._getframe(1)], is_leaf=is_leaf, **options).of(value)


w_of_module = Tensor()


def test_local_name() -> None:
    权重 = Tensor()
    assert named(权重) == ("权重", ())


def test_global_name() -> None:
    assert named(w_of_module)[0] == "w_of_module"


def test_object_that_no_frame_reaches_has_no_name() -> None:
    assert named(Tensor()) == ("", ())


def test_attributes_lists_tuples_and_dicts_are_followed() -> None:
    model = Holder(encoder=Holder(layers=[Holder(kernel=Tensor()), Holder(kernel=Tensor())]))
    options = {"lr": 0.1, "变量": (Tensor(), Tensor()), 3: Tensor(), (1, 2): Tensor()}
    assert named(model.encoder.layers[1].kernel)[0] == "model.encoder.layers[1].kernel"
    assert named(options["变量"][1])[0] == "options['变量'][1]"
    assert named(options[3])[0] == "options[3]"
    assert named(options[1, 2])[0] == ""


def test_deque_named_tuple_and_slots_are_followed() -> None:
    State = collections.namedtuple("State", ["mean", "scale"])

    class Slotted:
        __slots__ = ("unset", "w")

        def __init__(self) -> None:
            self.w = Tensor()

    queue, state, slotted = collections.deque([Tensor()]), State(Tensor(), Tensor()), Slotted()
    assert named(queue[0])[0] == "queue[0]"
    assert named(state.scale)[0] == "state.scale"
    assert named(slotted.w)[0] == "slotted.w"


def test_self_is_preferred_in_a_method() -> None:
    class Model:
        def __init__(self) -> None:
            self.w = Tensor()

        def step(self) -> tuple[str, tuple[str, ...]]:
            m = self
            assert m is self
            return named(self.w)

    assert Model().step() == ("self.w", ("m.w",))


def test_plain_name_is_preferred_to_a_longer_one() -> None:
    model = Holder(head=Holder(w=Tensor()))
    head = model.head
    assert named(head.w) == ("head.w", ("model.head.w",))


def test_attribute_is_preferred_to_an_index() -> None:
    model = Holder(dense=Holder(kernel=Tensor()))
    variables = [model.dense.kernel]
    assert named(variables[0]) == ("model.dense.kernel", ("variables[0]",))


def test_public_name_is_preferred_to_a_private_one_which_is_left_out() -> None:
    first = Holder(_w=Tensor())
    public = Holder(of=Holder(more=Holder(w=first._w)))  # type: ignore[attr-defined]
    assert named(first._w) == ("public.of.more.w", ())  # type: ignore[attr-defined]
    del public
    assert named(first._w) == ("first._w", ())  # type: ignore[attr-defined]


def test_mangled_name_is_shown_as_it_is_written() -> None:
    class Model:
        def __init__(self) -> None:
            self.__w = Tensor()

    model = Model()
    assert named(vars(model)["_Model__w"]) == ("model.__w", ())


def test_table_of_private_names_makes_them_public() -> None:
    layer = Holder(_kernel=Tensor())
    assert named(layer._kernel, aliases={"_kernel": "kernel"}) == ("layer.kernel", ())  # type: ignore[attr-defined]


def test_tables_of_children_are_shown_as_attributes_or_indexes() -> None:
    kernel = Tensor()
    model = Holder(_modules={"encoder": Holder(_modules={"0": Holder(_parameters={"weight": kernel})})})
    del kernel
    inner = model._modules["encoder"]._modules["0"]._parameters["weight"]  # type: ignore[attr-defined]
    assert named(inner, tables={"_modules": "", "_parameters": ""})[0] == "inner"
    found = [inner]
    del inner
    name, aliases = named(found[0], tables={"_modules": "", "_parameters": ""})
    assert (name, aliases) == ("model.encoder[0].weight", ("found[0]",))


def test_table_under_a_public_name_is_shown_by_it() -> None:
    model = Holder(_layers=[Holder(kernel=Tensor())])
    assert named(model._layers[0].kernel, tables={"_layers": "layers"})[0] == "model.layers[0].kernel"  # type: ignore[attr-defined]


def test_attribute_that_the_program_chose_is_preferred_to_a_table() -> None:
    block = Holder(kernel=Tensor())
    model = Holder(blocks=[block], _layers=[block])
    del block
    kernel = model.blocks[0].kernel  # type: ignore[attr-defined]
    held = {"k": kernel}
    del kernel
    name, aliases = named(held["k"], tables={"_layers": "layers"})
    assert (name, aliases) == ("model.blocks[0].kernel", ("model.layers[0].kernel", "held['k']"))


def test_wrapper_and_what_it_stands_for_have_one_name() -> None:
    inner = Tensor()
    layer = Holder(kernel=Holder(_value=inner))
    found = [inner]
    del inner

    def same(value: object) -> object:
        return vars(value).get("_value", value) if type(value) is Holder else value

    assert named(found[0], same=same) == ("layer.kernel", ("found[0]",))
    assert named(layer.kernel, same=same)[0] == "layer.kernel"  # type: ignore[attr-defined]


def test_opener_gives_the_parts_of_what_hides_them() -> None:
    class Hidden:
        __slots__ = ()

    inside, hidden = Tensor(), Hidden()
    found = [inside]
    del inside

    def openers(value: object) -> list[tuple[str, object]] | None:
        return [(".w", found[0])] if type(value) is Hidden else None

    assert named(found[0], openers=openers)[0] == "hidden.w"
    assert type(hidden) is Hidden


def test_leaf_is_not_opened_and_bookkeeping_is_skipped() -> None:
    outer = Tensor("opened")
    holder = Holder(_tracker=[Tensor()], bookkeeping=[Tensor()])
    assert named(outer.hidden)[0] == ""
    assert named(holder._tracker[0])[0] == ""  # type: ignore[attr-defined]
    assert named(holder.bookkeeping[0], skip={"bookkeeping"})[0] == ""  # type: ignore[attr-defined]
    assert named(holder.bookkeeping[0])[0] == "holder.bookkeeping[0]"  # type: ignore[attr-defined]


def test_name_of_the_innermost_frame_comes_first_and_the_others_follow() -> None:
    def inner(v: Tensor) -> tuple[str, tuple[str, ...]]:
        return Names([sys._getframe(), sys._getframe(1)], is_leaf=is_leaf).of(v)

    model = Holder(head=Holder(w=Tensor()))
    assert inner(model.head.w) == ("v", ("model.head.w",))  # type: ignore[attr-defined]


def test_frame_that_reaches_it_by_private_names_only_yields_to_an_outer_one() -> None:
    def inner(trainer: Holder) -> tuple[str, tuple[str, ...]]:
        return Names([sys._getframe(), sys._getframe(1)], is_leaf=is_leaf).of(trainer._w)  # type: ignore[attr-defined]

    weight = Tensor()
    assert inner(Holder(_w=weight)) == ("weight", ())


def test_free_variables_are_names_too() -> None:
    weight = Tensor()

    def closure() -> tuple[str, tuple[str, ...]]:
        return Names([sys._getframe()], is_leaf=is_leaf).of(weight)

    assert closure() == ("weight", ())


def test_class_attribute_is_found() -> None:
    class Config:
        w = Tensor()

    config = Config()
    assert named(config.w)[0] in ("Config.w", "config.w")
    assert set(named(Config.w)[1]) | {named(Config.w)[0]} == {"Config.w", "config.w"}


def test_what_a_descriptor_holds_is_no_attribute() -> None:
    class Lazy:
        def __init__(self) -> None:
            self.w = Tensor()

        def __get__(self, owner: object, kind: type | None = None) -> object:
            return None

    class Model:
        lazy = Lazy()

    assert named(vars(Model)["lazy"].w) == ("", ())


def test_main_module_is_searched_though_no_frame_is_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    main = types.ModuleType("__main__")
    main.gan = Holder(generator=Holder(kernel=Tensor()))  # type: ignore[attr-defined]
    main.__file__ = "train.py"
    monkeypatch.setitem(sys.modules, "__main__", main)
    kernel = main.gan.generator.kernel  # type: ignore[attr-defined]
    del main
    assert named(kernel) == ("kernel", ("gan.generator.kernel", "main.gan.generator.kernel")[:1])


def test_module_of_the_user_is_opened_and_one_of_a_library_is_not() -> None:
    own, library = types.ModuleType("own"), types.ModuleType("library")
    own.__file__, library.__file__ = "own.py", "/x/site-packages/library.py"
    own.w, library.w = Tensor(), Tensor()  # type: ignore[attr-defined]
    assert named(own.w)[0] == "own.w"  # type: ignore[attr-defined]
    assert named(library.w)[0] == ""  # type: ignore[attr-defined]


def test_aliases_are_bounded_and_different() -> None:
    w = Tensor()
    holders = [Holder(**{f"w{index}": w}) for index in range(40)]
    name, aliases = named(w)
    assert name == "w" and len(aliases) == MOST_ALIASES == len({name, *aliases}) - 1
    assert holders


def test_order_is_the_same_every_time() -> None:
    w = Tensor()
    holders = [Holder(**{f"w{index}": w, "again": w}) for index in range(5)]
    assert len({named(w) for _ in range(5)}) == 1
    assert holders


def test_cycles_end() -> None:
    first, second = Holder(w=Tensor()), Holder()
    first.other, second.other = second, first  # type: ignore[attr-defined]
    name, aliases = named(first.w)  # type: ignore[attr-defined]
    assert name == "first.w" and aliases == ("second.other.w",)


def test_no_code_of_the_program_runs() -> None:
    ran: list[str] = []

    class Trap:
        def __init__(self) -> None:
            object.__getattribute__(self, "__dict__")["w"] = Tensor()

        def __getattribute__(self, name: str) -> object:
            ran.append(f"getattribute {name}")
            return object.__getattribute__(self, name)

        @property
        def prop(self) -> object:
            ran.append("property")
            return Tensor()

        def __getattr__(self, name: str) -> object:
            ran.append(f"getattr {name}")
            raise AttributeError

        def __iter__(self) -> Iterator[object]:
            ran.append("iter")
            return iter([])

        def __len__(self) -> int:
            ran.append("len")
            return 0

        def __bool__(self) -> bool:
            ran.append("bool")
            return True

        def __eq__(self, other: object) -> bool:
            ran.append("eq")
            return True

        def __hash__(self) -> int:
            ran.append("hash")
            return 1

    class TrapList(list[object]):
        def __iter__(self) -> Iterator[object]:
            ran.append("list iter")
            return super().__iter__()

        def __getitem__(self, index: object) -> object:
            ran.append("list item")
            return Tensor()

    class TrapDict(dict[str, object]):
        def items(self) -> Any:
            ran.append("dict items")
            return super().items()

        def __getitem__(self, key: str) -> object:
            ran.append("dict item")
            return Tensor()

    class TrapDictProperty:
        @property
        def __dict__(self) -> dict[str, object]:  # type: ignore[override]
            ran.append("__dict__")
            return {}

    class Lazy:
        def __get__(self, owner: object, kind: type | None = None) -> object:
            ran.append("descriptor")
            return Tensor()

    class Proxy:
        @property
        def __class__(self) -> type:  # type: ignore[override]
            ran.append("__class__")
            return dict

    class WithLazy:
        lazy = Lazy()

    trap, odd, proxy, lazy = Trap(), TrapDictProperty(), Proxy(), WithLazy()
    trap_list, trap_dict = TrapList([Tensor()]), TrapDict(w=Tensor())
    wanted = object.__getattribute__(trap, "__dict__")["w"], list.__getitem__(trap_list, 0), dict.get(trap_dict, "w")
    ran.clear()
    names = Names([sys._getframe()], is_leaf=is_leaf)
    found = [names.of(one) for one in wanted]
    assert ran == []
    assert found[0][0] == "trap.w"
    assert "trap_list[0]" in (found[1][0], *found[1][1])
    assert "trap_dict['w']" in (found[2][0], *found[2][1])
    assert odd is not None and proxy is not None and lazy is not None


def test_search_is_bounded_in_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names_module, "MOST_OPENED", 50)
    wide = [Holder(inner=Holder(w=Tensor())) for _ in range(500)]
    near = Holder(w=Tensor())
    names = Names([sys._getframe()], is_leaf=is_leaf)
    assert names.of(near.w)[0] == "near.w"  # type: ignore[attr-defined]
    assert names.of(wide[499].inner.w)[0] == ""  # type: ignore[attr-defined]


def test_search_is_bounded_in_depth_and_width() -> None:
    deep = Holder(w=Tensor())
    wanted = [deep.w]  # type: ignore[attr-defined]
    for _ in range(20):
        deep = Holder(next=deep)
    long = [0] * MOST_ELEMENTS + [Tensor()]
    assert named(wanted[0]) == ("wanted[0]", ())
    assert named(long[-1])[0] == ""


def test_long_lists_of_numbers_cost_little() -> None:
    rows = [[float(i) for i in range(1000)] for _ in range(300)]
    w = Tensor()
    start = time.perf_counter()
    assert named(w)[0] == "w"
    assert time.perf_counter() - start < 5
    assert rows


def test_objects_of_the_standard_library_are_not_opened() -> None:
    logger, lock = logging.getLogger("names"), threading.Lock()
    logger.w = Tensor()  # type: ignore[attr-defined]
    space = types.SimpleNamespace(w=Tensor())
    assert named(logger.w)[0] == ""  # type: ignore[attr-defined]
    assert named(space.w)[0] == "space.w"
    assert lock


def test_dict_that_changes_while_it_is_read_is_survived() -> None:
    busy: dict[str, object] = {"w": Tensor()}
    stop = threading.Event()

    def change() -> None:
        number = 0
        while not stop.is_set():
            busy[f"k{number % 50}"] = number
            busy.pop(f"k{(number + 25) % 50}", None)
            number += 1

    thread = threading.Thread(target=change)
    thread.start()
    try:
        assert {named(busy["w"])[0] for _ in range(30)} == {"busy['w']"}
    finally:
        stop.set()
        thread.join()


def test_caller_that_fails_costs_names_only() -> None:
    holder, w = Holder(w=Tensor()), Tensor()

    def fails(_: object) -> Any:
        raise ValueError

    for option in ("openers", "same"):
        assert Names([sys._getframe()], is_leaf=is_leaf, **{option: fails}).of(w)[0] == "w"
    assert holder


def test_looking_at_a_frame_keeps_no_value_alive() -> None:
    class Big:
        pass

    def train() -> weakref.ref[Big]:
        big = Big()
        Names([sys._getframe()])
        alive = weakref.ref(big)
        del big
        gc.collect()
        return alive

    assert train()() is None

    def still_running() -> object:
        big = Big()
        alive = weakref.ref(big)
        Names([sys._getframe()])
        del big
        gc.collect()
        return alive()

    assert still_running() is None


def test_program_that_holds_its_locals_keeps_them() -> None:
    def holds() -> tuple[bool, bool]:
        weight = Tensor()
        held = locals()
        Names([sys._getframe()], is_leaf=is_leaf)
        return held["weight"] is weight, "held" in locals()

    assert holds() == (True, True)


def test_name_made_by_exec_stays() -> None:
    def makes() -> object:
        weight = Tensor()
        exec("made = weight")
        before = locals().get("made")
        Names([sys._getframe()], is_leaf=is_leaf)
        return locals().get("made") is before

    assert makes()


def test_index_of_many_objects_is_one_search(monkeypatch: pytest.MonkeyPatch) -> None:
    searches = 0
    search = Names._search

    def counted(self: Names, roots: Any) -> None:
        nonlocal searches
        searches += 1
        search(self, roots)

    monkeypatch.setattr(Names, "_search", counted)
    variables = [Tensor() for _ in range(200)]
    names = Names([sys._getframe()], is_leaf=is_leaf)
    assert [names.of(one)[0] for one in variables] == [f"variables[{index}]" for index in range(200)]
    assert searches == 1


def test_notebook_results_are_no_names() -> None:
    w = Tensor()
    cell: Callable[[], Any] = eval(
        "lambda: names()", {"_ih": [""], "Out": {3: w}, "_3": w, "w": w, "names": lambda: look()}
    )

    def look() -> tuple[str, tuple[str, ...]]:
        return Names([sys._getframe(2)], is_leaf=is_leaf).of(w)

    assert cell() == ("w", ())

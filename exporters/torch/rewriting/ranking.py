"""``sorted``, ``max`` and ``min`` of a few items by keys that data decide: each place gets the item of that rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import BuiltinMethodType
from typing import Any

import torch

from entrepot.exporters.torch.rewriting import in_python
from entrepot.exporters.torch.rewriting.links import whole
from entrepot.exporters.torch.rewriting.lists import Columns, Grown, Stacked
from entrepot.exporters.torch.rewriting.one_tensor import one_tensor, unknown
from entrepot.exporters.torch.rewriting.sequences import Rows, Unfinished
from entrepot.exporters.torch.rewriting.shapes import as_tensor
from entrepot.exporters.torch.rewriting.trees import UnlikeError, gather, paired, spread


def put_in_order(plain: Any, items: Any, *, key: Any = None, reverse: bool = False) -> Any:
    """``sorted``."""
    items = _followed(items)
    if isinstance(items, Unfinished):
        if (column := one_tensor(_keys(items, key))) is None:
            raise TypeError("a list whose length varies is put in order by keys that are no numbers")
        return _arranged(items, _order(column, reverse=reverse))
    if not isinstance(items, list | tuple):
        return plain(items, key=key, reverse=reverse)
    column = unknown(keys := _keys(items, key))
    if column is None:
        return [items[at] for at in plain(range(len(keys)), key=keys.__getitem__, reverse=reverse)]
    chosen = _Chosen(items)
    return [chosen.at(place) for place in _order(column, reverse=reverse).unbind()]


def is_sort(function: Any) -> bool:
    """Whether a function is the method ``sort`` of a list."""
    return (
        isinstance(function, BuiltinMethodType) and function.__name__ == "sort" and isinstance(function.__self__, list)
    )


def sort(items: list[Any], **how: Any) -> None:
    """``items.sort()``."""
    items[:] = put_in_order(sorted, [*items], **how)


def furthest(values: tuple[Any, ...], how: dict[str, Any], *, largest: bool) -> Any:
    """``max`` and ``min`` with a key, as a list of one; ``None`` where Python can tell."""
    items = _followed(values[0] if len(values) == 1 else values)
    if how.keys() != {"key"} or not isinstance(items, list | tuple | Unfinished):
        return None
    keys = _keys(items, how["key"])
    column = one_tensor(keys) if isinstance(items, Unfinished) else unknown(keys)
    if column is None:
        return None
    place = column.argmax() if largest else column.argmin()
    return _arranged(items, place.reshape(1)) if isinstance(items, Unfinished) else [_Chosen(items).at(place)]


def _followed(items: Any) -> Any:
    items = Rows(items) if isinstance(items, torch.Tensor) else whole(items)
    return list(items) if isinstance(items, Unfinished) and isinstance(items.length, int) else items


def _keys(items: Any, key: Any) -> Any:
    from entrepot.exporters.torch.rewriting.calls import callee

    if key is None:
        return items
    keys = callee(in_python.mapped)(key, items)
    return keys if isinstance(keys, Unfinished) else [*keys]


def _order(column: torch.Tensor, *, reverse: bool) -> torch.Tensor:
    return torch.sort(column, descending=reverse, stable=True).indices


def _arranged(items: Unfinished, order: torch.Tensor) -> Unfinished:
    """Some of the items of a sequence whose length varies, in an order."""
    if isinstance(items, Columns):
        return items.joined([column[order] for column in items.columns])
    if isinstance(items, Grown):
        return Grown(Stacked(items.stacked()[order]))
    if isinstance(items, Rows) and items.axis == 0:
        return items.joined([items.tensor[order]])
    raise TypeError("what is put in order is no list of tensors, numbers or rows of them")


class _Chosen:
    """Items that are alike, of which a tensor says which one is meant.

    Raises:
        UnlikeError: They are not.
    """

    def __init__(self, items: Sequence[Any]) -> None:
        leaves: list[Any] = []
        self._tree = spread(items[0], leaves)
        columns = [[leaf] for leaf in leaves]
        for item in items[1:]:
            for one, other in paired(self._tree, spread(item, leaves)):
                columns[one.index].append(leaves[other.index])
        self._choosers = [_chooser(column) for column in columns]

    def at(self, place: torch.Tensor) -> Any:
        """The item that a tensor without axes says."""
        return gather(self._tree, [choose(place) for choose in self._choosers])


def _chooser(column: Sequence[Any]) -> Callable[[torch.Tensor], Any]:
    is_number = not isinstance(column[0], torch.Tensor)
    tensors = [as_tensor(each) for each in column]
    if len({(each.dtype, each.dim()) for each in tensors}) > 1:
        raise UnlikeError("items that are put in order hold tensors of several kinds")
    stacked = torch.stack(tensors)

    def choose(place: torch.Tensor) -> Any:
        found = stacked[place.reshape(1)].squeeze(0)
        return found.item() if is_number else found

    return choose


FUNCTIONS: dict[Any, Callable[..., Any]] = {sorted: put_in_order}

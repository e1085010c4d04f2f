"""What Python reads is known while a module is captured, if it is of the module's own buffers, or computed of sizes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from entrepot.exporters.torch.capture.decided import Decisions, decisions_followed
from entrepot.exporters.torch.capture.numbers import Ratio, computed
from entrepot.exporters.torch.capture.questions import QUESTIONS
from entrepot.exporters.torch.capture.upstream import UnseenByModes
from entrepot.exporters.torch.lowering.schemas import memory_of
from entrepot.exporters.torch.running.in_place import changes
from entrepot.exporters.torch.upstream import FakeTensor, pytree, remember_number, remembered_number, without_modes

_MOST = 4096
"""Elements of what is computed beside the capture; Python decides by few."""

_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)

_UNKNOWN = (*_SYMBOLIC, torch.Tensor)

_READING = frozenset(
    ("__bool__", "__int__", "__float__", "__index__", "__contains__", "item", "tolist", "is_nonzero", "equal")
)

_MAKING = frozenset(("tensor", "as_tensor", "scalar_tensor"))

_COUNTING = frozenset(("arange", "linspace", "logspace"))
"""What makes numbers of numbers; tensors of zeros or ones are made to be written into."""


@contextlib.contextmanager
def held_values(flat: torch.nn.Module) -> Iterator[None]:
    """Inside, a branch by a buffer of ``flat``, or by what is computed of buffers alone, is the branch that it takes.

    A single number that is computed of buffers and of sizes is such a size. A buffer that is changed in place, or
    replaced, is no longer known.
    """
    held = {name: buffer for name, buffer in flat.named_buffers() if buffer.numel() <= _MOST}
    values = _Held(held, decisions_followed())
    hook = flat.register_forward_pre_hook(lambda module, _: values.begin(module))
    try:
        with values:
            yield
    finally:
        hook.remove()


class _Held(TorchFunctionMode):
    """Knows what some tensors hold that the capture sees without values."""

    def __init__(self, held: dict[str, torch.Tensor], decisions: Decisions | None) -> None:
        super().__init__()
        self._held = held
        self._decisions = decisions
        self._known: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._numbers: dict[int, tuple[torch.Tensor, Any]] = {}
        self._changed: set[int | None] = set()

    def begin(self, module: torch.nn.Module) -> None:
        """At the start of a call: which tensors stand for the buffers now."""
        if self._decisions is not None:
            self._decisions.begin()
        found = ((buffer, self._held.get(name)) for name, buffer in module.named_buffers())
        self._known = {
            id(buffer): (buffer, real) for buffer, real in found if real is not None and isinstance(buffer, FakeTensor)
        }
        self._numbers, self._changed = {}, set()
        for buffer, real in self._known.values():
            _tell(buffer, real)

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        """Read what is known, make any other call, and remember what follows."""
        kwargs = kwargs or {}
        if torch.compiler.is_dynamo_compiling():  # of a branch or a body, whose tensors are others
            return func(*args, **kwargs)
        if func in QUESTIONS:
            return func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        if changes(name, kwargs):
            self._forget(pytree.tree_leaves((args, kwargs)))
        if name == "__iter__":  # a function of Python, whose own calls no mode sees
            with self:
                return iter(torch.unbind(args[0], 0))
        real, form = None, None
        if not any(isinstance(each, torch.Tensor) and not self._knows(each) for each in args):  # mostly, one is not
            leaves, form = pytree.tree_flatten((args, kwargs))
            real = self._real(leaves)
        if real is None or form is None:
            decided = None if self._decisions is None else self._decisions.answer(name, args, kwargs)
            return self._beside(func, name, args, kwargs) if decided is None else decided
        given, named = pytree.tree_unflatten(real, form)
        if name in _READING:
            with without_modes():
                return func(*given, **named)
        result = func(*args, **kwargs)
        self._remember(result, lambda: func(*given, **named))
        return result

    def _beside(self, func: Any, name: str, args: tuple[Any, ...], kwargs: Any) -> Any:
        """Make a call; where its tensors are single numbers and some are sizes, the result is known by its number."""
        if name in ("__getitem__", "__setitem__"):
            args = (args[0], self._sliced(args[1]), *args[2:])
        if name in _COUNTING or (name in _MAKING and args and _is_told(args[0])):
            return self._made(func, name, args, kwargs)
        if not args or not any(isinstance(each, torch.Tensor) and each.dim() == 0 for each in args):
            return func(*args, **kwargs)
        numbers = [self._number(each) if isinstance(each, torch.Tensor) else each for each in args]
        if any(number is None for number in numbers):
            return func(*args, **kwargs)
        if name in ("__bool__", "is_nonzero"):
            return bool(numbers[0].top if isinstance(numbers[0], Ratio) else numbers[0])
        result = func(*args, **kwargs)
        if isinstance(result, FakeTensor) and result.dim() == 0:
            number = computed(name, numbers, kwargs, result.dtype)
            if number is not None:
                self._numbers[id(result)] = result, number
                if isinstance(number, torch.SymInt):
                    remember_number(result, number)
        return result

    def _made(self, func: Any, name: str, args: tuple[Any, ...], kwargs: Any) -> Any:
        """Make a tensor of numbers, by which it is known."""
        result = func(*args, **kwargs)
        if name in _MAKING and isinstance(args[0], int | torch.SymInt):
            if isinstance(result, FakeTensor) and result.dtype != torch.bool:
                self._numbers[id(result)] = result, args[0]
        elif not any(isinstance(leaf, _UNKNOWN) for leaf in pytree.tree_leaves((args, kwargs))):
            self._remember(result, lambda: func(*args, **kwargs))
        return result

    def _number(self, tensor: torch.Tensor) -> Any:
        if tensor.dim() > 0:
            return None
        if self._knows(tensor):
            with without_modes():
                return self._held_by(tensor).item()
        found = self._numbers.get(id(tensor))
        return remembered_number(tensor) if found is None else found[1]

    def _sliced(self, index: Any) -> Any:
        """An index whose slices begin and end at numbers instead of tensors that hold them."""
        if isinstance(index, tuple):
            return tuple(map(self._sliced, index))
        if not isinstance(index, slice):
            return index
        ends = (
            self._number(end) if isinstance(end, torch.Tensor) else end for end in (index.start, index.stop, index.step)
        )
        old = index.start, index.stop, index.step
        return slice(*(end if number is None else number for end, number in zip(old, ends, strict=True)))

    def _forget(self, leaves: Sequence[Any]) -> None:
        """What some tensors hold is no longer known, nor what their views hold."""
        changed = {_memory(leaf) for leaf in leaves if isinstance(leaf, torch.Tensor)}
        self._changed |= changed
        if None in changed:
            self._known, self._numbers = {}, {}
            return
        self._known = {key: each for key, each in self._known.items() if _memory(each[0]) not in changed}
        self._numbers = {key: each for key, each in self._numbers.items() if _memory(each[0]) not in changed}

    def _real(self, leaves: Sequence[Any]) -> list[Any] | None:
        """The same arguments with what they hold; ``None`` if that is not known of all."""
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        if not tensors or not all(map(self._knows, tensors)):
            return None
        if any(isinstance(leaf, _SYMBOLIC) for leaf in leaves):
            return None
        return [self._held_by(leaf) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]

    def _knows(self, tensor: torch.Tensor) -> bool:
        """Whether the elements of a tensor are known: also of one that a module has beside its buffers."""
        if id(tensor) in self._known:
            return True
        if type(tensor) is not torch.Tensor or not _is_small(tensor):
            return False
        return _memory(tensor) not in {None, *self._changed}

    def _held_by(self, tensor: torch.Tensor) -> torch.Tensor:
        return self._known[id(tensor)][1] if id(tensor) in self._known else tensor

    def _remember(self, result: Any, compute: Callable[[], Any]) -> None:
        made = pytree.tree_leaves(result)
        if not all(isinstance(each, FakeTensor) and _is_small(each) for each in made):
            return
        with without_modes():
            before = torch.get_rng_state()
            values = pytree.tree_leaves(compute())
            if not torch.equal(before, torch.get_rng_state()):  # another one in the next call
                torch.set_rng_state(before)
                return
        self._known |= {id(each): (each, value) for each, value in zip(made, values, strict=True)}
        for each, value in zip(made, values, strict=True):
            _tell(each, value)


def _tell(tensor: torch.Tensor, value: torch.Tensor) -> None:
    """Let torch read a single whole number where it wants one."""
    if value.dim() == 0 and value.dtype in (torch.int32, torch.int64):
        with without_modes():
            remember_number(tensor, int(value))


def _memory(tensor: torch.Tensor) -> int | None:
    """The same for tensors that are views of one; ``None`` for what hides another tensor, or is sparse."""
    try:
        with UnseenByModes():  # many are asked at each write
            return memory_of(tensor)
    except RuntimeError:
        return None


def _is_told(data: Any) -> bool:
    """Whether a tensor is made of a number, or of a list of numbers that do not vary."""
    listed = isinstance(data, list | tuple) and all(isinstance(each, int | float) for each in pytree.tree_leaves(data))
    return listed or isinstance(data, int | torch.SymInt)


def _is_small(tensor: torch.Tensor) -> bool:
    """Whether elements are few; of a size that varies it is not asked, which would bind the capture to the answer."""
    return all(isinstance(size, int) for size in tensor.shape) and tensor.numel() <= _MOST

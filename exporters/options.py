"""What a caller of ``export`` may ask for, checked once and handed to the framework's exporter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from entrepot.ir.arguments import expected

if TYPE_CHECKING:
    from entrepot.exporters.weight_store import WeightStore
    from entrepot.ir.passes.levels import Level
    from entrepot.parity.compare import Tolerance

Axes: TypeAlias = "Mapping[Any, Any] | Sequence[Any] | None"
"""Of one input: ``{0: "batch"}``; names by position, ``["batch", None]``; or axes that get a name here, ``[0]``."""

Dynamic: TypeAlias = "Literal['auto', 'all'] | bool | Mapping[str, Axes]"
"""``"auto"`` or ``True``: whatever can vary; ``"all"``: whatever the model takes at other sizes, or an error;
``False``: nothing; ``{"x": {0: "batch"}}``: exactly these axes."""


State: TypeAlias = Literal["refuse", "outputs", "freeze"]
"""What becomes of state that forward changes: an error, inputs and outputs, or constants."""

Strings: TypeAlias = Literal["refuse", "cut"]
"""What becomes of operations on text that ONNX does not have: an error, or inputs in place of their results."""


def as_dynamic(given: Any) -> Dynamic:
    """What a caller means by ``dynamic``; axes come as ``{"x": {0: "batch"}}``, without those that stay fixed.

    Raises:
        InputError: It has some other form.
    """
    if given is True or (isinstance(given, str) and given == "auto"):
        return "auto"
    if isinstance(given, str) and given == "all":
        return "all"
    if given is False:
        return False
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise expected("dynamic", '"auto", "all", False, or names of axes by input', given, hint=_DYNAMIC)
    return {name: _axes(name, axes) for name, axes in given.items()}


_DYNAMIC = 'give "auto", "all", False, or names of axes by input: {"x": {0: "batch"}}'


def _axes(name: str, axes: Any) -> dict[int, Any]:
    if isinstance(axes, list | tuple):
        numbers = bool(axes) and all(isinstance(axis, int) and not isinstance(axis, bool) for axis in axes)
        axes = {axis: _own_name(name, axis) for axis in axes} if numbers else dict(enumerate(axes))
    if not (axes is None or isinstance(axes, Mapping)):
        raise expected(f"dynamic of '{name}'", "names by axis", axes, hint=_DYNAMIC)
    return {_axis(name, axis): _symbol(name, word) for axis, word in (axes or {}).items() if word is not None}


def _axis(name: str, axis: Any) -> int:
    whole = isinstance(axis, int) and not isinstance(axis, bool)
    if whole or (isinstance(axis, str) and axis.lstrip("-").isdecimal()):
        return int(axis)
    raise expected(f"an axis in dynamic of '{name}'", "its number", axis, hint=_DYNAMIC)


def _symbol(name: str, word: Any) -> Any:
    """A name, or a symbolic dimension of the framework, which has one."""
    if isinstance(word, str) or not isinstance(word, bool | int | float | bytes | list | tuple | dict | set):
        return word
    raise expected(f"the name of an axis in dynamic of '{name}'", "a word", word, hint=_DYNAMIC)


def _own_name(name: str, axis: int) -> str:
    words = "".join(letter if letter.isalnum() else "_" for letter in name)
    return f"{words}_dim{axis}".replace("-", "_")


@dataclass(frozen=True)
class Judging:
    """How a model is compared with its source.

    Attributes:
        providers: Who runs the model; ``None`` for the default ones.
        tolerance: What agreement means; ``None`` for the default.
        progress: Called with a short line per run.
        weights: Where a source that was built without weights has them.
    """

    providers: Sequence[str] | None = None
    tolerance: Tolerance | None = None
    progress: Callable[[str], None] | None = None
    weights: Path | None = None


@dataclass(frozen=True)
class Options:
    """The keyword arguments of ``export``.

    Attributes:
        opset: Opset of the result; ``None`` for the default.
        dynamic: Which axes may vary.
        verify: Whether the result is run beside its source.
        tolerance: What agreement means; ``None`` for the default.
        input_names: Names of the graph inputs, in flat order, instead of those from the signature.
        output_names: Names of the graph outputs, in flat order.
        tell: Called with a short line per stage.
        dynamic_shapes: Which axes may vary, as torch.export takes it; ``dynamic`` is then "auto".
        checks: Whether the graph refuses sizes for which it was not made.
        share: Whether the model uses the weights of the source instead of copies.
        optimize: How far the graph is cleaned up.
        state: What becomes of buffers and attributes that forward changes, if results depend on them.
        random: Whether random numbers may be drawn by the graph.
        training: Whether the module is exported in its own mode instead of evaluation mode.
        strings: What becomes of operations on text that ONNX does not have.
        weights: Where a module that was built without weights has them.
        bounded: Whether an axis of ``dynamic`` may end where the source takes another path, well beyond the sample.
        from_one: Symbols of axes that have to take size 1, or the caller can do nothing with the result.
        endless: Symbols of axes that may have no largest size, or the caller can do nothing with the result.
        store: Where copies of weights lie that several results share; ``None`` for memory of each result's own.
    """

    opset: int | None = None
    dynamic: Dynamic = "auto"
    verify: bool = True
    tolerance: Tolerance | None = None
    input_names: Sequence[str] | None = None
    output_names: Sequence[str] | None = None
    tell: Callable[[str], None] = field(default=lambda line: None)
    share: bool = False
    checks: bool = False
    dynamic_shapes: Any = None
    optimize: Level = "basic"
    state: State = "refuse"
    random: bool = False
    training: bool = False
    strings: Strings = "refuse"
    weights: Path | None = None
    bounded: bool = False
    from_one: frozenset[str] = frozenset()
    endless: frozenset[str] = frozenset()
    store: WeightStore | None = None

    @property
    def dynamic_all(self) -> bool:
        """Whether an axis that the model takes at other sizes has to vary."""
        return self.dynamic == "all"

    @property
    def judging(self) -> Judging:
        """How the result is judged, if it is."""
        return Judging(tolerance=self.tolerance, progress=self.tell)

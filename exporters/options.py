"""What a caller of ``export`` may ask for, checked once and handed to the framework's exporter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from entrepot.parity.compare import Tolerance

Dynamic: TypeAlias = "Literal['auto'] | bool | Mapping[str, Mapping[int, Any]]"
"""``"auto"`` or ``True``: what the model lets vary; ``False``: nothing; ``{"x": {0: "batch"}}``: exactly these axes."""


@dataclass(frozen=True)
class Judging:
    """How a model is held against its source.

    Attributes:
        providers: Who runs the model; ``None`` for the default ones.
        tolerance: What agreement means; ``None`` for the default.
        progress: Called with a short line per run.
    """

    providers: Sequence[str] | None = None
    tolerance: Tolerance | None = None
    progress: Callable[[str], None] | None = None


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
        dynamic_shapes: Which axes may vary, in the words of torch.export; ``dynamic`` is then "auto".
        checks: Whether the graph refuses sizes for which it was not made.
        share: Whether the weights stay those of the source, instead of copies.
    """

    opset: int | None
    dynamic: Dynamic
    verify: bool
    tolerance: Tolerance | None
    input_names: Sequence[str] | None
    output_names: Sequence[str] | None
    tell: Callable[[str], None]
    share: bool = False
    checks: bool = False
    dynamic_shapes: Any = None

    @property
    def judging(self) -> Judging:
        """How the result is judged, where it is."""
        return Judging(tolerance=self.tolerance, progress=self.tell)

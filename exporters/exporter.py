"""What a framework brings to be exported: an ``Exporter``, which recognises things, and the ``Source`` that it opens.

Everything else is the pipeline's: which axes vary, names, structure, opset, proof.
"""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from entrepot.exporters.arrays import NUMPY, Array, Arrays
from entrepot.exporters.axes.groups import axes_of, axis_name
from entrepot.exporters.options import Judging, Options
from entrepot.exporters.structure import Flat, constants, is_number
from entrepot.ir.errors import ConversionError, InputError, VerificationError

if TYPE_CHECKING:
    import numpy as np
    import onnx_ir

    from entrepot.exporters.axes.groups import Axis, Group
    from entrepot.exporters.axes.probe import Prober
    from entrepot.exporters.axes.relations import Relation
    from entrepot.exporters.notes import Fixed
    from entrepot.exporters.recognition import Found
    from entrepot.ir.model import Model
    from entrepot.parity.report.report import Report


class NoGainError(ConversionError):
    """A capture is no better than a result there is; ``reasons`` says why it fixes axes."""

    def __init__(self, message: str, *, reasons: Mapping[Axis, Fixed]) -> None:
        super().__init__(message)
        self.reasons = reasons


class PostponedError(ConversionError):
    """A capture fixes axes, ``lost``, that the next way may leave open: it is made only if that does not.

    ``beyond`` says of some of them from which size on the model takes another path.
    """

    def __init__(self, message: str, *, lost: Collection[Axis], beyond: Mapping[Axis, int] | None = None) -> None:
        super().__init__(message)
        self.lost = frozenset(lost)
        self.beyond = dict(beyond or {})


class BeginsLateError(VerificationError):
    """A graph is right from a later size on than its caller can do with; one of another way would be no better."""


class Refusal(Exception):  # noqa: N818 - an answer, not a fault
    """A model itself does not take these inputs.

    Args:
        cause: What it raised.
        source: The user's line that refused, ``net.py:12 in forward: y = x @ w``, if known.
        said: What of its message is to be told; its first line by default.
    """

    def __init__(self, cause: BaseException, source: str = "", said: str = "") -> None:
        first = said or next(iter(str(cause).splitlines()), "")
        super().__init__(f"{type(cause).__name__}: {first}")
        self.source = source


class StructureRefusal(Refusal):
    """A model takes these inputs, but its results are others than a graph can have."""

    def __init__(self) -> None:
        super().__init__(TypeError("the structure or the rank of the results changes with the size"))


class Required(NamedTuple):
    """A truth that a graph computes and that has to be as it was: where it is decided by, and which it was."""

    line: str
    holds: bool


@dataclass
class Captured:
    """What was made of a model for certain axes.

    Attributes:
        graph: Its nodes, at any opset; inputs and outputs in flat order, weights under the names that they keep.
        groups: The axes that vary in it, of those that were asked for.
        fixed: Axes that were asked for and do not vary, each with the reason.
        numbers: Results that are Python numbers of the model but outputs of the graph, because they depend on a size.
        weights: Names of the initializers that are weights; ``None`` for all.
        required: What the last outputs of the graph are: truths without which it must not return anything.
        against: Sizes, by symbol, at which the capture need not hold, though the model takes them.
    """

    graph: onnx_ir.Model
    groups: list[Group]
    fixed: Mapping[Axis, Fixed] = field(default_factory=dict)
    numbers: frozenset[str] = frozenset()
    weights: Collection[str] | None = None
    required: Sequence[Required] = ()
    against: Sequence[Mapping[str, int]] = ()


class Callee(Protocol):
    """A model as a function from flat arrays to flat arrays.

    Attributes:
        arrays: The kind of arrays that it takes.
        numbers: Results that are Python numbers and are returned as arrays; the pipeline sets it after the capture.
        required: What it has to decide by values, or refuse; the pipeline sets it as well.
    """

    arrays: Arrays = NUMPY
    numbers: frozenset[str] = frozenset()
    required: Sequence[Required] = ()

    @abstractmethod
    def __call__(self, arrays: Sequence[Array], /) -> Flat:
        """Call the model as its user would.

        Raises:
            Refusal: It does not take these sizes or values.
        """

    def takes_shapes(self, arrays: Sequence[Array], shapes: Sequence[Sequence[int]]) -> bool:
        """Whether it is known to take arrays like these at shapes that are too large to be tried."""
        return False

    def relations(self, arrays: Sequence[Array], equal: Sequence[Collection[Axis]]) -> Sequence[Relation] | None:
        """Axes whose sizes seem to follow from others, each to be tried; ``None`` where it cannot say.

        Args:
            arrays: What the model takes.
            equal: Axes that are known to have one size.
        """
        return None


class Source(Callee, Protocol):
    """One model with one sample, ready to be exported. A class that names this as its base inherits what is optional.

    A source that can also compute in float64 has a method ``in_double``, which returns such a ``Callee`` or raises
    ``Refusal``; then edge values are tried as well.

    Attributes:
        framework: Its name and version, for the file.
        name: What the graph and reports call the model.
        origin: Where its class or function is defined, ``package.module:Name``.
        noun: What its framework calls such a thing, for progress.
        call: The flat sample.
        parameters: Names that inputs and outputs may not have.
        seed: Where generators start in the next call, if it draws random numbers.
        ways: In which ways it can be captured, the first one preferred.
        looping: The one of them that keeps loops, whatever their length, if any.
        sized: Those of them whose captures depend on the sizes of the sample.
        last: Further ones, tried where none of them came to anything.
        joins: Those that put captures of another way together, and of which; they are right only where these are.
        spared: Axes that are not worth another way, where one came to something.
        way: The one to be used; the pipeline sets it before each capture.
        more: Further inputs to prove a capture with: they take branches that the sample does not.
        lost: Axes that should vary and do not, whatever way was used before; the pipeline sets it as well.
        found: Whether there is a result already, so that only one in which some of those vary is of use.
        postpones: Whether a capture that fixes axes may be put off by ``PostponedError``; set by the pipeline.
        counts_turns: Whether a loop that never ends is a refusal; else the call would not return.
        stuck: Whether a branch or a loop by itself could not be captured along all axes, in the way that keeps loops.
        yields: Whether axes are given up for such a branch or loop; set by the pipeline.
    """

    framework: str
    name: str
    origin: str
    call: Flat
    noun: str = "model"
    parameters: Collection[str] = ()
    seed: int = 0
    ways: Sequence[str] = ("as it is",)
    looping: str = ""
    sized: Sequence[str] = ()
    last: Sequence[str] = ()
    joins: Mapping[str, str] = MappingProxyType({})
    spared: Collection[Axis] = ()
    way: str = "as it is"
    lost: Collection[Axis] = ()
    found: bool = False
    postpones: bool = False
    more: Sequence[Sequence[Array]] = ()
    counts_turns: bool = True
    stuck: bool = False
    yields: bool = False

    @abstractmethod
    def capture(self, prober: Prober, groups: list[Group], options: Options) -> Captured:
        """The model as a graph in which the axes of ``groups`` vary.

        A source that can be captured at concrete sizes only returns no groups, and says why in ``fixed``.

        Args:
            prober: Has the sample with sizes of 1 enlarged, and knows which sizes the model takes.
            groups: Axes that the model allows to vary; those that are required have to, or it is an error.
            options: What the caller asked for; ``tell`` is to be told each stage.

        Raises:
            ConversionError: The model cannot be captured, or a required axis cannot vary.
            UnsupportedOpError: An operator has no counterpart.
        """

    def accept(self, options: Options) -> None:
        """Refuse options that it cannot follow.

        Raises:
            InputError: There are such options.
        """
        if options.share:
            raise InputError(f"the weights of this {self.noun} cannot be shared", hint="leave share out to copy them")
        refuse_modes(options)

    def variants(self, tensors: Sequence[Array]) -> Iterable[Sequence[Array]]:
        """Tensors with other values, if the model may go another way for such; none if values decide nothing."""
        return ()

    def behind_text(self, options: Options) -> Source:
        """The model from behind its operations on text that no graph can express; itself if it has none.

        Raises:
            InputError: Models of this framework have no such operations.
            ConversionError: Nothing is left.
        """
        raise InputError(f"strings is for models of TensorFlow, Keras and scikit-learn, and this {self.noun} is none")

    @contextlib.contextmanager
    def guard(self) -> Iterator[None]:
        """Inside, the model is ready to be called and captured; afterwards everything is as it was before."""
        yield

    def check_gain(
        self, groups: Iterable[Group], captured: Iterable[Group], reasons: Mapping[Axis, Fixed] | None = None
    ) -> None:
        """Leave a capture alone that is no better than a result there is: translating and proving it takes longer.

        Raises:
            NoGainError: What is lost is fixed in it as well, for these reasons.
        """
        varying = {axis for group in captured for axis in group.axes}
        if self.found and varying.isdisjoint(self.lost):
            raise NoGainError(self._fixes(axes_of(groups) - varying), reasons=reasons or {})

    def postpone(self, groups: Iterable[Group], left: Iterable[Group], fixed: Mapping[Axis, Fixed]) -> None:
        """Put a capture off that leaves only some groups open, and says why it fixed others.

        Raises:
            PostponedError: The pipeline allows it, and an axis is fixed that is worth another way.
        """
        lost = axes_of(groups) - axes_of(left)
        if self.would_postpone(groups, left):
            beyond = {axis: reason.beyond for axis, reason in fixed.items() if reason.beyond}
            raise PostponedError(self._fixes(lost), lost=lost, beyond=beyond)

    def would_postpone(self, groups: Iterable[Group], left: Iterable[Group]) -> bool:
        """Whether a capture is put off that leaves only some groups open."""
        return self.postpones and not axes_of(groups) - axes_of(left) <= set(self.spared)

    def _fixes(self, axes: Iterable[Axis]) -> str:
        return f"fixes {', '.join(axis_name(axis, self.call.names) for axis in sorted(axes))}"

    def follows_sizes(self) -> bool:
        """Whether, captured in this way, a size at which one capture turns out wrong may get another."""
        return False

    def objection(self, report: Report, groups: Sequence[Group]) -> str:
        """Why a proof in which nothing failed says too little of a capture made in this way; empty if it does not."""
        return ""

    def steps(self, arrays: Sequence[Array]) -> int:
        """How many steps it takes in Python for arrays, where a capture at their sizes follows each of them."""
        return 0

    def settled(self) -> Flat:
        """The result for the sample, once it is clear that another call would return the same.

        Raises:
            InputError: The model does not take the sample.
            ConversionError: It depends on more than its inputs.
        """
        from entrepot.exporters.steady import settled

        return settled(self)

    def computes_in(self) -> Iterable[np.dtype]:
        """The types in which it computes, where its results do not say so."""
        return ()

    def precision(self) -> np.dtype | None:
        """The least exact type in which it computes what it returns in a more exact one; ``None`` if there is none."""
        from entrepot.parity.tolerance import least_exact

        return least_exact(self.computes_in())

    def is_random(self) -> bool:
        """Whether results may be random, and are: they are then compared by their distribution."""
        return False

    def check(self, result: Flat) -> None:
        """Refuse results for which ONNX has no type.

        Raises:
            InputError: There is nothing among them that can be an output.
        """
        if not result.tensors and not any(is_number(place.value) for place in constants(result.tree)):
            raise InputError(f"the {self.noun} returns no array", hint="return at least one")

    def groups(self, prober: Prober, options: Options) -> tuple[list[Group], Collection[Axis], Mapping[Axis, Fixed]]:
        """The axes that are to vary, those that may, and reasons that are known for others; found by probing."""
        from entrepot.exporters.axes.wanted import wanted_groups

        return *wanted_groups(prober, self, options), {}

    def shaped_groups(self, prober: Prober, dynamic_shapes: Any) -> tuple[list[Group], Collection[Axis]]:
        """The same for the ``dynamic_shapes`` of ``export``.

        Raises:
            InputError: It is not understood.
        """
        raise InputError("dynamic_shapes is for torch modules", hint='name the axes: dynamic={"x": {0: "batch"}}')

    def limits(self, prober: Prober, groups: Sequence[Group]) -> list[str]:
        """Conditions on sizes, in Python's notation over symbols."""
        from entrepot.exporters.axes.limits import size_limits

        return size_limits(prober, groups)

    def own_weights(self, graph: onnx_ir.Model, *, share: bool) -> None:
        """Give a graph weights that no later change of the model reaches, or that are shared with it."""

    def notes(self) -> Sequence[str]:
        """What else a user should know."""
        return ()


def refuse_modes(options: Options) -> None:
    """Refuse what only a framework's own modules have.

    Raises:
        InputError: It is asked for.
    """
    if options.state != "refuse" or options.random or options.training or options.weights is not None:
        raise InputError("state, random, training and weights are for torch modules", hint="leave them out")


class Exporter(Protocol):
    """One framework.

    Attributes:
        name: What it is called.
    """

    name: str

    @abstractmethod
    def recognises(self, found: Found) -> bool:
        """Whether an object, a file or a folder is one of its models; nothing has to be imported to tell."""

    @abstractmethod
    def open(self, obj: Any, sample: Any) -> Source:
        """A model with its sample.

        Args:
            obj: What was recognised.
            sample: What the caller gave, or ``None``.

        Raises:
            InputError: It is no model that can be exported, or the sample does not fit it.
            ModelFormatError: The file cannot be read.
        """

    def export(self, obj: Any, sample: Any, options: Options) -> Model:
        """See ``entrepot.export``."""
        from entrepot.exporters import pipeline

        return pipeline.export(self.open(obj, sample), options)

    def verify(self, obj: Any, model: Model, sample: Any, judging: Judging) -> Report:
        """See ``entrepot.verify``."""
        from entrepot.exporters import pipeline

        return pipeline.verify(self.open(obj, sample), model, judging)

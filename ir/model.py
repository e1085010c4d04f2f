"""The handle users hold: a thin, printable wrapper over an ``onnx_ir.Model`` at any opset."""

from __future__ import annotations

import html
import json
import re
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from entrepot.ir.arguments import PathLike, as_flag, as_path, expected
from entrepot.ir.printable import counted, printable, size_text
from entrepot.ir.proof import Proof

if TYPE_CHECKING:
    import onnx
    import onnx_ir

    from entrepot.ir.io.parsed import Parsed
    from entrepot.ir.pickling import Packed


@dataclass(frozen=True)
class ValueSpec:
    """An input or output of a model.

    Attributes:
        name: Its name in the graph.
        dtype: ONNX element type in lower case (``"float32"``), or ``None`` if the file does not say.
        shape: One entry per axis: a size, a symbol, or ``None`` if unknown; ``None`` for an unknown rank.
        kind: ``"tensor"``, or ``"sequence"``, ``"optional"``, ``"sparse_tensor"``, ``"map"``, ``"opaque"``.
    """

    name: str
    dtype: str | None
    shape: tuple[int | str | None, ...] | None
    kind: str = "tensor"

    def __str__(self) -> str:
        dims = "?" if self.shape is None else ", ".join("?" if dim is None else str(dim) for dim in self.shape)
        text = f"{self.name}: {self.dtype or '?'}[{dims}]"
        return text if self.kind == "tensor" else f"{text} ({self.kind})"


class Model:
    """A model in the neutral form, at whatever opset it came in.

    Treat it as immutable: conversions and passes return a new ``Model`` that shares the weights. A model pickles and
    copies with its weights and its report.

    Args:
        model: The graph this handle wraps, or another handle to it; not copied.
        path: The file it was read from, for messages.
        report: The verification made when it was exported.

    Raises:
        InputError: One of them is of another type.
    """

    def __init__(
        self, model: onnx_ir.Model | Model | Parsed, *, path: PathLike | None = None, report: Proof | None = None
    ) -> None:
        import onnx_ir

        model = model.ir if isinstance(model, Model) else model
        self._ir = model if isinstance(model, onnx_ir.Model) else None
        self._parsed = None if self._ir is not None else _parsed(model)
        if not (report is None or isinstance(report, Proof)):
            raise expected("report", "a Report or None", report)
        self._hub: Model | None = None
        self._hub_of: tuple[Any, ...] = ()
        self.path = None if path is None else as_path(path)
        self.report = report

    @property
    def ir(self) -> onnx_ir.Model:
        """The ``onnx_ir.Model`` underneath."""
        if (parsed := self._parsed) is not None:
            self._ir = parsed.graph()
            self._parsed = None  # afterwards: another thread may be here
        assert self._ir is not None
        return self._ir

    @property
    def parsed(self) -> Parsed | None:
        """The file that was read, as long as nobody has asked for its graph."""
        return self._parsed

    @property
    def inputs(self) -> tuple[ValueSpec, ...]:
        """What must be fed: graph inputs without a default (an initializer of the same name)."""
        initializers = self.ir.graph.initializers
        return tuple(_spec(value) for value in self.ir.graph.inputs if value.name not in initializers)

    @property
    def outputs(self) -> tuple[ValueSpec, ...]:
        """What comes out, in graph order."""
        return tuple(_spec(value) for value in self.ir.graph.outputs)

    @property
    def opset(self) -> int:
        """The ai.onnx version of the main graph; 0 when the model does not use that domain."""
        return self.opsets.get("", 0)

    @property
    def opsets(self) -> dict[str, int]:
        """Domain to version, with ``""`` for ai.onnx."""
        return dict(self.ir.graph.opset_imports if (parsed := self.parsed) is None else parsed.opsets)

    @property
    def metadata(self) -> dict[str, str]:
        """The model's ``metadata_props``."""
        return self.ir.metadata_props

    @property
    def report(self) -> Proof | None:
        """The verification made when it was exported; void once weights that it shares with its source have changed."""
        if self._report is None or self._verified == self._fingerprint():
            return self._report
        return self._report.voided("weights shared with the source changed after the verification")

    @report.setter
    def report(self, report: Proof | None) -> None:
        self._report, self._verified = report, () if report is None else self._fingerprint()

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know about the export: which axes are fixed and why, what was left out."""
        return _strings(self.metadata.get("entrepot.notes", ""))

    @property
    def conditions(self) -> tuple[str, ...]:
        """What must hold for the sizes of the inputs, as far as the exporter knows: ``width % 8 == 0``."""
        return _strings(self.metadata.get("entrepot.conditions", ""))

    @property
    def related(self) -> frozenset[str]:
        """What has to hold for sizes of inputs: axes named by a formula (``past + sequence``) and bounds (``n >= 5``).

        A file of another origin may have such names for axes whose sizes it does not take from them.
        """
        bounds = {condition for condition in self.conditions if _BOUND.fullmatch(condition)}
        stated = {condition.partition(" == ")[2] for condition in self.conditions}
        names = {dim for spec in self.inputs for dim in spec.shape or () if isinstance(dim, str)}
        return frozenset(name for name in names & stated if not name.isidentifier()) | bounds

    @property
    def steps(self) -> dict[str, tuple[int, int]]:
        """What sizes are divided by, and what has to be left, by the name of an axis of inputs; from ``conditions``."""
        found = filter(None, map(_STEP.fullmatch, self.conditions))
        return {match[1]: (int(match[2]), int(match[3])) for match in found if int(match[2]) > 0}

    def _fingerprint(self) -> tuple[Any, ...]:
        """The state of the weights that may change: those that an exporter was asked to share."""
        if self.parsed is not None:
            return ()
        tensors: Any = (value.const_value for value in self.ir.graph.initializers.values())
        return tuple(tensor.fingerprint() for tensor in tensors if hasattr(tensor, "fingerprint"))

    def at_hub(self) -> Model:
        """The same model at ``entrepot.ir.OPSET``: what runs, is optimised and is imported; made once.

        Raises:
            ConversionError: A node cannot be brought to the hub's opset.
        """
        weights = self._fingerprint()
        if self._hub is None or self._hub_of != weights:
            from entrepot.ir.opset.convert import raise_to_hub

            self._hub, self._hub_of = raise_to_hub(self), weights
        return self._hub

    def to_proto(self) -> onnx.ModelProto:
        """The model as a new ``onnx.ModelProto``, weights included."""
        from entrepot.ir.io.write import to_proto

        return to_proto(self.ir)

    def save(self, path: PathLike | BinaryIO, *, external_data: str | None = "auto", gather: bool = False) -> None:
        """Write the model, atomically for model and data together.

        Args:
            path: Where the ``.onnx`` file goes; its folder must exist. A link stays, and what it points to is replaced;
                a pipe, a character device or an open binary file is written to directly, weights included.
            external_data: ``"auto"`` refers to weights that lie in the folder already, and puts the others into the
                model, or into ``<file name>.data`` when they pass 1.75 GiB. Another string names the data file; if
                there is such a file, a number is added. ``None`` keeps everything inside.
            gather: Copy weights too that an export left in the files they came from (see ``weights`` of ``export``);
                without it, such a model is saved beside these files.

        Raises:
            StorageError: The files cannot be written; what was there before is untouched.
            InputError: ``path`` is not a path, or ``external_data`` is not a file name.
        """
        from entrepot.ir.io.write import save

        if not (external_data is None or isinstance(external_data, str)):
            raise expected("external_data", "'auto', None or the name of a file", external_data)
        if (report := self.report) is not None and report.void:
            warnings.warn(f"what is saved was not verified: {report.void}", stacklevel=2)
        save(self.parsed or self.ir, path, external_data=external_data, gather=as_flag(gather, "gather"))

    def __reduce__(self) -> tuple[Any, ...]:
        from entrepot.ir.pickling import pack

        return _unpickled, (type(self), pack(self.ir), self.path, self.report)

    def __repr__(self) -> str:
        lines = [f"entrepot.Model {self.ir.graph.name or 'model'!r}, {self._summary()}"]
        lines += [f"  in   {spec}" for spec in self.inputs]
        lines += [f"  out  {spec}" for spec in self.outputs]
        lines += [f"  needs {printable(', '.join(self.conditions))}"] if self.conditions else []
        if self.report is not None:
            lines.append(f"  {self.report.summary()}")
        lines += [f"  note: {printable(note)}" for note in self.notes]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{kind}</td><td>{html.escape(str(spec))}</td></tr>"
            for kind, specs in (("in", self.inputs), ("out", self.outputs))
            for spec in specs
        )
        title = html.escape(f"{self.ir.graph.name or 'model'}: {self._summary()}")
        return f"<table><caption>{title}</caption>{rows}</table>"

    def _summary(self) -> str:
        opsets = ", ".join(f"{domain or 'ai.onnx'} {version}" for domain, version in self.opsets.items())
        weights = [value.const_value for value in self.ir.graph.initializers.values() if value.const_value is not None]
        size = size_text(sum(weight.nbytes for weight in weights))
        return f"opset {opsets}, {counted(len(self.ir.graph), 'node')}, {counted(len(weights), 'weight')} ({size})"


def _unpickled(kind: type[Model], packed: Packed, path: PathLike | None, report: Proof | None) -> Model:
    from entrepot.ir.pickling import unpack

    return kind(unpack(packed), path=path, report=report)


def _parsed(model: Any) -> Parsed:
    from entrepot.ir.io.parsed import Parsed

    if not isinstance(model, Parsed):
        raise expected("the graph of a Model", "an onnx_ir.Model", model, hint="ep.load reads files and protos")
    return model


def _strings(text: str) -> tuple[str, ...]:
    """A list of strings from JSON; empty for anything else, as a file may contain whatever it likes."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return ()
    return tuple(found) if isinstance(found, list) and all(isinstance(each, str) for each in found) else ()


def _spec(value: onnx_ir.Value) -> ValueSpec:
    return describe_value(value.name or "", value.type, value.shape)


def describe_value(name: str, type_: onnx_ir.TypeProtocol | None, shape: onnx_ir.Shape | None) -> ValueSpec:
    """A value in words: what is known about its type and shape."""
    known = None if type_ is None else type_.dtype
    dims = None if shape is None else tuple(_dim(dim) for dim in shape)
    return ValueSpec(name, None if known is None or not known.value else _dtype_name(known), dims, _kind(type_))


def _kind(type_: onnx_ir.TypeProtocol | None) -> str:
    if type_ is None:
        return "tensor"
    # the reader's own class for maps and the like says what it is itself; importing it here would import onnx_ir
    return _KINDS.get(type(type_).__name__) or str(getattr(type_, "kind", "unknown"))


_STEP = re.compile(r"(\w+) % (\d+) == (\d+)")
_BOUND = re.compile(r"[A-Za-z_]\w* [<>]= \d+")
_KINDS = {
    "TensorType": "tensor",
    "SparseTensorType": "sparse_tensor",
    "SequenceType": "sequence",
    "OptionalType": "optional",
}


def _dim(dim: Any) -> int | str | None:
    return dim if isinstance(dim, int) else dim.value


def _dtype_name(dtype: onnx_ir.DataType) -> str:
    names = {"FLOAT": "float32", "DOUBLE": "float64"}
    return names.get(dtype.name, dtype.name.lower())

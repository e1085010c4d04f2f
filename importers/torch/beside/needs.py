"""What a file has before its classes: imports, functions copied from here, kernels."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.importers.torch.beside import opaque, support
from entrepot.importers.torch.beside.bundle import Bundle
from entrepot.importers.torch.dtypes import NAMES
from entrepot.importers.torch.op import Op
from entrepot.importers.torch.text.sizes import of_constant
from entrepot.ir.limits import Limits
from entrepot.ir.traits import host_operands
from entrepot.ir.typing.plain import Type
from entrepot.runtime.binding import Kernels, attributes_of
from entrepot.runtime.emitting.names import Names
from entrepot.runtime.kernels.table import shared
from entrepot.runtime.planning.plan import Call, Step, Value
from entrepot.runtime.providers.cpu.table import KERNELS as HOST
from entrepot.runtime.providers.torch.table import KERNELS as TORCH

OWN = ("torch", "nn", "F", "math", "self", "device", "dtype", "block", "np")
"""Names that a text uses for itself."""


class Helpers:
    """The functions that a text needs, as they are needed."""

    def __init__(self, limits: Limits) -> None:
        self._needed: dict[str, str] = {}
        self._limits = limits
        self._opaque: dict[str, str] = {}
        self.bundle = Bundle(Names((*OWN, *self.reserved)))

    @property
    def reserved(self) -> list[str]:
        """Names that the file may use."""
        return [name for name in vars(support) if not name.startswith("_")]

    def need(self, name: str) -> str:
        """A function of ``support``, with those that it calls."""
        if name not in self._needed:
            text = inspect.getsource(getattr(support, name))
            if "itertools" in text:
                self.bundle.imports["import itertools"] = None
            for inner in ast.walk(ast.parse(text)):
                if (
                    isinstance(inner, ast.Name)
                    and inner.id != name
                    and inspect.isfunction(getattr(support, inner.id, 0))
                ):
                    self.need(inner.id)
            self._needed[name] = text.rstrip()
        return name

    def texts(self) -> list[str]:
        """The functions, those that others call first."""
        return [*self.bundle.texts(), *self._needed.values(), *self._opaque.values()]

    def kernel(self, op: Op) -> str:
        """The call of a kernel that is written out in the file."""
        step = op.step
        near = not self._runs_there(step)
        entry, shared_with = self._entry(step, HOST if near else TORCH, "NumpyBackend" if near else "TorchBackend")
        call = Call(entry, "", (), attributes_of(step, entry))
        function = self.bundle.add(entry)
        host = range(len(step.inputs)) if near else host_operands(step.key)
        attributes = [f"{name}={self._attribute(value)}" for name, value in call.attributes.items()]

        def written(texts: Sequence[str], device: str, inside: Collection[int] = ()) -> str:
            backend = f"{self.bundle.backend(shared_with)}({'' if near else device})" if shared_with else ""
            seen = [at for at in host if at in inside]
            given = [self._host(op, at, text) if at in host else text for at, text in enumerate(texts)]
            given = [f"on_host({texts[at]})" if at in seen else text for at, text in enumerate(given)]
            text = f"{function}({', '.join([*filter(None, [backend]), *given, *attributes])})"
            if near:
                text = f"{self.need('from_host')}({text}{f', {device}' if device else ''})"
            if step.many and len(step.outputs) == 1:
                return f"{self.need('first')}({text})"
            return text if not step.many or "n_outputs" in call.attributes else f"{text}[:{len(step.outputs)}]"

        texts = op.operands()
        text = written(texts, op.writer.device())
        if "on_host(" not in text:
            return text
        fixed = [at for at in host if at < len(step.inputs) and self._is_fixed(op, at)]
        return self._as_operator(step, entry, texts, fixed, written) or text

    def _is_fixed(self, op: Op, position: int) -> bool:
        """Whether numbers that an operand consists of are known, and not only once a forward runs."""
        value = op.value(position)
        known = None if value is None or op.writer.exists(value) else op.writer.sizes.get(value) or of_constant(value)
        return known is not None and known.known is not None

    def _as_operator(
        self,
        step: Step,
        entry: Callable[..., Any],
        texts: Sequence[str],
        fixed: Collection[int],
        written: Callable[[Sequence[str], str, Collection[int]], str],
    ) -> str:
        """The call of a kernel that looks at values, as an operator; empty where too little is known of its results."""
        inside = opaque.operands(step, fixed)
        told = None if inside is None else opaque.results(step, list(inside))
        if inside is None or told is None:
            return ""
        names = list(inside.values())
        text = written([inside.get(at, text) for at, text in enumerate(texts)], f"{names[0]}.device", inside)
        name, definition = opaque.definition(step.op_type, entry, names, told, text)
        self.need("opaque")
        self._opaque[name] = definition
        return f"{name}({', '.join(texts[at] for at in inside)})"

    def _runs_there(self, step: Step) -> bool:
        """Whether torch has a kernel for a step, and its element types."""
        types = [value.type for value in (*step.inputs, *step.outputs) if value is not None]
        return TORCH.is_known(step.key) and all(map(_is_torchs, types))

    def _entry(self, step: Step, kernels: Kernels, backend: str) -> tuple[Callable[..., Any], str]:
        """The kernel of a step that has a text, and the backend that it takes."""
        entry = kernels.native.find(*step.key)
        if entry is not None and self.bundle.add(entry.function) is not None:
            return entry.function, ""
        return shared.get(*step.key).function, backend

    def _host(self, op: Op, position: int, text: str) -> str:
        value = op.value(position)
        if value is None:
            return "None"
        sizes = op.writer.sizes.get(value) or (None if op.writer.exists(value) else of_constant(value))
        if sizes is None:
            return f"{self.need('on_host')}({text})" if _is_torchs(value.type) else text
        self.bundle.imports["import numpy as np"] = None
        dtype = "" if sizes.dtype == ir.DataType.INT64 and sizes.items else f", np.{sizes.dtype.numpy()}"
        return f"np.array({sizes}{dtype})"

    def _attribute(self, value: Any) -> str:
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, bytes | str):
            return self.text(value if isinstance(value, str) else value.decode(errors="replace"))
        if isinstance(value, list | tuple):
            items = ", ".join(map(self._attribute, value))
            return f"[{items}]" if isinstance(value, list) else f"({items}{',' * (len(value) == 1)})"
        return f'float("{value}")' if isinstance(value, float) and value - value != 0 else repr(value)

    # what a Writer asks for
    def thing(self, value: Any, wanted: str) -> str:
        """A function of ``support``; the type and shape of what a loop collects."""
        if isinstance(value, Type):
            shape = tuple(dim if isinstance(dim, int) else 0 for dim in value.shape or ())
            dtype = value.dtype or ir.DataType.FLOAT
            return f"({NAMES.get(dtype) or self._numpys(dtype)}, {shape})"
        if value is support.truth and wanted == "true":
            return "True"
        return self.need(value.__name__)

    def constant(self, value: Value, step: Step | None, position: int) -> str:
        """What is neither kept nor a number: an array of a type that torch lacks."""
        return self._array(value.constant)

    def _array(self, array: np.ndarray[Any, Any]) -> str:
        """An array of NumPy, written out."""
        self.bundle.imports["import numpy as np"] = None
        plain = array if array.dtype.kind in "biufO" else array.astype(np.float32)
        rank = "" if array.size else f".reshape({array.shape})"
        kind = self._numpys(ir.DataType.STRING if array.dtype == object else ir.DataType.from_numpy(array.dtype))
        return f"np.array({self._attribute(plain.tolist())}, {kind}){rank}"

    def _numpys(self, dtype: ir.DataType) -> str:
        """An element type as NumPy names it; strings are objects."""
        if dtype == ir.DataType.STRING:
            return "object"
        kind = dtype.numpy()
        library = "np" if kind.isbuiltin == 1 else "ml_dtypes"
        self.bundle.imports["import numpy as np" if library == "np" else "import ml_dtypes"] = None
        return f"{library}.{kind.name}"

    def text(self, value: str) -> str:
        """A string in double quotes."""
        plain = repr(value)
        return f'"{plain[1:-1]}"' if plain.startswith("'") and '"' not in plain else plain

    def call(self, call: Call, step: Step, arguments: Sequence[str], attributes: Mapping[str, str]) -> str:
        """Not used: steps are written by words."""
        raise NotImplementedError


def _is_torchs(known: Type | None) -> bool:
    """Whether torch has the element type of a value."""
    while known is not None and known.element is not None:
        known = known.element
    return known is None or known.dtype is None or known.dtype in NAMES

"""Everything private or tied to a version that the exporter takes from torch and onnxscript; nobody else reaches there.

``tests/exporters/torch/test_upstream.py`` has a canary for each name and text: it says who uses what a release moved.
"""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any, TypeAlias
from unittest import mock

import sympy  # type: ignore[import-untyped]
import torch
import torch.ao.quantization.fx._decomposed  # defines the operators of PT2E
from onnxscript._framework_apis.torch_2_11 import convert_version
from onnxscript.function_libs.torch_lib.ops.core import aten_pow_tensor_scalar, aten_scalar_tensor
from onnxscript.function_libs.torch_lib.ops.nn import aten_softplus
from torch import _C as native  # noqa: N811
from torch import _meta_registrations as meta_registrations
from torch import _numpy as numpy_functions
from torch import _prims_common as layouts
from torch._decomp import decomposition_table as shape_rules
from torch._decomp import get_decompositions, meta_table
from torch._dispatch.python import enable_python_dispatcher
from torch._dynamo import config as tensor_settings
from torch._dynamo.source import ConstantSource
from torch._export import non_strict_utils as builtins_in_captures
from torch._export.verifier import SpecViolationError
from torch._higher_order_ops.effects import _EffectType, _register_effectful_op
from torch._higher_order_ops.scan import scan
from torch._library.custom_ops import OPDEFS
from torch._ops import OperatorBase, OpOverload, OpOverloadPacket
from torch._prims_common import is_contiguous_or_false as is_surely_contiguous
from torch._subclasses import fake_impls as shape_inference
from torch._subclasses.fake_impls import get_fast_op_impls as fast_shapes
from torch._subclasses.fake_impls import op_implementations_dict as fake_rules
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.ao.nn import quantized
from torch.ao.quantization import FakeQuantizeBase
from torch.export._trace import _export as export_with
from torch.export.exported_program import _override_composite_implicit_decomp as with_composites
from torch.export.exported_program import _split_decomp_table_to_cia_and_python_decomp as split_composites
from torch.fx import proxy as node_making
from torch.fx.experimental import _config as size_settings
from torch.fx.experimental import proxy_tensor as node_meanings
from torch.fx.experimental.proxy_tensor import _sympy_handlers, disable_proxy_modes_tracing, make_fx
from torch.fx.experimental.sym_node import SymNode
from torch.fx.experimental.symbolic_shapes import (
    DimConstraints,
    DimDynamic,
    ShapeEnv,
    StatelessSymbolicContext,
    free_unbacked_symbols,
    guarding_hint_or_throw,
    has_guarding_hint,
    statically_known_true,
)
from torch.jit import TracerWarning  # type: ignore[attr-defined]
from torch.jit.frontend import FrontendError
from torch.nn.modules import transformer as nn_transformer
from torch.nn.utils.prune import BasePruningMethod
from torch.nn.utils.spectral_norm import SpectralNorm
from torch.nn.utils.weight_norm import WeightNorm
from torch.onnx._internal.exporter._core import TorchTensor
from torch.onnx._internal.exporter._core import _exported_program_to_onnx_program as to_onnx_program
from torch.onnx._internal.exporter._decomp import (
    create_onnx_friendly_decomposition_table,
    get_onnx_implemented_overloads,
)
from torch.onnx._internal.exporter._fx_passes import remove_assertion_nodes
from torch.onnx._internal.exporter._registration import ONNXRegistry
from torch.onnx._internal.exporter._torchlib.ops.hop import call_op
from torch.onnx._internal.fx.passes.type_promotion import InsertTypePromotion, get_type_promotion_rule
from torch.onnx._internal.fx.passes.type_promotion import _TypePromotionInterpreter as TypePromotionInterpreter
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._python_dispatch import _disable_current_modes as without_modes
from torch.utils._sympy import functions as size_functions

from entrepot.exporters.torch.messages import axis_of

__all__ = [
    "BasePruningMethod", "ConstantSource", "DimDynamic", "FakeQuantizeBase", "FakeTensor", "FakeTensorMode",
    "FrontendError", "InsertTypePromotion", "ONNXRegistry", "OpOverload", "OpOverloadPacket", "ShapeEnv",
    "SpecViolationError", "SpectralNorm", "StatelessSymbolicContext", "SymNode", "TorchDispatchMode", "TorchTensor",
    "TracerWarning", "TypePromotionInterpreter", "WeightNorm", "aten_pow_tensor_scalar", "aten_scalar_tensor",
    "aten_softplus", "builtins_in_captures", "call_op", "composites_known", "conditions_told", "convert_version",
    "create_onnx_friendly_decomposition_table", "disable_proxy_modes_tracing", "enable_python_dispatcher",
    "export_with", "fake_rules", "fast_shapes", "flat_weights", "forget_dispatch", "free_unbacked_symbols",
    "get_decompositions", "get_onnx_implemented_overloads", "get_type_promotion_rule", "guarding_hint_or_throw",
    "has_guarding_hint", "int8_product", "integer_product", "is_natural", "is_operator", "is_surely_contiguous",
    "is_uncounted", "know_functions_of_sizes", "layouts", "make_fx", "meta_registrations", "meta_table", "node_making",
    "node_meanings", "notes_while_captured", "numpy_in_torch", "overlap_of", "pack_padded", "pad_packed", "pad_rows",
    "pytree", "quantized_decomposed", "remember_number", "remembered_number", "remove_assertion_nodes", "scan",
    "shape_inference", "shape_rules", "size_functions", "size_settings", "split_composites", "statically_known_true",
    "sym_log2", "tensor_settings", "to_onnx_program", "with_composites", "with_formula", "without_modes",
]  # fmt: skip

int8_product: Any = torch.ops.aten._weight_int8pack_mm  # noqa: SLF001 - what weight-only quantisation calls
"""A product with a weight of eight bits."""

integer_product: Any = torch.ops.aten._int_mm  # noqa: SLF001 - what quantised linear layers call
"""A product of whole numbers."""

pack_padded: Any = torch._pack_padded_sequence  # noqa: SLF001 - what torch.nn.utils.rnn.pack_padded_sequence calls
"""Padded rows, sorted by their lengths, to the rows of all steps and how many there are at each."""
pad_packed: Any = torch._pad_packed_sequence  # noqa: SLF001 - what torch.nn.utils.rnn.pad_packed_sequence calls
"""The way back."""
numpy_in_torch: Any = numpy_functions
"""NumPy's functions and arrays on tensors, as torch's compiler takes them."""
overlap_of: Any = torch._debug_has_internal_overlap  # noqa: SLF001 - what every copy into a tensor asks
"""1 for a tensor of which several elements are in one place."""
pad_rows: Any = torch._C._nn.pad_sequence  # noqa: SLF001 - what torch.nn.utils.rnn.pad_sequence calls
"""Rows of several lengths as one tensor."""


def flat_weights(layer: Any) -> list[torch.Tensor]:
    """The weights of an LSTM, GRU or RNN in the order in which its operator takes them.

    By their names: the list that the layer keeps is of its own tensors, not of what stands in for them in a capture.
    """
    return [getattr(layer, name) for name in layer._flat_weights_names]  # noqa: SLF001 - as the layer makes its list


def composites_known() -> list[str]:
    """The operators that are made of others, by name."""
    return list(native._dispatch_get_registrations_for_dispatch_key("CompositeImplicitAutograd"))  # noqa: SLF001


def forget_dispatch(operator: OpOverload) -> None:
    """Let an operator look for its kernels anew."""
    operator._dispatch_cache.clear()  # noqa: SLF001


def is_operator(target: object) -> bool:
    """Whether it is one of torch's or of a library's, not a function of Python."""
    return isinstance(target, OperatorBase)


CHECK_OF_TENSORS = torch._check_tensor_all_with.__code__  # noqa: SLF001
"""What asks for the truth of a tensor as a symbol, and does not branch on it."""


@contextlib.contextmanager
def unsolved_divisions() -> Iterator[None]:
    """Inside, torch (2.13) takes no equation about sizes divided and rounded down for a number that a size has.

    ``h // 16 == 2 * (h // 32)`` holds for many sizes; it would be solved as ``h == 64`` is, and fail.
    """
    solve = DimConstraints.solve

    def solve_others(constraints: Any) -> None:
        for size in [*constraints._symbols_with_equalities]:  # noqa: SLF001
            found = constraints._univariate_inequalities[size]  # noqa: SLF001
            divided = {each for each in found if isinstance(each, sympy.Eq) and each.has(size_functions.FloorDiv)}
            if any(isinstance(each, sympy.Eq) for each in found - divided):
                found -= divided  # they are true of the number that the others say
            else:
                constraints._symbols_with_equalities.discard(size)  # noqa: SLF001
        solve(constraints)

    DimConstraints.solve = solve_others  # type: ignore[assignment,method-assign]
    try:
        yield
    finally:
        DimConstraints.solve = solve  # type: ignore[method-assign]


sym_log2: Any = torch._sym_log2  # type: ignore[attr-defined]  # noqa: SLF001 - the one logarithm that sizes have
"""The logarithm of a size to the base 2."""


def with_formula(size: SymNode, formula: Any) -> SymNode:
    """A size that is computed in another way."""
    return SymNode(formula, size.shape_env, size.pytype, size._hint, size.constant, size.fx_node)  # noqa: SLF001


def remember_number(tensor: torch.Tensor, number: int | torch.SymInt) -> None:
    """Let a tensor of a capture give a number that is known when it is asked for its item."""
    inner = _innermost(tensor)
    if isinstance(inner, FakeTensor):
        inner.item_memo = number


def remembered_number(tensor: torch.Tensor) -> torch.SymInt | None:
    """What ``remember_number`` was told, or torch has found out, about a tensor."""
    inner = _innermost(tensor)
    found = inner.item_memo if isinstance(inner, FakeTensor) else None
    return found if isinstance(found, torch.SymInt) and found.node.hint is not None else None


def hint_of(size: int | torch.SymInt) -> int:
    """The size in the sample that is captured."""
    return size if isinstance(size, int) else int(size.node.hint)


def _innermost(tensor: torch.Tensor) -> torch.Tensor:
    functional = getattr(tensor, "elem", tensor)
    return torch._from_functional_tensor(functional) if torch._is_functional_tensor(functional) else functional  # noqa: SLF001


def is_natural(number: torch.SymInt) -> bool:
    """Whether a size is not negative: it is known, or becomes a condition of the capture."""
    return bool(number.node.expr.is_nonnegative) or (number.node.hint is not None and bool(number >= 0))


def is_uncounted(size: Any) -> bool:
    """Whether a size depends on values, so that it may be 0."""
    return bool(free_unbacked_symbols(size)) and not statically_known_true(size > 0)


def know_functions_of_sizes(others: Mapping[str, Callable[..., Any]]) -> None:
    """Let torch (2.13) trace sizes that were computed where it did not look, whatever functions they are made of."""
    known = _sympy_handlers()
    for name, function in {**_OF_SIZES, **others}.items():
        known.setdefault(getattr(size_functions, name), function)
    known[size_functions.Min], known[size_functions.Max] = torch.sym_min, torch.sym_max  # torch's are of no program


_OF_SIZES: dict[str, Callable[..., Any]] = {
    "CeilToInt": math.ceil,
    "FloatTrueDiv": operator.truediv,
    "FloorToInt": math.floor,
    "IntTrueDiv": operator.truediv,
    "OpaqueUnaryFn_sqrt": torch.sym_sqrt,
    "PowByNatural": operator.pow,
    "ToFloat": torch.sym_float,
    "TruncToInt": math.trunc,
}


quantized_decomposed: Any = torch.ops.quantized_decomposed
"""The operators of PT2E."""


# --- attributes


def writes(tensor: torch.Tensor) -> int:
    """How often a tensor was written to."""
    return tensor._version  # noqa: SLF001 - autograd's public counter, in spite of its name


@contextlib.contextmanager
def without_graph_dumps() -> Iterator[None]:
    """Inside, torch.onnx does not print the TorchScript graph that it fails on, which no setting of its own stops."""
    name = "_jit_onnx_log"
    dump = getattr(native, name)
    setattr(native, name, lambda *_: None)
    try:
        yield
    finally:
        setattr(native, name, dump)


@contextlib.contextmanager
def without_dividing_by_zero() -> Iterator[None]:
    """Inside, torch.onnx refuses shapes of -1 and 0, for which it (2.13) divides by zero: the process would end."""
    name = "_jit_pass_onnx_node_shape_type_inference"
    infer = getattr(native, name)

    def inferring(node: Any, *rest: Any) -> Any:
        shape = list(node.inputs())[1].node() if node.kind() == "onnx::Reshape" else node
        if shape is not node and shape.hasAttribute("value") and {-1, 0} <= {*shape.t("value").flatten().tolist()}:
            raise RuntimeError("a shape of -1 and 0 may mean any size")
        return infer(node, *rest)

    setattr(native, name, inferring)
    try:
        yield
    finally:
        setattr(native, name, infer)


@contextlib.contextmanager
def unchecked_distributions() -> Iterator[None]:
    """Inside, distributions do not look whether their parameters are in range, which no graph can."""
    before = torch.distributions.Distribution._validate_args  # noqa: SLF001 - there is a public way to set it only
    torch.distributions.Distribution.set_default_validate_args(False)
    try:
        yield
    finally:
        torch.distributions.Distribution.set_default_validate_args(before)


@contextlib.contextmanager
def masks_as_they_are() -> Iterator[None]:
    """Inside, ``nn.Transformer`` does not look at the values of a mask to tell whether it is a causal one.

    That is a hint for kernels: the mask counts either way.
    """
    name = "_detect_is_causal_mask"
    detect = getattr(nn_transformer, name)
    setattr(nn_transformer, name, lambda mask, is_causal=None, size=None: is_causal is True)
    try:
        yield
    finally:
        setattr(nn_transformer, name, detect)


def custom_function(name: str) -> Callable[..., Any] | None:
    """The Python function of a custom operator, or ``None`` if there is no such operator."""
    definition = OPDEFS.get(name)
    return None if definition is None else definition._init_fn  # noqa: SLF001 - what the decorator was given


def custom_operator(code: CodeType) -> str:
    """The name of the custom operator whose Python function this is, or ""."""
    return next((name for name in OPDEFS if getattr(custom_function(name), "__code__", None) is code), "")


@contextlib.contextmanager
def unchecked() -> Iterator[None]:
    """Operators that only raise or print are ordinary ones inside, and vanish from graphs for lack of results.

    Otherwise torch (2.13) chains them by tokens, for which ONNX has nothing.
    """
    for name in _CHECKS:
        _register_effectful_op(name, None)
    try:
        yield
    finally:
        for name in _CHECKS:
            _register_effectful_op(name, _EffectType.ORDERED)


_CHECKS = ("aten::_linalg_check_errors", "aten::_print")


def has_transforms(program: torch.export.ExportedProgram) -> bool:
    """Whether a graph holds steps of torch.func, which are none once gradients are computed."""
    graphs = [part.graph for part in program.graph_module.modules() if isinstance(part, torch.fx.GraphModule)]
    return any(getattr(node.target, "__module__", "") == _TRANSFORMS for graph in graphs for node in graph.nodes)


_TRANSFORMS = "torch._functorch.predispatch"


def packet_name(packet: OpOverloadPacket) -> str:
    """``mylib::scale``."""
    return str(packet._qualified_op_name)  # noqa: SLF001 - no public name


def script_type(value: torch.ScriptObject) -> str:
    """The class of an object of TorchScript."""
    return str(value._type())  # noqa: SLF001 - no public name


def is_stub(module: torch.nn.Module) -> bool:
    """Whether it is what torch puts where tensors become quantised; it asks its buffers for Python numbers."""
    return isinstance(module, quantized.Quantize)


def is_quantised_bag(module: torch.nn.Module) -> bool:
    """Whether it is a quantised EmbeddingBag, whose kernel (2.13) trusts its offsets: it crashes on others."""
    return isinstance(module, quantized.EmbeddingBag)


def is_quantised_class(kind: type) -> bool:
    """Whether a module's class is one of torch's for quantised weights."""
    return kind.__module__.startswith(_QUANTISED)


_QUANTISED = ("torch.ao.nn.quantized", "torch.ao.nn.intrinsic.quantized", "torch.ao.nn.sparse.quantized")


def cell_parts(cell: Any) -> tuple[bool, list[Any]]:
    """Of the packed weights of a recurrent layer: whether activations have seven bits, and both weights."""
    (_, _, _, flags, packs), _ = cell.__getstate__()
    return bool(flags and flags[0]), packs


def bound_arguments(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call of an operator by name, with defaults, for the first overload that takes so many.

    Raises:
        TypeError: There is no such overload.
    """
    for schema in torch._C._jit_get_schemas_for_operator(name):  # noqa: SLF001 - no public way
        names = [argument.name for argument in schema.arguments]
        given = dict(zip(names, args, strict=False)) | dict(kwargs)
        lacking = [each for each in schema.arguments if each.name not in given]
        fits = (
            len(args) <= len(names) and set(kwargs) <= set(names) and all(each.has_default_value() for each in lacking)
        )
        if fits and "out" not in names:
            given |= {each.name: each.default_value for each in lacking}
            return {name: given[name] for name in names}
    raise TypeError(f"{name} does not take {len(args)} arguments and {sorted(kwargs)}")


def all_arguments(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments that a kernel is given for a call of an operator: by position, and by keyword."""
    given = bound_arguments(name, args, kwargs)
    schemas = torch._C._jit_get_schemas_for_operator(name)  # noqa: SLF001 - no public way
    named = {each.name for schema in schemas for each in schema.arguments if each.kwarg_only}
    return [value for key, value in given.items() if key not in named], {
        key: value for key, value in given.items() if key in named
    }


ScriptNode: TypeAlias = Any
"""A node of TorchScript: ``torch._C.Node``, whose stubs lack most of it."""


def script_graph(module: torch.jit.ScriptModule) -> Any:
    """What ``forward`` does, with the methods that it calls in their places."""
    return module.forward.inlined_graph  # type: ignore[attr-defined]


def parsed_schema(text: str) -> Any:
    """The schema of an operator as an object."""
    return torch._C.parse_schema(text)  # noqa: SLF001 - no public way


# --- what a capture noted about sizes


@dataclass(frozen=True)
class SizeGuard:
    """One condition that a capture relies on.

    Attributes:
        condition: In sympy, over the symbols of sizes.
        place: The user's frame that asked, or torch's, as a ``FrameSummary`` or text.
    """

    condition: Any
    place: Any


@dataclass(frozen=True)
class SizeNotes:
    """What torch.export noted about sizes during a capture.

    Attributes:
        guards: The conditions that have to hold.
        sizes: The size of each symbol in the sample.
        replaced: What stands for a symbol that follows from others.
        axes: The tensor and the axis whose size each symbol is, by its name.
    """

    guards: tuple[SizeGuard, ...]
    sizes: Mapping[Any, int]
    replaced: Mapping[Any, Any]
    axes: Mapping[str, tuple[int, int]]


def size_notes(program: torch.export.ExportedProgram) -> SizeNotes:
    """The notes of a program; none if it was not captured in this process."""
    modes = (getattr(node.meta.get("val"), "fake_mode", None) for node in program.graph.nodes)
    environment = next((mode.shape_env for mode in modes if mode is not None), None)
    return SizeNotes((), {}, {}, {}) if environment is None else _notes(environment)


def notes_while_captured(tensors: Sequence[torch.Tensor]) -> Callable[[], SizeNotes] | None:
    """What asks for the notes of the capture that is being made of some tensors, now or after it failed.

    ``None`` if no size of theirs is a symbol.
    """
    sizes: Iterator[Any] = (size for tensor in tensors for size in tensor.shape)
    environment = next((size.node.shape_env for size in sizes if isinstance(size, torch.SymInt)), None)
    return None if environment is None else lambda: _notes(environment)


@contextlib.contextmanager
def conditions_told(tell: Callable[[Any, Callable[[], SizeNotes]], None]) -> Iterator[None]:
    """Inside, each condition that a capture puts on sizes is told where it is asked for, with a way to the notes."""
    log: Any = ShapeEnv._log_guard  # noqa: SLF001 - the one place that every condition passes (2.13)

    def told(environment: Any, prefix: str, condition: Any, **others: Any) -> None:
        log(environment, prefix, condition, **others)
        if prefix == "eval":
            tell(condition, lambda: _notes(environment))

    with mock.patch.object(ShapeEnv, "_log_guard", told):
        yield


def _notes(environment: Any) -> SizeNotes:
    guards = tuple(SizeGuard(guard.expr, _place(guard.sloc)) for guard in environment.guards)
    return SizeNotes(guards, environment.backed_var_to_val, dict(environment.replacements), dict(_axes_of(environment)))


def _axes_of(environment: Any) -> Iterator[tuple[str, tuple[int, int]]]:
    for symbol, sources in environment.var_to_sources.items():
        for source in sources:
            if (axis := axis_of(source.name)) is not None:
                yield str(symbol), axis


def _place(location: Any) -> Any:
    return getattr(location, "maybe_user_loc", None) or getattr(location, "user_loc", None) or location.framework_loc

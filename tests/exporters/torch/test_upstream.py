"""Canaries: what a release of torch or onnxscript moves is named here, with the files that use it."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path
from traceback import extract_stack
from typing import Any

import numpy as np
import onnx_ir
import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

import entrepot as ep
from entrepot.exporters.structure import flatten_named
from entrepot.exporters.torch import messages, upstream
from entrepot.exporters.torch.arrays import TORCH
from entrepot.exporters.torch.capture.blame import DIM_SUFFIX
from entrepot.exporters.torch.capture.settings import capture_settings
from entrepot.exporters.torch.running.errors import MODEL_ERRORS
from entrepot.exporters.torch.running.guard import quiet
from entrepot.exporters.torch.sources.script import translate_script

ROOM = Path(upstream.__file__).parent
LIBRARIES = ("torch", "onnxscript", "onnx")


def imports(path: Path) -> list[tuple[str, str, str]]:
    """Module, name and local name of everything that a file imports from the libraries."""
    nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
    found = [(node.module or "", alias.name, alias.asname or alias.name) for node in nodes for alias in node.names]
    return [each for each in found if each[0].partition(".")[0] in LIBRARIES]


TAKEN = [each for path in sorted(ROOM.rglob("upstream.py")) for each in imports(path)]
OWN = (
    "DimConstraints",
    "OPDEFS",
    "native",
    "size_functions",
    "_EffectType",
    "_register_effectful_op",
    "_sympy_handlers",
    "free_unbacked_symbols",
    "nn_transformer",
    "numpy_functions",
    "OperatorBase",
    "DispatchKey",
    "TopLevelTracedModule",
    "TracedModule",
)
"""What each upstream.py uses itself, behind functions of its own."""


def users(name: str) -> str:
    files = [path for path in ROOM.rglob("*.py") if re.search(rf"\b{name}\b", path.read_text())]
    return ", ".join(str(path.relative_to(ROOM)) for path in files if path.name != "upstream.py")


@pytest.mark.parametrize(("module", "name", "local"), TAKEN, ids=[name for _, name, _ in TAKEN])
def test_every_name_is_still_where_it_was_and_is_used(module: str, name: str, local: str) -> None:
    assert users(local) or local in OWN, f"nobody uses {local} any more"
    try:
        found = hasattr(importlib.import_module(module), name)
    except ImportError as error:
        pytest.fail(f"{module} is gone ({error}); used by {users(local)}")
    assert found, f"{module}.{name} is gone; used by {users(local)}"


def private(path: Path) -> list[str]:
    """What a file takes from the private side of a library: modules and names that begin with an underscore."""
    found = [f"{module}.{name}" for module, name, _ in imports(path)]
    taken = [name for name in found if any(part.startswith("_") for part in name.split("."))]
    for node in ast.walk(ast.parse(path.read_text())):
        is_private = isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__")
        if is_private and ast.unparse(node).startswith("torch."):
            taken.append(ast.unparse(node))
    return taken


PUBLIC = {"torch._check", "torch._grouped_mm"}
"""Documented in spite of its name; and what users' code calls, which is translated as it is."""


@pytest.mark.parametrize("path", sorted(ROOM.rglob("*.py")), ids=lambda path: str(path.relative_to(ROOM)))
def test_nobody_else_reaches_into_the_libraries(path: Path) -> None:
    if path.name != "upstream.py":
        assert set(private(path)) <= PUBLIC


# --- what the names do


class Powers(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x**3


class Relu(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)


def program(module: nn.Module, *args: Any, **how: Any) -> torch.export.ExportedProgram:
    return torch.export.export(module, args, **how)


def test_a_program_becomes_a_graph_with_our_registry():
    registry = upstream.ONNXRegistry().from_torchlib(opset_version=20)
    made = upstream.to_onnx_program(program(Relu(), torch.ones(2)), registry=registry).model
    assert isinstance(made, onnx_ir.Model)
    assert upstream.convert_version(made, 20).opset_imports[""] == 20


def test_a_registered_function_translates_an_operator_and_is_counted_as_known():
    registry = upstream.ONNXRegistry().from_torchlib(opset_version=20)
    operator = torch.ops.aten.digamma.default
    assert operator not in upstream.get_onnx_implemented_overloads(registry)
    registry.register_op(operator, lambda x: x, is_complex=False)
    known = set(upstream.get_onnx_implemented_overloads(registry))
    assert operator in known
    assert operator not in upstream.create_onnx_friendly_decomposition_table(known)


def test_torch_onnx_names_the_operator_that_it_lacks():
    registry = upstream.ONNXRegistry().from_torchlib(opset_version=20)

    class Digamma(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.digamma(x)

    with pytest.raises(Exception, match="digamma") as caught:
        upstream.to_onnx_program(program(Digamma(), torch.ones(2)), registry=registry)
    error: BaseException | None = caught.value
    texts = []
    while error is not None:
        texts.append(str(error))
        error = error.__cause__
    assert ("aten.digamma", "default") in map(messages.untranslated, texts)


def test_the_passes_over_captured_graphs_change_them_in_place():
    class Mixed(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x + y

    with quiet():
        mixed = program(Mixed(), torch.ones(2), torch.ones(2, dtype=torch.int64)).run_decompositions({})
        promotion = upstream.InsertTypePromotion(mixed.graph_module)
        assert type(promotion.interpreter) is upstream.TypePromotionInterpreter
        promotion.run()
        upstream.remove_assertion_nodes(mixed.graph_module)
    assert any("convert_element_type" in str(node.target) for node in mixed.graph.nodes)


def test_the_capture_has_settings_for_sizes_of_one_and_for_remembered_results():
    def settings():
        return upstream.size_settings.backed_size_oblivious, upstream.FakeTensorMode().cache_enabled

    before = settings()
    with capture_settings():
        assert settings() == (True, False)
    assert settings() == before == (False, True)


def test_a_weight_of_torch_onnx_holds_the_tensor_itself():
    tensor = torch.ones(2)
    assert upstream.TorchTensor(tensor).raw is tensor


def test_formulas_of_torch_are_found_by_operator():
    softplus = torch.ops.aten.softplus.default
    (formula,) = upstream.get_decompositions([softplus]).values()
    x = torch.tensor([0.5], dtype=torch.float64)
    assert formula(x).item() == pytest.approx(np.log1p(np.exp(0.5)))


def test_a_scan_carries_a_state_backwards():
    xs = torch.arange(3.0)
    last, every = upstream.scan(lambda state, x: (state + x, state + x), torch.zeros(()), xs, reverse=True)
    assert last == 3
    assert every.tolist() == [3, 3, 2]


def test_fake_tensors_have_shapes_and_no_values():
    with upstream.FakeTensorMode(allow_non_fake_inputs=True):
        assert torch.empty((1 << 40, 2)).sum(1).shape == (1 << 40,)


def test_a_dispatch_mode_sees_operators():
    seen = []

    class Watch(upstream.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func.name())
            return func(*args, **(kwargs or {}))

    with Watch():
        torch.relu(torch.ones(2))
    assert seen[-1] == "aten::relu"


def test_a_custom_operator_knows_its_function():
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    operator = torch.library.custom_op("entrepot_canary::twice", twice, mutates_args=())
    assert upstream.custom_function("entrepot_canary::twice") is twice
    assert upstream.custom_operator(twice.__code__) == "entrepot_canary::twice"
    assert upstream.custom_function("entrepot_canary::thrice") is None
    assert upstream.packet_name(torch.ops.entrepot_canary.twice) == operator._qualname
    assert isinstance(torch.ops.entrepot_canary.twice, upstream.OpOverloadPacket)
    assert isinstance(torch.ops.entrepot_canary.twice.default, upstream.OpOverload)


def test_writes_are_counted():
    tensor = torch.ones(2)
    before = upstream.writes(tensor)
    tensor.add_(1)
    assert upstream.writes(tensor) > before


def test_packing_calls_the_operators_that_ours_replace():
    class Seen(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            calls.append(func)
            return func(*args, **(kwargs or {}))

    calls = []
    with Seen():
        packed = torch.nn.utils.rnn.pack_padded_sequence(torch.ones(3, 2, 4), torch.tensor([3, 1]))
        torch.nn.utils.rnn.pad_packed_sequence(packed)
        torch.nn.utils.rnn.pad_sequence([torch.ones(3), torch.ones(2)])
    assert upstream.pad_rows in calls
    assert upstream.pack_padded in calls
    assert upstream.pad_packed in calls


def test_a_recurrent_layer_knows_its_weights_in_order():
    layer = torch.nn.LSTM(3, 4)
    assert [tuple(each.shape) for each in upstream.flat_weights(layer)] == [(16, 3), (16, 4), (16,), (16,)]


def test_torchlib_has_the_functions_that_ours_fall_back_on():
    module = ep.export(Powers(), torch.tensor([2.0, 3.0]))
    assert ep.Session(module)(np.array([2.0, 3.0], np.float32)).tolist() == [8.0, 27.0]


class Even(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(-1, 2) if x.shape[0] > 3 else x


def test_a_capture_notes_its_conditions_with_the_sample_and_the_line():
    notes = upstream.size_notes(program(Even(), torch.ones(6), dynamic_shapes=({0: torch.export.Dim.AUTO},)))
    (symbol,) = notes.sizes
    assert notes.sizes[symbol] == 6
    assert all(guard.condition.free_symbols <= {symbol} for guard in notes.guards)
    assert any("reshape" in str(getattr(guard.place, "line", guard.place)) for guard in notes.guards)


def test_conditions_are_told_while_a_capture_is_made():
    told = []
    with upstream.conditions_told(lambda condition, notes: told.append((condition, notes().sizes, extract_stack()))):
        program(Even(), torch.ones(6), dynamic_shapes=({0: torch.export.Dim.AUTO},))
    assert all(str(condition.xreplace(sizes)) == "True" for condition, sizes, _ in told)
    assert any("reshape" in str(frame.line) for *_, frames in told for frame in frames)


@pytest.mark.parametrize("source", [torch.ones(2, 3, 4, 5), torch.ones(2, 3, 4, 5, dtype=torch.float16)])
def test_what_is_sampled_on_a_grid_is_laid_out_as_torch_does(source):
    grid = torch.zeros(2, 6, 7, 2, dtype=source.dtype)
    made = torch.nn.functional.grid_sample(source, grid, align_corners=False)
    with capture_settings():
        rule = upstream.shape_rules[torch.ops.aten.grid_sampler_2d.default]
        assert rule.__module__ == capture_settings.__module__
        laid = rule(source, grid, 0, 0, False)
    assert (laid.shape, laid.stride(), laid.dtype) == (made.shape, made.stride(), made.dtype)


def test_a_capture_says_which_axis_of_which_input_a_symbol_is():
    dims = (({0: torch.export.Dim.AUTO},),)
    notes = upstream.size_notes(program(Flat(Even()), torch.ones(6), dynamic_shapes=dims))
    assert notes.axes == {str(symbol): (0, 0) for symbol in notes.sizes}


# --- what errors say


def refusal(module: nn.Module, x: torch.Tensor, dim: Any) -> str:
    with pytest.raises(MODEL_ERRORS) as caught:
        program(Flat(module), x, dynamic_shapes=(({0: dim},),))
    return str(caught.value).replace(DIM_SUFFIX, "")


class Flat(nn.Module):
    """With the parameter that the exporter's own wrapper has."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
        return self.module(*tensors)


class Upto(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.shape[0] < 9 else x


class Fixed(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.ones(4)


def test_a_capture_says_for_which_sizes_it_holds():
    text = refusal(Upto(), torch.ones(4), torch.export.Dim("n" + DIM_SUFFIX, min=2))
    assert messages.is_about_sizes(text)
    ((symbol, condition),) = messages.unmet_conditions(text)
    assert (symbol, messages.of_size(condition, frozenset({(0, 0)}))) == ("n", "2 <= size and size <= 8")
    (fix,) = [value for name, value in messages.suggested_fixes(text) if name == "n"]
    assert messages.suggested_bounds(fix).get("max") == 8


def test_a_capture_says_which_axes_it_made_constant():
    text = refusal(Fixed(), torch.ones(4), torch.export.Dim("n" + DIM_SUFFIX, min=2))
    assert messages.is_about_sizes(text)
    assert messages.specialised(text) == ["n"]
    assert ("n", "4") in messages.suggested_fixes(text)


def test_a_capture_that_needs_a_value_says_so():
    class Branch(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x if x.sum() > 0 else -x

    with pytest.raises(MODEL_ERRORS) as caught:
        program(Branch(), torch.ones(3), strict=False)
    assert messages.is_about_values(str(caught.value))


def test_classes_of_quantised_modules_are_told_by_their_home():
    assert upstream.is_quantised_class(torch.ao.nn.quantized.Linear)
    assert not upstream.is_quantised_class(nn.Linear)


@pytest.mark.filterwarnings("ignore")  # torch announces the end of TorchScript
def test_a_script_that_torch_cannot_translate_is_not_printed(capfd: pytest.CaptureFixture[str]) -> None:
    class Eigenvalues(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.linalg.eig(x)[0].real

    script = torch.jit.trace(Eigenvalues(), torch.randn(3, 3))
    call = flatten_named([("x", torch.randn(3, 3))], {}, TORCH)
    with pytest.raises(ep.ConversionError):
        translate_script(script, call, [])
    assert "graph(" not in "".join(capfd.readouterr())


def test_torch_traces_sizes_of_more_functions_once_it_knows_them() -> None:
    """In ``rewriting/environment.py``: torch (2.13) rebuilds sizes from expressions, but not from these functions."""
    upstream.know_functions_of_sizes({"OpaqueUnaryFn_log2": upstream.sym_log2})
    known = upstream._sympy_handlers()
    for name in (*upstream._OF_SIZES, "OpaqueUnaryFn_log2"):
        assert getattr(upstream.size_functions, name) in known
    assert upstream.sym_log2(8.0) == 3


def test_a_size_may_be_computed_in_another_way() -> None:
    """In ``capture/rounding.py``: each operation on sizes is a method of their nodes, which hold a formula in sympy."""
    size = upstream.ShapeEnv().create_unbacked_symint()
    other = upstream.with_formula(size.node, 2 * size.node.expr)
    assert other.expr == 2 * size.node.expr
    assert all(callable(getattr(upstream.SymNode, name)) for name in ("add", "sub", "mod", "ceil", "floor", "trunc"))
    assert (size.node.sub(size.node)).expr == 0


def test_a_tensor_of_a_capture_gives_the_number_that_it_was_told() -> None:
    """In ``translations/remembered.py``: what is read back from a tensor of a size is the size, not another symbol."""

    class Told(nn.Module):
        def forward(self, x):
            held = torch.scalar_tensor(x.shape[0], dtype=torch.int64)
            upstream.remember_number(held, x.shape[0])
            assert upstream.is_natural(x.shape[0])
            return x.new_ones(held.item())

    sizes = {"x": {0: torch.export.Dim.AUTO}}
    program = torch.export.export(Told(), (torch.ones(5),), dynamic_shapes=sizes, strict=False)
    (input_,) = (node for node in program.graph.nodes if node.op == "placeholder")
    (result,) = next(node for node in program.graph.nodes if node.op == "output").args[0]
    assert result.meta["val"].shape == input_.meta["val"].shape


def test_transformers_look_for_causal_masks_by_a_function_of_their_module() -> None:
    """In ``capture/blame.py``: its values are looked at, which no capture can."""
    name = "_detect_is_causal_mask"
    detect = getattr(upstream.nn_transformer, name)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(3)
    assert detect(mask, None, 3)
    with upstream.masks_as_they_are():
        assert not getattr(upstream.nn_transformer, name)(mask, None, 3)
        assert getattr(upstream.nn_transformer, name)(mask, is_causal=True, size=3)
    assert getattr(upstream.nn_transformer, name) is detect


class Halves(nn.Module):
    """Takes sizes for which it does not matter that they are enlarged after they were divided."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        quarters = nn.functional.conv1d(x, torch.ones(1, 1, 1), stride=4)
        halved = nn.functional.max_pool1d(nn.functional.avg_pool1d(quarters, 2, 1), 3, 2, 1)
        return torch.cat([nn.functional.interpolate(halved, scale_factor=2), quarters], 1)


def test_equations_of_divided_sizes_are_no_numbers_that_sizes_have() -> None:
    """In ``capture/blame.py``: torch solves them as if they were, and sympy cannot."""
    sizes = ({2: torch.export.Dim.AUTO(min=2)},)
    solve = upstream.DimConstraints.solve
    with pytest.raises(NotImplementedError):
        torch.export.export(Halves(), (torch.ones(1, 1, 64),), dynamic_shapes=sizes)
    with upstream.unsolved_divisions():
        assert torch.export.export(Halves(), (torch.ones(1, 1, 64),), dynamic_shapes=sizes)
    assert upstream.DimConstraints.solve is solve


def test_fourier_transforms_of_tensors_without_values_are_laid_out_by_one_function() -> None:
    """In ``capture_settings``: torch resizes its result in place; see ``test_spectral_convolutions.py``."""
    lay_out = upstream.meta_registrations._exec_fft
    assert [*inspect.signature(lay_out).parameters] == ["out", "self", "out_sizes", "dim", "forward"]
    with capture_settings():
        assert upstream.meta_registrations._exec_fft is not lay_out
        made = torch.fft.rfft2(torch.ones(2, 3, 8, 6, device="meta"))
    assert made.shape == torch.fft.rfft2(torch.ones(2, 3, 8, 6)).shape
    assert upstream.meta_registrations._exec_fft is lay_out


def test_checks_of_tensors_read_truths_in_one_function() -> None:
    """In ``translations/truths.py``: its truths stay symbols."""
    assert "item" in upstream.CHECK_OF_TENSORS.co_names
    assert "_check_tensor_all_with" in torch._check_tensor_all.__code__.co_names


def test_shapes_that_are_broadcast_are_inferred_by_one_function_for_sums_and_products() -> None:
    """In ``capture_settings``: it takes no formula of sizes for 1; see ``test_open_captures.py``."""
    infer = upstream.shape_inference.infer_size
    assert infer([2, 1], [3]) == (2, 3)
    with capture_settings():
        assert upstream.shape_inference.infer_size is not infer
    assert upstream.shape_inference.infer_size is infer


def test_what_is_written_into_is_asked_whether_its_elements_are_in_one_place() -> None:
    """In ``capture_settings``: torch asks sizes for it; see ``test_pieces.py``."""
    repeated, apart = torch.zeros(3).expand(2, 3), torch.zeros(2, 6)[:, ::2]
    assert (upstream.overlap_of(repeated), upstream.overlap_of(apart)) == (1, 2)
    with capture_settings():
        assert torch._debug_has_internal_overlap is not upstream.overlap_of
        assert torch._debug_has_internal_overlap(repeated) == 1
    assert torch._debug_has_internal_overlap is upstream.overlap_of

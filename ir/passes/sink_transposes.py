from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.names import Names
from entrepot.ir.passes.graphs import bypass, has_references, replace, typed_graphs, write_constant
from entrepot.ir.traits import traits_of
from entrepot.ir.typing.query import Types

Perm = tuple[int, ...]


class SinkTransposes(ir.passes.InPlacePass):
    """Let nodes work on what was transposed, and transpose what they return, until transpositions meet and cancel.

    Before: ``x -> Conv -> Transpose -> Relu -> Transpose -> Conv``. After: ``x -> Conv -> Relu -> Conv``.
    Elementwise operators, Concat, Reduce, Softmax, Pad and Slice change places with a transposition, their axes and
    constants in the other order; a product with a matrix takes a flattened image by a matrix whose rows are in the
    other order. For graphs whose channels come last, where each convolution has a transposition before and after it.
    What remains and moves axes of size 1 alone becomes a Reshape, which takes the place of one before it.
    Subgraphs and functions are covered. Constants are copied, so it is for graphs that have just been captured.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        names = Names(model)
        sunk = [_Sinking(node, types, names).run() for graph, types in typed_graphs(model) for node in list(graph)]
        flat = [_Sinking(node, types, names).flatten() for graph, types in typed_graphs(model) for node in list(graph)]
        return ir.passes.PassResult(model, modified=any(sunk) or any(flat))


class _Sinking:
    """One node behind transpositions.

    Args:
        node: The node.
        types: What is known of values.
        names: Those in use.
    """

    def __init__(self, node: ir.Node, types: Types, names: Names) -> None:
        self.node, self.types, self.names = node, types, names

    def run(self) -> bool:
        """Whether it changed places with a transposition."""
        node = self.node
        if node.domain or has_references(node) or len(node.outputs) != 1 or node.graph is None:
            return False
        perms = [perm for value in node.inputs if (perm := _perm_of(value)) is not None]
        if not perms:
            return False
        if node.op_type == "Transpose":
            return self._compose(perms[0])
        rule = _RULES.get(node.op_type) or (_Sinking._elementwise if traits_of(node).elementwise else None)
        return rule is not None and rule(self, perms[0])

    def flatten(self) -> bool:
        """Whether it was a transposition that leaves elements in their order, and is a Reshape now."""
        perm, value = _perm_of(self.node.outputs[0]) if self.node.outputs else None, self.node.inputs[:1]
        shape = self._shape(value[0]) if perm is not None and value else None
        if perm is None or shape is None or not _keeps_order(shape, perm):
            return False
        source, before = value[0], value[0].producer() if value[0] is not None else None
        if before is not None and before.op_type == "Reshape" and not before.domain:
            source = before.inputs[0]
        sizes = [shape[axis] if isinstance(shape[axis], int) else -1 for axis in perm]
        replace(self.node, ir.node("Reshape", [source, self._constant(sizes, "shape")]))
        return True

    # rules -----------------------------------------------------------------------------------------------------------

    def _compose(self, inner: Perm) -> bool:
        outer = self.node.attributes.get_ints("perm")
        source = _source(self.node.inputs[0])
        if outer is None:
            return False
        perm = tuple(inner[axis] for axis in outer)
        if perm != tuple(range(len(perm))) or not bypass(self.node, source):
            replace(self.node, ir.node("Transpose", [source], {"perm": list(perm)}))
        return True

    def _elementwise(self, perm: Perm) -> bool:
        values = [value for value in self.node.inputs if value is not None]
        turned = [value for value in values if _perm_of(value) == perm]
        plain = [value for value in values if _perm_of(value) != perm]
        moving = [value for value in plain if not self._is_constant(value) and not self._is_thin(value, perm)]
        if len(moving) > len(turned) or any(len(self._shape(value) or ()) != len(perm) for value in moving):
            return False
        if any(self._shape(value) is None or len(self._shape(value) or ()) > len(perm) for value in plain):
            return False
        if self.types.dtype(self.node.outputs[0]) is None:
            return False
        self._redo([None if value is None else self._untransposed(value, perm) for value in self.node.inputs], perm)
        return True

    def _concat(self, perm: Perm) -> bool:
        if any(_perm_of(value) != perm for value in self.node.inputs):
            return False
        axis = self.node.attributes.get_int("axis", 0)
        self._redo([_source(value) for value in self.node.inputs], perm, axis=perm[axis])
        return True

    def _gather(self, perm: Perm) -> bool:
        indices = self.node.inputs[1]
        if len(self._shape(indices) or ()) != 1 or _perm_of(self.node.inputs[0]) is None:
            return False
        axis = self.node.attributes.get_int("axis", 0)
        self._redo([_source(self.node.inputs[0]), indices], perm, axis=perm[axis])
        return True

    def _softmax(self, perm: Perm) -> bool:
        self._redo([_source(self.node.inputs[0])], perm, axis=perm[self.node.attributes.get_int("axis", -1)])
        return True

    def _reduce(self, perm: Perm) -> bool:
        axes = self._integers(1)
        if axes is None or not axes:
            return False
        kept = self.node.attributes.get_int("keepdims", 1)
        gone = {axis % len(perm) for axis in axes}
        after = perm if kept else _ranked([perm[axis] for axis in range(len(perm)) if axis not in gone])
        self._redo([_source(self.node.inputs[0]), self._constant([perm[axis] for axis in axes], "axes")], after)
        return True

    def _pad(self, perm: Perm) -> bool:
        pads, rank = self._integers(1), len(perm)
        if pads is None or len(self.node.inputs) > 3 or len(pads) != 2 * rank:
            return False
        moved = [0] * (2 * rank)
        for axis in range(rank):
            moved[perm[axis]], moved[perm[axis] + rank] = pads[axis], pads[axis + rank]
        self._redo([_source(self.node.inputs[0]), self._constant(moved, "pads"), *self.node.inputs[2:]], perm)
        return True

    def _slice(self, perm: Perm) -> bool:
        axes = self._integers(3)
        if axes is None or _perm_of(self.node.inputs[0]) is None:
            return False
        moved = self._constant([perm[axis] for axis in axes], "axes")
        self._redo([_source(self.node.inputs[0]), *self.node.inputs[1:3], moved, *self.node.inputs[4:]], perm)
        return True

    def _reshape(self, perm: Perm) -> bool:
        """Where only axes of size 1 moved, elements are in the same order; see ``_flatten`` for other images."""
        given, target = self.node.inputs[0], self._integers(1)
        if given is None or target is None or 0 in target or not self._is_thin(given, perm):
            return self._flatten(perm)
        self.node.replace_input_with(0, _source(given))
        return True

    def _flatten(self, perm: Perm) -> bool:
        """A flattened image that a matrix is multiplied with: the rows of the matrix change their order instead."""
        node, output = self.node, self.node.outputs[0]
        source = _source(node.inputs[0])
        shape, flat, uses = self._shape(node.inputs[0]), self._shape(output), list(output.uses())
        if shape is None or flat is None or len(flat) != 2 or perm[0] != 0 or len(uses) != 1:
            return False
        sizes = [size for size in shape[1:] if isinstance(size, int)]
        product = uses[0].node
        matrix = product.inputs[1] if product.op_type == "MatMul" and uses[0].idx == 0 else None
        array = self._matrix(matrix)
        known = len(sizes) == len(perm) - 1 and array is not None and array.ndim == 2
        if output.is_graph_output() or not known or array is None or len(array) != int(np.prod(sizes)):
            return False
        order = [axis - 1 for axis in perm[1:]]
        rows = array.reshape([*sizes, -1]).transpose([*np.argsort(order).tolist(), len(order)])
        self._store(product, matrix, rows.reshape(array.shape))
        node.replace_input_with(0, source)
        return True

    def _matrix(self, value: ir.Value | None) -> np.ndarray | None:
        """The elements of a constant, however large."""
        if value is not None and value.is_initializer() and not value.is_graph_input():
            return None if value.const_value is None else value.const_value.numpy()
        return self.types.known.array(value)

    # what they are made of -------------------------------------------------------------------------------------------

    def _redo(self, inputs: Sequence[ir.Value | None], perm: Perm, **changed: int) -> None:
        """The node on other inputs, and a transposition of its result."""
        node, output = self.node, self.node.outputs[0]
        again = ir.node(
            node.op_type, list(inputs), {**node.attributes, **{k: ir.AttrInt64(k, v) for k, v in changed.items()}}
        )
        again.metadata_props.update(node.metadata_props)
        again.name = self.names.fresh(f"{node.name or node.op_type}_before")
        result = again.outputs[0]
        result.name = self.names.fresh(f"{output.name}_before")
        result.type = ir.TensorType(kind) if (kind := self.types.dtype(output)) is not None else None
        shape = self._shape(output)
        if shape is not None and len(shape) == len(perm):
            result.shape = ir.Shape([shape[perm.index(axis)] for axis in range(len(perm))])  # type: ignore[misc]
        assert node.graph is not None
        node.graph.insert_before(node, again)
        if perm != tuple(range(len(perm))) or not bypass(node, result):
            replace(node, ir.node("Transpose", [result], {"perm": list(perm)}))

    def _untransposed(self, value: ir.Value, perm: Perm) -> ir.Value:
        """What becomes the value when it is transposed."""
        if _perm_of(value) == perm:
            return _source(value)
        shape, rank = self._shape(value) or (), len(perm)
        back = [perm.index(axis) for axis in range(rank)]
        array = self.types.known.array(value)
        if array is not None:
            if array.size == 1:
                return value
            wide = array.reshape([1] * (rank - array.ndim) + list(array.shape))
            return self._array(np.ascontiguousarray(wide.transpose(back)), str(value.name))
        if self._is_thin(value, perm):
            sizes = [-1 if not isinstance(shape[axis], int) else shape[axis] for axis in back]
            return self._before(
                "Reshape", [value, self._constant(sizes, "shape")], [shape[axis] for axis in back], value
            )
        return self._before("Transpose", [value], [shape[axis] for axis in back], value, perm=back)

    def _before(
        self, op_type: str, inputs: Sequence[ir.Value], shape: Sequence[object], like: ir.Value, **attributes: list[int]
    ) -> ir.Value:
        made = ir.node(op_type, list(inputs), dict(attributes))
        made.name = made.outputs[0].name = self.names.fresh(f"{like.name}_moved")
        made.metadata_props.update(self.node.metadata_props)
        made.outputs[0].type, made.outputs[0].shape = like.type, ir.Shape(shape)  # type: ignore[arg-type]
        assert self.node.graph is not None
        self.node.graph.insert_before(self.node, made)
        return made.outputs[0]

    def _is_thin(self, value: ir.Value, perm: Perm) -> bool:
        """Whether a value of all axes has its elements in the same order, transposed or not."""
        shape = self._shape(value)
        return shape is not None and _keeps_order(shape, [perm.index(axis) for axis in range(len(perm))])

    def _shape(self, value: ir.Value | None) -> list[object] | None:
        shape = self.types.shape(value)
        return None if shape is None else list(shape)

    def _is_constant(self, value: ir.Value) -> bool:
        return self.types.known.array(value) is not None

    def _integers(self, at: int) -> list[int] | None:
        value = self.node.inputs[at] if len(self.node.inputs) > at else None
        array = None if value is None else self.types.known.array(value)
        return None if array is None else [int(item) for item in array.reshape(-1)]

    def _constant(self, numbers: Sequence[object], what: str) -> ir.Value:
        return write_constant(self.node, np.array(numbers, np.int64), what, self.names)

    def _array(self, array: np.ndarray, name: str) -> ir.Value:
        return write_constant(self.node, array, f"of_{name}".replace("/", "_"), self.names)

    def _store(self, product: ir.Node, matrix: ir.Value | None, array: np.ndarray) -> None:
        """A matrix in place of another: under its name, where nothing else reads that."""
        assert matrix is not None
        if matrix.is_initializer() and len(matrix.uses()) == 1 and matrix.const_value is not None:
            matrix.const_value = ir.tensor(array, name=matrix.name)
            return
        product.replace_input_with(1, write_constant(product, array, "rows", self.names))


_REDUCTIONS = ("Max", "Min", "Mean", "Sum", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")
_RULES: dict[str, Callable[[_Sinking, Perm], bool]] = {
    "Concat": _Sinking._concat,  # noqa: SLF001 - its own
    "Gather": _Sinking._gather,  # noqa: SLF001
    "Identity": _Sinking._elementwise,  # noqa: SLF001
    "Softmax": _Sinking._softmax,  # noqa: SLF001
    "LogSoftmax": _Sinking._softmax,  # noqa: SLF001
    "Pad": _Sinking._pad,  # noqa: SLF001
    "Slice": _Sinking._slice,  # noqa: SLF001
    "Reshape": _Sinking._reshape,  # noqa: SLF001
    **{f"Reduce{name}": _Sinking._reduce for name in _REDUCTIONS},  # noqa: SLF001
}


def _perm_of(value: ir.Value | None) -> Perm | None:
    node = None if value is None else value.producer()
    if node is None or node.op_type != "Transpose" or node.domain or has_references(node):
        return None
    return tuple(node.attributes.get_ints("perm", ())) or None


def _keeps_order(shape: Sequence[object], perm: Sequence[int]) -> bool:
    """Whether only axes of size 1 move, so that a Reshape does the same."""
    if len(shape) != len(perm) or 0 in shape:
        return False
    wide = [axis for axis in perm if shape[axis] != 1]
    return wide == sorted(wide) and sum(not isinstance(shape[axis], int) for axis in wide) <= 1


def _source(value: ir.Value | None) -> ir.Value:
    assert value is not None
    node = value.producer()
    assert node is not None
    source = node.inputs[0]
    assert source is not None
    return source


def _ranked(axes: Sequence[int]) -> Perm:
    """The order of axes among themselves."""
    return tuple(sorted(axes).index(axis) for axis in axes)

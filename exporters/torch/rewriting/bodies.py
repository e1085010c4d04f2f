"""Bodies of branches and loops, captured as programs of their own once the capture of the whole has ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy  # type: ignore[import-untyped]
import torch

from entrepot.exporters.torch.capture.blame import export_flat
from entrepot.exporters.torch.rewriting.endless import NotFollowedError
from entrepot.exporters.torch.rewriting.environment import SHIFT, note_growing, samples, value_of, with_equal_sizes
from entrepot.exporters.torch.rewriting.flows import Body, Flow, Operand
from entrepot.exporters.torch.rewriting.reading import owners
from entrepot.exporters.torch.running.errors import MODEL_ERRORS
from entrepot.exporters.torch.upstream import size_notes

_UNKNOWN = (11, 13, 17, 19, 23)
_ROOM = 29
_FACTORS = (1, 3, 11)
"""Of the sizes in the sample: those at which conditions on a turn are tried."""
_MOST_TURNS = 100


class BodyModule(torch.nn.Module):
    """A body behind a signature of flat tensors: numbers come as the sizes of empty tensors.

    Args:
        body: What it does.
        module: What has the weights.
        equal: Axes that have one size outside.
        turned: Whether torch is told that the first number, that of a turn, is not negative. It then has formulas for
            the sizes of pieces that begin there, which a graph computes in more steps than it reads a size in.
    """

    def __init__(
        self, body: Body, module: torch.nn.Module, equal: Sequence[Sequence[tuple[int, int]]] = (), turned: bool = False
    ) -> None:
        super().__init__()
        self._equal, self._turned = equal, turned
        self.module = module
        self._run = body.run
        self._count = len(body.tensors)
        self._growing = [(at, axis) for at, each in enumerate(body.tensors) for axis in _growing_axes(each)]
        self._shifts = [body.shifts.get(place, 0) for place, _ in enumerate(body.ints, self._count)]

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Run the body."""
        for (first, at), *others in self._equal:
            for other, axis in others:
                equal = self._size(tensors[other], other, axis) == self._size(tensors[first], first, at)
                torch._check(equal)  # noqa: SLF001 - documented
        if self._turned:
            torch._check(tensors[self._count].shape[0] >= self._shifts[0])  # noqa: SLF001 - documented
        for at, axis in self._growing:
            note_growing(tensors[at].shape[axis])
        ints = [self._size(carrier, place, 0) for place, carrier in enumerate(tensors[self._count :], self._count)]
        return tuple(self._run(tensors[: self._count], ints))

    def _size(self, tensor: torch.Tensor, place: int, axis: int) -> Any:
        """That of an axis, or the number that it stands for."""
        shift = self._shifts[place - self._count] if self._count <= place < self._count + len(self._shifts) else 0
        return tensor.shape[axis] - shift if shift else tensor.shape[axis]


def _growing_axes(operand: Operand) -> list[int]:
    """Those whose size changes from turn to turn."""
    return [axis for axis, size in enumerate(operand.shape) if size is None or axis in operand.growing]


class Bodies:
    """The bodies of a program's branches and loops, and of those inside, captured before anything is translated.

    One that cannot be followed refuses the whole program, whose translation would have taken as long as its capture.

    Args:
        program: The whole.
        flows: What its operators stand for; captures of bodies add to it.
        module: What has the weights.
        hints: Sizes in the sample.
    """

    def __init__(
        self,
        program: torch.export.ExportedProgram,
        flows: Mapping[str, Flow],
        module: torch.nn.Module,
        hints: Mapping[Any, int],
    ) -> None:
        self._module, self._hints = module, hints
        self._captured: dict[int, torch.export.ExportedProgram] = {}
        waiting = [program]
        while waiting:
            for flow in [flows[key] for key in _keys_in(waiting.pop())]:
                for body in flow.bodies:
                    if id(body) not in self._captured:
                        self._captured[id(body)] = capture_body(flow, body, module, hints)
                        waiting.append(self._captured[id(body)])

    def take(self, flow: Flow, body: Body) -> torch.export.ExportedProgram:
        """The program of a body, which is the caller's to change."""
        found = self._captured.pop(id(body), None)
        return capture_body(flow, body, self._module, self._hints) if found is None else found


def _keys_in(program: torch.export.ExportedProgram) -> list[str]:
    """The keys of the operators in a program whose results something reads."""
    operator = torch.ops.entrepot.flow.default
    parts = (part for part in program.graph_module.modules() if isinstance(part, torch.fx.GraphModule))
    nodes = (node for part in parts for node in part.graph.nodes if node.target is operator and node.users)
    return [str(node.args[3]) for node in nodes]


def capture_body(
    flow: Flow, body: Body, module: torch.nn.Module, hints: Mapping[Any, int]
) -> torch.export.ExportedProgram:
    """Capture a body so that every size that varies outside varies in it.

    Raises:
        NotFollowedError: It holds only for some of them.
    """
    unknown = iter(_UNKNOWN * 20)
    known = {**_sampled(body), **hints, **body.sizes}
    known |= _fitting(body.assumed, known)
    shapes, dims, keys = [], {}, {}
    for index, operand in enumerate(body.tensors):
        shape = []
        for axis, (size, sample) in enumerate(zip(operand.shape, operand.sample, strict=True)):
            needed = None if isinstance(size, int) or size is None else value_of(size, body.needed)
            value = _size(size, sample, known, unknown) if needed is None else needed
            shape.append(value)
            if not isinstance(size, int) and needed is None:
                dims[index, axis] = torch.export.Dim.AUTO
                keys[index, axis] = size
        shapes.append((shape, operand.dtype))
    for place, (number, sample) in enumerate(zip(body.ints, body.samples, strict=True), len(body.tensors)):
        value = _size(number, sample, known, unknown)
        if value < 0 or not (isinstance(number, sympy.Integer) or getattr(number, "is_Symbol", False)):
            body.shifts[place] = _ROOM - value if value < 0 else SHIFT
        shift = body.shifts.get(place, 0)
        shapes.append(([value + shift, 0], torch.float32))
        if not isinstance(number, sympy.Integer):
            dims[place, 0] = torch.export.Dim.AUTO
            keys[place, 0] = None if number is None else number + shift
    shapes = shapes or [([2], torch.float32)]  # torch.export takes no function without inputs
    tensors = [torch.zeros(shape, dtype=dtype) for shape, dtype in shapes]
    equal = _equal({key: size if size is None else size - body.shifts.get(key[0], 0) for key, size in keys.items()})
    try:
        program = _captured(body, module, equal, tensors, dims, turned=False)
    except MODEL_ERRORS:
        if not flow.trips:
            raise
        program = _captured(body, module, equal, tensors, dims, turned=True)
    _check(program, keys, flow, body, _Turns.of(flow, body, known))
    return program


def _captured(
    body: Body,
    module: torch.nn.Module,
    equal: Sequence[Sequence[tuple[int, int]]],
    tensors: Any,
    dims: Any,
    *,
    turned: bool,
) -> torch.export.ExportedProgram:
    """The program of a body, beside as few weights as possible: torch spends milliseconds on each, used or not."""

    def capture(part: torch.nn.Module) -> torch.export.ExportedProgram:
        wrapper = BodyModule(body, part, equal, turned)
        wrapper.training = False
        return export_flat(wrapper, tensors, dims)

    part = owners(module, body.weights)
    program = capture(part)
    unseen = part is not module and any(isinstance(each, torch.Tensor) for each in program.constants.values())
    return capture(module) if unseen else program  # a constant may be a weight that was read unseen


@dataclass(frozen=True)
class _Turns:
    """How often a loop runs: its body may rely on being in one of the turns.

    Attributes:
        place: The input of the body whose size is the number of the turn.
        count: How often it runs, over sizes outside.
        sizes: These in the sample.
        shift: How much larger that size is than the number.
    """

    place: int
    count: Any
    sizes: Mapping[Any, int]
    shift: int

    @classmethod
    def of(cls, flow: Flow, body: Body, sizes: Mapping[Any, int]) -> _Turns | None:
        """Those of a flow; ``None`` if it has no number of turns."""
        place = len(body.tensors)
        return cls(place, body.ints[1], sizes, body.shifts.get(place, 0)) if flow.trips else None

    def make(self, condition: Any, turn: Any, outside: Mapping[Any, Any]) -> bool:
        """Whether each turn makes a condition hold, at several sizes.

        Args:
            condition: Over symbols of the body.
            turn: That of the turn's number.
            outside: What the others are outside.
        """
        others = condition.free_symbols - {turn}
        return others <= outside.keys() and all(
            self._make(condition, turn, {each: outside[each] for each in others}, factor) for factor in _FACTORS
        )

    def _make(self, condition: Any, turn: Any, others: Mapping[Any, Any], factor: int) -> bool:
        sizes = {symbol: factor * size for symbol, size in self.sizes.items()}
        count = value_of(self.count, sizes)
        values: dict[Any, int] = {}
        for each, size in others.items():
            value = None if size is None else value_of(size, sizes)
            if value is None:
                return False
            values[each] = value
        return count is not None and all(
            value_of(condition, {**values, turn: number + self.shift}) for number in range(min(count, _MOST_TURNS))
        )


def _equal(keys: Mapping[tuple[int, int], Any]) -> list[list[tuple[int, int]]]:
    """The axes of each size that occurs more than once."""
    found: dict[Any, list[tuple[int, int]]] = {}
    for axis, size in keys.items():
        if size is not None:
            found.setdefault(size, []).append(axis)
    return [axes for axes in found.values() if len(axes) > 1]


def _sampled(body: Body) -> dict[Any, int]:
    """Sizes that samples tell, of tensors whose other axes, or other tensors, have the same and no sample."""
    pairs = [pair for operand in body.tensors for pair in zip(operand.shape, operand.sample, strict=True)]
    return {size: sample for size, sample in pairs if sample is not None and getattr(size, "is_Symbol", False)}


def _size(size: Any, sample: int | None, known: dict[Any, int], unknown: Any) -> int:
    """A size to capture with: that in the sample, else one that the same size has wherever it occurs."""
    if isinstance(size, int):
        return size
    found = None if size is None else value_of(size, known)
    if found is None:
        found = sample
    if found is None and size is not None:
        known |= {symbol: next(unknown) for symbol in size.free_symbols if symbol not in known}
        found = value_of(size, known)
    return next(unknown) if found is None else found


def _fitting(assumed: Any, known: Mapping[Any, int]) -> dict[Any, int]:
    """Values of numbers that depend on data, as a body has them whenever it runs."""
    if assumed is None:
        return {}
    rest = assumed.xreplace({symbol: sympy.Integer(value) for symbol, value in known.items()})
    near = {None: _UNKNOWN[0]}
    tried = samples(sorted(rest.free_symbols, key=str), near) if rest.free_symbols else ()
    return next((each for each in tried if min(each.values()) > 1 and value_of(rest, each)), {})


def _check(
    program: torch.export.ExportedProgram,
    keys: Mapping[tuple[int, int], Any],
    flow: Flow,
    body: Body,
    turns: _Turns | None,
) -> None:
    users = set(program.graph_signature.user_inputs)
    values = [node.meta["val"] for node in program.graph.nodes if node.op == "placeholder" and node.name in users]
    symbols: dict[Any, Any] = {}
    for (index, axis), size in keys.items():
        found = values[index].shape[axis]
        if not isinstance(found, torch.SymInt) or found.node.expr.is_Integer:
            raise NotFollowedError(f"{flow.line}: what is done there needs {size} = {found}")
        before = symbols.setdefault(found.node.expr, size)
        if before != size and size is not None:
            raise NotFollowedError(f"{flow.line}: what is done there needs {size} = {before}")
    notes = size_notes(program)
    free = [
        symbol
        for symbol, size in symbols.items()
        if size is None or any(str(each).startswith("u") for each in getattr(size, "free_symbols", ()))
    ]
    turn = None if turns is None else values[turns.place].shape[0].node.expr
    assumed = sympy.true if body.assumed is None else _given(body.assumed, symbols)
    entered = body.entered()
    begun = () if entered is None else sympy.And.make_args(with_equal_sizes(entered, values))
    for guard in notes.guards:
        condition = with_equal_sizes(guard.condition, values)
        mine = [symbol for symbol in free if symbol in condition.free_symbols]
        given = sympy.And(assumed, *(each for each in begun if each.free_symbols <= condition.free_symbols))
        if not mine or _holds(condition, given, mine, notes.sizes):
            continue
        lengths, tried = [symbol for symbol in mine if symbol != turn], _values(condition, mine, notes.sizes)
        each = [condition.xreplace(dict.fromkeys(lengths, sympy.Integer(value))) for value in tried]
        if turns is None or turn not in mine or not all(turns.make(one, turn, symbols) for one in each):
            raise NotFollowedError(f"{flow.line}: what is done there needs {condition}")


def _given(assumed: Any, symbols: Mapping[Any, Any]) -> Any:
    """What a body may take for granted, over its own sizes; nothing where it is about others than these.

    Args:
        assumed: What holds outside whenever the body runs.
        symbols: Sizes of the body, and what they are outside, where they may be less by a known number.
    """
    found = [each for each in map(_inside, symbols, symbols.values()) if each is not None]
    known = dict(found)
    over = [assumed.xreplace(known | {outside: inside}) for outside, inside in found]  # some are several sizes inside
    return sympy.And(*(each for each in over if each.free_symbols <= symbols.keys()))


def _inside(inside: Any, outside: Any) -> tuple[Any, Any] | None:
    """A formula outside, and what that is in a body."""
    if not getattr(outside, "free_symbols", None):
        return None
    added, formula = outside.as_coeff_Add()
    return formula, inside - added


def _holds(condition: Any, given: Any, mine: Sequence[Any], sizes: Mapping[Any, int]) -> bool:
    """Whether a condition holds for numbers that are not known before, where another does."""
    others = {symbol: sizes.get(symbol, 2) for symbol in condition.free_symbols | given.free_symbols}
    tried = ({**others, **dict.fromkeys(mine, value)} for value in _values(condition, mine, sizes))
    return all(value_of(given, each) is False or value_of(condition, each) is not False for each in tried)


def _values(condition: Any, mine: Sequence[Any], sizes: Mapping[Any, int]) -> range:
    """Those that such numbers are tried at; 0 and 1 are tried by every run, not here."""
    others = [sizes.get(symbol, 2) for symbol in condition.free_symbols if symbol not in mine]
    return range(2, max(min([*others, 40]), 3))

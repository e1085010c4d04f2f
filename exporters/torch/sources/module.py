"""A ``torch.nn.Module``: captured by torch.export with the axes that were found to vary."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import torch

from entrepot.exporters.axes.groups import Axis, Group
from entrepot.exporters.axes.probe import Prober
from entrepot.exporters.exporter import Captured
from entrepot.exporters.naming import rename_symbols
from entrepot.exporters.options import Options
from entrepot.exporters.paths.following import Unfollowed, follow
from entrepot.exporters.paths.path import Path
from entrepot.exporters.sample import Sample
from entrepot.exporters.structure import flatten_call
from entrepot.exporters.torch.arrays import TORCH
from entrepot.exporters.torch.capture.capture import FlatModule, capture
from entrepot.exporters.torch.capture.paths import capture_automatic, conditions_of
from entrepot.exporters.torch.capture.shapes import read_shapes, shaped_groups
from entrepot.exporters.torch.lowering.repair import repair
from entrepot.exporters.torch.lowering.translate import translate
from entrepot.exporters.torch.lowering.weights import weight_names
from entrepot.exporters.torch.running.eager import MODEL_ERRORS
from entrepot.exporters.torch.running.unsupported import check_quantised, plain_refusals
from entrepot.exporters.torch.sources.calling import TorchSource, mode_note
from entrepot.exporters.torch.sources.other_ways import capture_rewritten, capture_scripted, capture_traced
from entrepot.ir.errors import ConversionError, EntrepotError


class ModuleSource(TorchSource):
    """A module and what it is called with."""

    ways = (
        "as it is",
        "with its branches and loops rewritten",
        "in parts",
        "by torch.jit.script",
        "by torch.jit.trace",
    )

    def __init__(self, module: torch.nn.Module, sample: Any) -> None:
        self.sample = Sample.of(sample)
        super().__init__(module, flatten_call(self.sample, module.forward, TORCH))
        self._mode = mode_note(module)

    def accept(self, options: Options) -> None:
        """Every option; but no exporter can reach quantised weights."""
        check_quantised(self.module)

    def shaped_groups(self, prober: Prober, dynamic_shapes: Any) -> tuple[list[Group], Collection[Axis]]:
        """The axes that torch.export's ``dynamic_shapes`` names or hints at."""
        wishes = read_shapes(dynamic_shapes, self.module, self.sample, self.call)
        return shaped_groups(prober, wishes, self.call.names), wishes.keys()

    def capture(self, prober: Prober, groups: list[Group], options: Options) -> Captured:
        """Capture in the way that is asked for; translate with torch.onnx."""
        self.eager.may_not_end = (
            self.way != self.ways[0]
        )  # the first way follows no loops that end when a value says so
        with plain_refusals(self.eager, self.call.tensors):
            match self.way:
                case "with its branches and loops rewritten":
                    return capture_rewritten(self, prober, groups, options)
                case "in parts":
                    return self._followed(prober, groups, options)
                case "by torch.jit.script":
                    return capture_scripted(self, groups, options)
                case "by torch.jit.trace":
                    return capture_traced(self, groups, options)
            return self._plain(prober, groups, options)

    def _plain(self, prober: Prober, groups: list[Group], options: Options) -> Captured:
        options.tell("capturing the module")
        captured = capture(self.module, self.call, prober, groups, progress=options.tell)
        self.state.restore()
        options.tell("translating to ONNX")
        graph = translate(captured.program)
        repair(graph, self.module)
        return Captured(graph, captured.groups, captured.fixed, captured.numbers, weight_names(self.module))

    def _followed(self, prober: Prober, groups: list[Group], options: Options) -> Captured:
        """Several captures put together, for axes that one capture fixes."""
        lost = [group for group in groups if not group.axes.isdisjoint(self.lost)]
        try:
            path = follow(self, prober, groups, lost, lambda tensors: self._path(tensors, groups), options.tell)
        except Unfollowed as reason:
            raise ConversionError(f"captures at several sizes do not add up: {reason}") from reason
        return Captured(path.graph, groups, {}, path.numbers, weight_names(self.module))

    def _path(self, tensors: Sequence[Any], groups: Sequence[Group]) -> Path | None:
        """The module as it behaves at the sizes of some tensors."""
        flat = FlatModule(self.module, self.call.tree)
        flat.training = False
        try:
            program = capture_automatic(flat, tensors, groups)
            graph = translate(program)
            conditions = conditions_of(program, groups)
        except (*MODEL_ERRORS, EntrepotError):
            return None
        finally:
            self.state.restore()
        repair(graph, self.module)
        rename_symbols(graph, groups)
        return Path(graph, {}, conditions, frozenset(weight_names(self.module)), frozenset(flat.numbers))

    def notes(self) -> Sequence[str]:
        """The mode that it was in, and state of the sample that is not followed."""
        return [self._mode, *(self.state_notes or ())]

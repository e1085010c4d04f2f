"""A ``torch.nn.Module``: captured by torch.export with the axes that were found to vary."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import torch

from entrepot.exporters.axes.groups import Axis, Group
from entrepot.exporters.axes.probe import Prober
from entrepot.exporters.exporter import Captured
from entrepot.exporters.options import Options
from entrepot.exporters.sample import Sample
from entrepot.exporters.structure import flatten_call
from entrepot.exporters.torch.arrays import TORCH
from entrepot.exporters.torch.capture.capture import capture
from entrepot.exporters.torch.capture.shapes import read_shapes, shaped_groups
from entrepot.exporters.torch.lowering.repair import repair
from entrepot.exporters.torch.lowering.translate import translate
from entrepot.exporters.torch.lowering.weights import weight_names
from entrepot.exporters.torch.quantised.packed import has_packed
from entrepot.exporters.torch.quantised.weight_only import keep_exact
from entrepot.exporters.torch.running.checks import check_module
from entrepot.exporters.torch.running.unsupported import check_kernels, plain_refusals
from entrepot.exporters.torch.sources.calling import TorchSource, mode_note
from entrepot.exporters.torch.sources.checkpoint import Checkpoint
from entrepot.ir.errors import InputError


class ModuleSource(TorchSource):
    """A module and what it is called with."""

    def __init__(self, module: torch.nn.Module, sample: Any) -> None:
        self.sample = Sample.of(sample)
        super().__init__(module, flatten_call(self.sample, module.forward, TORCH))
        self._mode = mode_note(module)

    def accept(self, options: Options) -> None:
        """Every option, if the module may be run at other sizes, and its weights are where they can be shared."""
        if options.weights is not None:
            self.checkpoint = Checkpoint(self.module, options.weights)
        else:
            check_module(self.module)
        check_kernels(self.module)
        if options.share and has_packed(self.module):
            raise InputError("quantised weights cannot be shared: they are packed", hint="leave share out to copy them")
        self.keeps, self.random, self.training = options.state, options.random or options.training, options.training
        if self.training and not self._mode:
            raise InputError("the module is in evaluation mode", hint="call train() on it, or leave training out")

    def shaped_groups(self, prober: Prober, dynamic_shapes: Any) -> tuple[list[Group], Collection[Axis]]:
        """The axes that torch.export's ``dynamic_shapes`` names or hints at."""
        wishes = read_shapes(dynamic_shapes, self.module, self.sample, self.call)
        return shaped_groups(prober, wishes, self.call.names), wishes.keys()

    def capture(self, prober: Prober, groups: list[Group], options: Options) -> Captured:
        """Capture with torch.export, translate with torch.onnx."""
        with plain_refusals(self.eager, self.call.tensors):
            options.tell("capturing the module")
            captured = capture(self.module, self.call, prober, groups, progress=options.tell, stepper=self.stepper)
            self.state.restore()
            options.tell("translating to ONNX")
            graph = translate(captured.program)
        repair(graph, self.module)
        keep_exact(graph)
        weights = {*weight_names(self.module), *(name.removeprefix("module.") for name in captured.program.state_dict)}
        return Captured(graph, captured.groups, captured.fixed, captured.numbers, weights)

    def notes(self) -> Sequence[str]:
        """The mode that it was in, and state of the sample that is not followed."""
        return ["" if self.training else self._mode, *self.state_notes]

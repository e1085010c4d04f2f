"""Masks: which steps of a sequence count, as Keras hands them from layer to layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import keras
import onnx_ir as ir
from keras import tree

from entrepot.exporters.keras import upstream


class Masks:
    """The mask that each value bears."""

    def __init__(self) -> None:
        self._by_value: dict[int, tuple[ir.Value, ir.Value]] = {}  # with the value, whose identity is the key

    def of(self, value: Any) -> ir.Value | None:
        """The mask that a value bears."""
        return self._by_value[id(value)][1] if id(value) in self._by_value else None

    def set(self, value: ir.Value, mask: ir.Value | None) -> None:
        """Let a value bear a mask, or none."""
        if mask is None:
            self._by_value.pop(id(value), None)
        else:
            self._by_value[id(value)] = value, mask

    def added(
        self, layer: Any, arguments: Mapping[str, Any], given: Mapping[str, Any], kwargs: dict[str, Any]
    ) -> tuple[dict[str, Any], Any]:
        """The arguments with those masks that Keras adds, and what becomes of the mask of the first one."""
        names = upstream.signature_of(layer).parameters
        wanted = {"mask": next(iter(given), "")} if len(given) == 1 else {f"{name}_mask": name for name in given}
        for parameter, name in wanted.items():
            if name and parameter in names and arguments.get(parameter) is None:
                mask = tree.map_structure(self.of, given[name])
                if any(item is not None for item in tree.flatten(mask)):
                    kwargs[parameter] = mask
        if kwargs.get("mask") is not None:
            return kwargs, kwargs["mask"]
        return kwargs, tree.map_structure(self.of, next(iter(given.values()), None))

    def follow(self, layer: Any, inputs: Any, results: Any, previous: Any, write: Callable[..., Any]) -> None:
        """Let the results of a layer bear what it makes of the mask of its inputs.

        Args:
            layer: It.
            inputs: What it was called with.
            results: What it returned.
            previous: The mask of the inputs.
            write: Writes what a function computes, of positional and keyword arguments.
        """
        flat = [part for part in tree.flatten(results) if isinstance(part, ir.Value)]
        if all(self.of(value) is not None for value in flat):
            return
        if type(layer).compute_mask is keras.Layer.compute_mask:
            masks = previous
        elif all(item is None for item in tree.flatten(previous)) and not hasattr(layer, "mask_zero"):
            return
        else:
            masks = write(layer.compute_mask, (inputs, previous), {})
        for value, mask in zip(flat, tree.flatten(masks) if masks is not None else (), strict=False):
            if mask is not None and self.of(value) is None:
                self.set(value, mask)

"""Steps without weights that are layers where a list of layers has a place for them."""

from __future__ import annotations

from entrepot.importers.torch.layers.layer import Layer, Rule, keywords, positional
from entrepot.importers.torch.op import Op
from entrepot.importers.torch.words.products import window


def _plain(kind: str) -> Rule:
    return lambda op: Layer(kind, ())


def _gelu(op: Op) -> Layer:
    return Layer("GELU", keywords(approximate='"tanh"') if op.attribute("approximate") == "tanh" else ())


def _pool(kind: str, *, average: bool = False) -> Rule:
    def rule(op: Op) -> Layer | None:
        given = window(op, average=average)
        if given is None or op.asked(1) or op.attribute("ceil_mode"):
            return None
        arguments = (*positional(kernel_size=given.pop("kernel_size")), *keywords(**given))
        return Layer(f"{kind}{len(op.attribute('kernel_shape'))}d", arguments)

    return rule


def _flatten(op: Op) -> Layer | None:
    return Layer("Flatten", ()) if op.attribute("axis") == 1 and (op.rank(0) or 0) > 1 else None


def _softmax(kind: str) -> Rule:
    return lambda op: Layer(kind, keywords(dim=op.axis(op.attribute("axis"), op.rank(0)))) if op.rank(0) else None


def _swish(op: Op) -> Layer | None:
    return Layer("SiLU", ()) if op.attribute("alpha") == 1 else None


STATELESS: dict[str, Rule] = {
    "Relu": _plain("ReLU"),
    "Sigmoid": _plain("Sigmoid"),
    "Tanh": _plain("Tanh"),
    "HardSwish": _plain("Hardswish"),
    "Mish": _plain("Mish"),
    "Swish": _swish,
    "Gelu": _gelu,
    "MaxPool": _pool("MaxPool"),
    "AveragePool": _pool("AvgPool", average=True),
    "Flatten": _flatten,
    "Softmax": _softmax("Softmax"),
    "LogSoftmax": _softmax("LogSoftmax"),
}
"""What is a layer only where a list of layers has a place for it."""

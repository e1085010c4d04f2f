"""A model carries whatever proof it is given; the room that makes one is not its concern."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir
import pytest

from entrepot.ir.errors import InputError
from entrepot.ir.model import Model
from entrepot.ir.proof import Proof
from entrepot.parity.report import Report


@dataclass(frozen=True)
class Certificate:
    """A proof that no part of the library made."""

    void: str = ""
    doubt: str = ""
    failures: Sequence[object] = ()
    providers: Sequence[str] = ("pencil",)

    @property
    def ok(self) -> bool:
        return not self.void

    def __bool__(self) -> bool:
        return self.ok

    def summary(self) -> str:
        return f"void: {self.void}" if self.void else "checked by hand"

    def to_json(self) -> str:
        return "{}"

    def to_html(self, path) -> None:
        raise NotImplementedError

    def voided(self, reason: str) -> Certificate:
        return replace(self, void=reason)


class Watched(ir.Tensor):
    """Weights that say when they change."""

    state = 0

    def fingerprint(self) -> int:
        return self.state


MODEL = """<ir_version: 10, opset_import: ["": 18]>
g (float[2] x) => (float[2] y) <float[2] w = {1, 1}> {y = Add(x, w)}"""


def _graph() -> ir.Model:
    model = ir.from_onnx_text(MODEL)
    model.graph.initializers["w"].const_value = Watched(np.ones(2, np.float32), name="w")
    return model


def test_a_report_is_a_proof():
    assert isinstance(Report("source", "model", (), ()), Proof)


def test_a_model_shows_and_pickles_a_proof_of_any_class():
    model = pickle.loads(pickle.dumps(Model(_graph(), report=Certificate())))
    assert model.report == Certificate()
    assert "checked by hand" in repr(model)


def test_a_proof_is_void_once_shared_weights_change():
    model = Model(_graph(), report=Certificate())
    model.ir.graph.initializers["w"].const_value.state = 1
    assert "weights shared with the source changed" in model.report.void
    assert not model.report


def test_what_proves_nothing_is_refused():
    with pytest.raises(InputError, match="expected a Report or None"):
        Model(_graph(), report="fine")

"""What a model without inputs computes, for passes that fold constants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from entrepot.ir.errors import EntrepotError
from entrepot.ir.model import Model
from entrepot.runtime.session import Session


def evaluate(model: Model) -> Mapping[str, Any]:
    """The outputs by name, or nothing if our runtime cannot compute them all: then they are left to whoever runs it."""
    try:
        return Session(model, providers=("cpu",)).run({})
    except EntrepotError:
        return {}

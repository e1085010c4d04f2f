"""If, Loop, Scan and SequenceMap over tensors."""

from __future__ import annotations

import torch

from entrepot.importers.torch import support
from entrepot.runtime.writer import Form, Support

SUPPORT = Support(torch.tensor(True), bool, torch.tensor, range, len, support.reshaped, support.reshaped)
FORMS: dict[str, Form] = {}

"""What ``forward`` may raise when it does not accept its inputs."""

from __future__ import annotations

import torch

from entrepot.exporters import calls
from entrepot.exporters.torch.upstream import SpecViolationError

MODEL_ERRORS = (*calls.MODEL_ERRORS, torch.jit.Error, SyntaxError, SpecViolationError)

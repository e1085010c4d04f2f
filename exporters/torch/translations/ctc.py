"""Connectionist temporal classification: its recursion as one Scan over time."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere

from entrepot.exporters.torch.upstream import scan


def ctc_loss(  # the signature is torch's
    log_probs: torch.Tensor,
    targets: torch.Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: Any = "mean",
    zero_infinity: bool = False,
) -> torch.Tensor:
    """Minus the logarithm of the probability of all alignments of each target."""
    single = log_probs.dim() == 2
    logs = log_probs.unsqueeze(1) if single else log_probs
    lengths, sizes = (_as_lengths(each, logs.shape[1]) for each in (input_lengths, target_lengths))
    labels = _with_blanks(_rows(targets, sizes, logs.shape[1]), blank)
    likelihood = _likelihood(logs.gather(2, labels.expand(logs.shape[0], -1, -1)), labels, lengths, sizes, blank)
    loss = -likelihood
    if zero_infinity:
        loss = loss.masked_fill(loss == torch.inf, 0.0)
    if reduction in ("mean", 1):
        return (loss / sizes.clamp(min=1)).mean()
    return loss.sum() if reduction in ("sum", 2) else loss.squeeze(0) if single else loss


def _as_lengths(lengths: Any, count: Any) -> torch.Tensor:
    return torch.as_tensor(lengths, dtype=torch.int64).reshape(-1).expand(count)


def _rows(targets: torch.Tensor, sizes: torch.Tensor, count: Any) -> torch.Tensor:
    """[batch, longest]: as they are, or cut out of a row that holds them all."""
    if targets.dim() == 2:
        return targets.to(torch.int64)
    place = (sizes.cumsum(0) - sizes).unsqueeze(-1) + torch.arange(targets.shape[0])
    return targets.to(torch.int64)[place.clamp(max=targets.shape[0] - 1)]


def _with_blanks(targets: torch.Tensor, blank: int) -> torch.Tensor:
    """Blanks around each label: [batch, 2 * longest + 1]."""
    return F.pad(torch.stack([torch.full_like(targets, blank), targets], -1).flatten(1), (0, 1), value=blank)


def _likelihood(
    emitted: torch.Tensor, labels: torch.Tensor, lengths: torch.Tensor, sizes: torch.Tensor, blank: int
) -> torch.Tensor:
    """The logarithm of the probability of ending at the last label or the blank after it."""
    place = torch.arange(labels.shape[1])
    before = F.pad(labels, (2, 0), value=blank)[:, : labels.shape[1]]
    may_skip = (labels != before) & (place >= 2)  # a blank follows a blank

    def step(state: torch.Tensor, now: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        logs, goes_on = now
        one = F.pad(state, (1, 0), value=-torch.inf)[:, :-1]
        two = F.pad(state, (2, 0), value=-torch.inf)[:, :-2].masked_fill(~may_skip, -torch.inf)
        state = torch.where(goes_on.unsqueeze(-1), logs + _sum(state, one, two), state)
        return state, state.sum()

    first = emitted[0].masked_fill(place >= 2, -torch.inf)
    goes_on = torch.arange(emitted.shape[0]).unsqueeze(-1) < lengths
    last, _ = scan(step, first, (emitted[1:], goes_on[1:]))
    ends = (2 * sizes).unsqueeze(-1)
    at_label = last.gather(1, (ends - 1).clamp(min=0)).masked_fill(ends == 0, -torch.inf)
    return _sum(last.gather(1, ends), at_label).squeeze(-1)


def _sum(*logs: torch.Tensor) -> torch.Tensor:
    table = torch.stack(logs)
    largest = table.amax(0)
    largest = torch.where(largest == -torch.inf, 0.0, largest)
    return largest + (table - largest).exp().sum(0).log()


REPLACEMENTS: dict[Any, Any] = {torch.ctc_loss: ctc_loss, F.ctc_loss: ctc_loss}

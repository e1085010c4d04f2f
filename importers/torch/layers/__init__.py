"""Which steps are layers of torch.nn, and how those are made."""

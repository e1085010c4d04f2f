"""The operations of StableHLO by family."""

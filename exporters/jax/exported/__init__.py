"""What ``jax.export`` made: a program in StableHLO, which is run operation by operation on ``jax.lax`` to be traced."""

"""Rules for the primitives of JAX, in files by family; ``table.rules`` imports all of them."""

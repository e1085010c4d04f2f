"""A model's layers and operations, read one after another."""

"""Keras 3, on whatever backend: models and layers, and the files that hold them."""

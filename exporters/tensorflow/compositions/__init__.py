"""Operators as programs of other operators of TensorFlow, a file for each family."""

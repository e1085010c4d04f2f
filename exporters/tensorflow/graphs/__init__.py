"""Graphs of TensorFlow: put into one, given shapes by TensorFlow, and walked from node to node."""

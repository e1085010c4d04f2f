"""Networks on graphs."""

from __future__ import annotations

import tensorflow as tf

from entrepot.models_zoo.registry import Built
from entrepot.models_zoo.tensorflow.weights import Weights, rows, tokens


class GraphNetwork(tf.Module):
    def __init__(self, weights: Weights) -> None:
        super().__init__("graph_network")
        self.message, self.update = weights("message", 3, 8), weights("update", 8, 4)

    def __call__(self, nodes: tf.Tensor, senders: tf.Tensor, receivers: tf.Tensor) -> tf.Tensor:
        sent = tf.gather(tf.nn.relu(nodes @ self.message), senders)
        count = tf.shape(nodes)[0]
        total = tf.math.unsorted_segment_sum(sent, receivers, count)
        degree = tf.math.unsorted_segment_sum(tf.ones_like(receivers, tf.float32), receivers, count)
        return tf.math.divide_no_nan(total, degree[:, None]) @ self.update


def graph_network() -> Built:
    """Nodes with three features, and edges as two vectors."""
    samples = tuple(
        (rows(nodes, 3), tokens(edges, high=nodes, seed=2), tokens(edges, high=nodes, seed=3))
        for nodes, edges in ((4, 6), (7, 9))
    )
    return Built(GraphNetwork(Weights()), samples, frozenset({"senders.0", "receivers.0"}))

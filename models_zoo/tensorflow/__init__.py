"""Models written with TensorFlow alone: modules and functions, without Keras."""

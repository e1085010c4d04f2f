"""What each operator of TensorFlow is in ONNX, a module for each family."""

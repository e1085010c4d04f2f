"""Mathematical functions and algorithms that ONNX has no operators for, written in its operators, for any framework."""

"""What a source is for each thing that TensorFlow makes."""

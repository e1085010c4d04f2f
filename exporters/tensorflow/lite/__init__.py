"""TensorFlow Lite: a flatbuffer read into a program, replayed by TensorFlow's own operators to be traced."""

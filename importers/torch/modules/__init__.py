"""Which modules there are, and which steps and tensors each of them has."""

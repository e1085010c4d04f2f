"""Models of Keras 3, which run on whatever backend it has."""

"""Which provider runs which part of a model, and what crosses between them."""

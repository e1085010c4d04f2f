"""A model as steps that torch has layers and words for."""

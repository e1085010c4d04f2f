"""PyTorch models, written as their users write them: nothing here knows about export."""

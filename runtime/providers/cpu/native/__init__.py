"""What NumPy does better itself: same signatures as the shared meanings, one file per family."""

"""Operators that other runtimes add to the standard, spelled out in the standard's own."""

"""Traces by copies of a user's functions, in which what asks sizes for numbers takes symbols; nothing is changed."""

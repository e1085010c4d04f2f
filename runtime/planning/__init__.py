"""A part of a graph as steps: lowered, merged, fused, with what belongs on the host."""

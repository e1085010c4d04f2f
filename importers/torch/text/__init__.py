"""The text: of a forward, of arithmetic on sizes, of control flow, of the whole file."""

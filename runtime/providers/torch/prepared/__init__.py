"""Rules that bind a kernel made for one node, with packed constants; importing the modules fills ``prepared``."""

"""The runs of this process: which there are, which wait, and how callers find them."""

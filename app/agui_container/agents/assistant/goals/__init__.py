"""Goals: data that a caller wants from a turn, each with a tool of its own by which the assistant gives it."""

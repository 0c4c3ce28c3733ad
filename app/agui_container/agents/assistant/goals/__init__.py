"""Goals: data that a caller wants from a turn. The assistant delivers each by calling a tool for it."""

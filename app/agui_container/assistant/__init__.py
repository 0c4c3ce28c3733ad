"""The built-in assistant: a loop of model calls and tool calls."""

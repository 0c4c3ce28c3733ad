"""The chat page in a real browser."""

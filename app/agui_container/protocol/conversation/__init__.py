"""A conversation as data: messages, state, and how they change."""

"""The model's context window: what of a conversation fits a budget of tokens, and what becomes of the rest."""

"""The model's context window: keeps the prompt within a budget of tokens by trimming or summarising history."""

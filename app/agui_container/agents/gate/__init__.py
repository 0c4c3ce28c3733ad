"""The gate for tool calls of every agent: tools, policy, questions to people, and the journal of a turn."""

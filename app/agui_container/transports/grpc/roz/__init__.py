"""The service of roz: interactive sessions of an agent with the client's own tools, and the watching of subagents."""

"""The service of roz: interactive sessions of an agent with tools of the client, and the observation of subagents."""

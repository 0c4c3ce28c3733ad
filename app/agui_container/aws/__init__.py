"""AWS around the container: its deployment, and AgentCore on one's own machine."""

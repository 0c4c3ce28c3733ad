"""The services of kontekst: runs of an agent that need an approval for every tool, and the daemon's status."""

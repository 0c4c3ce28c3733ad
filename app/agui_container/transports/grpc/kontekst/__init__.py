"""The services of kontekst: runs of an agent that ask before every tool, and the daemon's status."""

"""The Python client against live servers: this one over both transports, and other AG-UI servers."""

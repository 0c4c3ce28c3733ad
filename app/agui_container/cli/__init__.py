"""The command line ``agui``: each command has a module of its own."""

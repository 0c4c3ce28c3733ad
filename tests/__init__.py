"""The tests of the container."""

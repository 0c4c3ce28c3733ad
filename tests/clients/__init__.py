"""The clients of this repository, tested against real servers."""

"""Tests with real sockets and a real process: the server as ``python -m agui_container serve`` runs it."""

"""What only real sockets and a real process can show: the server as ``python -m agui_container serve`` runs it."""

"""What only real sockets and a real process can show: the server as ``python -m app serve`` runs it."""

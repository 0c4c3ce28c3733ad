"""What a client may rely on, written once and run on every transport."""

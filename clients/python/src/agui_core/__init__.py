"""What a server and a client of AG-UI share: the transcript, chunks, the schemas of functions, and commands.

Rule: everything here is pure. It knows no network, no clock and no files, and neither of its two users.
"""

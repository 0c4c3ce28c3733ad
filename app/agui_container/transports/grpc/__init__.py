"""gRPC on the server's own port: the services of roz and kontekst over the one engine, health and reflection.

Rule: only ``handover`` and ``options`` are imported at the start. Everything else is imported by the first HTTP/2
connection.
"""

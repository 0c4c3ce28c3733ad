"""gRPC on the server's own port: the services of roz and kontekst over the one engine, health and reflection.

Rule: only ``handover`` is imported at the start. All else is imported when the first HTTP/2 connection comes.
"""

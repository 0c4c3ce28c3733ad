"""Other agent protocols over one conversation loop: roz and kontekst over gRPC, Roboto over HTTP."""

"""Registration of kontekst: its services over gRPC.

Rule: this module is imported at the start. The first client imports the services.
"""

import signal
from functools import partial

from agui_container.protocols.kontekst.options import KontekstOptions
from agui_container.web.registration import BuildServices, GrpcRegistration, read_options


def register(settings: object) -> GrpcRegistration:
    options = read_options(settings, KontekstOptions)
    shutdown = partial(signal.raise_signal, signal.SIGTERM) if options.grpc_shutdown else None

    def load() -> BuildServices:
        from agui_container.protocols.kontekst.services import (  # noqa: PLC0415 - the first client imports them
            DaemonService,
            KontekstService,
        )

        return lambda service, admission: [
            KontekstService(service, admission, options),
            DaemonService(service, admission, options, shutdown),
        ]

    return GrpcRegistration(["kontekst.AgentService", "kontekst.DaemonService"], load)

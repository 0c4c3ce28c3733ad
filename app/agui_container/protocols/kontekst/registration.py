"""Registration of kontekst: its services over gRPC.

Rule: this module is imported at the start. The first client imports the services.
"""

from agui_container.protocols.kontekst.options import KontekstOptions
from agui_container.web.registration import BuildServices, GrpcRegistration, read_options


def register(settings: object) -> GrpcRegistration:
    options = read_options(settings, KontekstOptions)

    def load() -> BuildServices:
        from agui_container.protocols.kontekst import services  # noqa: PLC0415 - the first client imports it

        return lambda service, admission: [
            services.KontekstService(service, admission, options),
            services.DaemonService(service, admission, options),
        ]

    return GrpcRegistration(["kontekst.AgentService", "kontekst.DaemonService"], load)

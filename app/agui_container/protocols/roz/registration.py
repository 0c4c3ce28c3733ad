"""Registration of roz: its service over gRPC.

Rule: this module is imported at the start. The first client imports the service.
"""

from agui_container.protocols.roz.options import RozOptions
from agui_container.web.registration import BuildServices, GrpcRegistration, read_options


def register(settings: object) -> GrpcRegistration:
    options = read_options(settings, RozOptions)

    def load() -> BuildServices:
        from agui_container.protocols.roz.service import RozService  # noqa: PLC0415 - the first client imports it

        return lambda service, admission: [RozService(service, admission, options)]

    return GrpcRegistration(["roz.v1.AgentService"], load)

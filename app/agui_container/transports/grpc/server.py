"""The gRPC server: the construction of its services, and the protocols of its connections.

Rule: this module and all below it are imported by the first HTTP/2 connection (``handover``).
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from grpclib.const import Handler as Method

from agui_container.engine.service import Service
from agui_container.runtime.shares import AmountsByAccount
from agui_container.telemetry import RefusalLog, count_refusal
from agui_container.transports.accounts import Accounts
from agui_container.transports.authentication import NO_AUTHENTICATION
from agui_container.transports.bytes_in_flight import ByteBudget
from agui_container.transports.grpc.call import CallAdmission, Servable, address_of
from agui_container.transports.grpc.connection import GrpcProtocol
from agui_container.transports.grpc.handover import HttpConnection
from agui_container.transports.grpc.health import HealthService
from agui_container.transports.grpc.kontekst.daemon import DaemonService
from agui_container.transports.grpc.kontekst.service import KontekstService
from agui_container.transports.grpc.open_calls import AgentCalls, UnverifiedCalls
from agui_container.transports.grpc.options import GrpcOptions
from agui_container.transports.grpc.reflection import with_reflection
from agui_container.transports.grpc.roz.service import RozService

MAX_CONNECTIONS = 1_000
"""Number of gRPC connections that one process accepts. One caller has half of it."""


class GrpcConnections:
    """Open gRPC connections by caller. The name of a connection is its transport. Implements ``OpenConnections``.

    Rule: a caller has half of ``MAX_CONNECTIONS``. A connection without calls gives way to a new one, the oldest first.
    """

    def __init__(self) -> None:
        self._shares = AmountsByAccount(MAX_CONNECTIONS)
        self._accounts: dict[asyncio.Transport, str] = {}
        self._waiting: dict[asyncio.Transport, None] = {}
        self._refusal_log = RefusalLog()

    def admit(self, transport: asyncio.Transport, account: str) -> bool:
        """Count a new connection of a caller. Returns False if there is no room for it."""
        is_share_used = 2 * self._shares.of(account) >= MAX_CONNECTIONS
        if is_share_used or self._shares.total >= MAX_CONNECTIONS:
            candidates = (other for other in self._waiting if not is_share_used or self._accounts[other] == account)
            if (oldest := next(candidates, None)) is None:
                count_refusal("grpcConnections", "caller" if is_share_used else "process")
                self._refusal_log.report("grpcConnections", account)
                return False
            self.remove(oldest)
            oldest.abort()
        self._accounts[transport] = account
        self._shares.add(account, 1)
        return True

    def begin_waiting(self, transport: asyncio.Transport) -> None:
        """Note that a connection has no call."""
        if transport in self._accounts:
            self._waiting[transport] = None

    def end_waiting(self, transport: asyncio.Transport) -> None:
        """Note that a connection has a call."""
        self._waiting.pop(transport, None)

    def remove(self, transport: asyncio.Transport) -> None:
        """Forget a connection that has ended."""
        self._waiting.pop(transport, None)
        if (account := self._accounts.pop(transport, None)) is not None:
            self._shares.add(account, -1)


class GrpcServer:
    """Implements ``handover.Http2Server``.

    Args:
        services: all services, including reflection and health.
        accounts: chooses the account that connections are counted under.
    """

    def __init__(self, services: Sequence[Servable], accounts: Accounts) -> None:
        self._methods: dict[str, Method] = {}
        for service in services:
            self._methods.update(service.__mapping__())
        self._accounts = accounts
        self._connections = GrpcConnections()

    def connect(self, connection: HttpConnection) -> GrpcProtocol:
        """Return the protocol of a connection. The connection is closed if there are too many."""
        account = self._accounts.name(address_of(connection.transport), None)
        has_room = self._connections.admit(connection.transport, account)
        limits = connection.limit, self._connections
        return GrpcProtocol(self._methods, connection.connections, limits, has_room=has_room)


def build_server(service: Service, options: GrpcOptions, budget: ByteBudget) -> GrpcServer:
    """Build the gRPC server of an engine."""
    unverified = UnverifiedCalls()
    admission = CallAdmission(
        options.max_bytes,
        options.by_session,
        frozenset(options.origins),
        options.authentication,
        options.accounts,
        service.usages,
        unverified,
        AgentCalls(service.usages),
        budget,
    )
    open_admission = replace(admission, authentication=NO_AUTHENTICATION, open_calls=unverified)
    agents: list[Servable] = [
        RozService(service, admission, options),
        KontekstService(service, admission, options.agent_names),
        DaemonService(options.daemon, admission),
    ]
    names = [path.split("/")[1] for agent in agents for path in agent.__mapping__()]
    health = HealthService(names, service.is_serving, open_admission)
    return GrpcServer([*with_reflection(agents, open_admission), health], options.accounts)

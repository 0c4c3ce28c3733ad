"""An account is the name under which a caller's limits are counted; logs call it ``caller``.

Rule: a caller cannot reset its limits by choosing a new name. So a name comes from a verified token, or from the
network address of the connection. The session header is a name only if the operator says that a platform or a gateway
sets it (``docs/decisions/0042-callers-are-counted-by-address.md``).
"""

from ipaddress import IPv6Address, ip_address

from msgspec import Struct

NETWORK_BITS = 64
"""Leading bits of an IPv6 address that name its network. One client has all addresses of such a network."""


class Accounts(Struct, frozen=True):
    """The choice of a caller's account.

    Attributes:
        by_session: True if the session header is set by a platform or a gateway, and not by clients.
    """

    by_session: bool = False

    def name(self, address: str | None, session_id: str | None) -> str:
        """Return the account of a caller without a verified token.

        Args:
            address: network address of the client; None for a connection without one, such as a Unix socket.
            session_id: value of the session header, if it was sent.
        """
        if self.by_session and session_id:
            return f"session:{session_id}"
        return f"address:{network_of(address) if address else 'local'}"


def network_of(address: str) -> str:
    """Return an IPv4 address as it is, and the network of an IPv6 address."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:  # a test client has a name in the place of an address
        return address
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    host_bits = parsed.max_prefixlen - NETWORK_BITS
    return f"{IPv6Address(int(parsed) >> host_bits << host_bits)}/{NETWORK_BITS}"

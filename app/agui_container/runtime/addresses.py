"""Addresses of this machine. Used at the start and by the reader of an issuer's documents."""

from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

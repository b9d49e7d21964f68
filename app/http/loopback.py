"""Which hosts are this very machine."""

import functools
import ipaddress


@functools.lru_cache(64)
def is_loopback(host: str) -> bool:
    """True for localhost and for addresses that only this machine can reach."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False

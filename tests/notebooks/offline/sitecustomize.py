"""Loaded by every Python that starts with this folder on its path: no connection leaves this machine.

A lesson needs no network. A test that only hopes so would pass on a machine with one.
"""

import socket

HERE = ("localhost", "127.0.0.1", "::1", "")


class LeftTheMachine(OSError):
    """Something tried to reach the network."""


def _guard(name, address_of):
    real = getattr(socket.socket, name)

    def guarded(self, *args):
        address = address_of(args)
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in HERE:
            raise LeftTheMachine(f"a lesson tried to reach {address!r}; lessons run without a network")
        return real(self, *args)

    setattr(socket.socket, name, guarded)


_guard("connect", lambda args: args[0])
_guard("connect_ex", lambda args: args[0])
_guard("sendto", lambda args: args[-1])

_real_lookup = socket.getaddrinfo


def _lookup(host, *args, **kwargs):
    name = host.decode() if isinstance(host, bytes) else host
    if name not in (*HERE, None):
        raise LeftTheMachine(f"a lesson tried to look up {name!r}; lessons run without a network")
    return _real_lookup(host, *args, **kwargs)


socket.getaddrinfo = _lookup

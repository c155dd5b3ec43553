"""Have Dask try again where the other side hangs up just before TLS begins, as a scheduler does that ends then."""

from __future__ import annotations

import functools
from typing import Any


@functools.cache
def register_tls_connector() -> None:
    """Register a connector for ``tls://`` that reports a connection cut before its handshake as one that is closed.

    Tornado raises ValueError there, which Dask does not take for a lost connection: the task with which a client
    looks for its scheduler ends, and the client never finds the one that is started in its place.
    """
    from distributed.comm import registry, tcp
    from distributed.comm.core import CommClosedError

    class Connector(tcp.TLSConnector):
        async def connect(self, address: str, deserialize: bool = True, **connection_args: Any) -> Any:
            try:
                return await super().connect(address, deserialize=deserialize, **connection_args)
            except ValueError as error:
                if "not idle" not in str(error):
                    raise
                raise CommClosedError(f"the connection to tls://{address} was cut before its handshake") from error

    class TLSBackend(tcp.TLSBackend):
        _connector_class = Connector

    registry.backends["tls"] = TLSBackend()

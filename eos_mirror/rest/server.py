"""Serves the routes in a thread of the driver's process."""

import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from eos_mirror.driver.driver import Driver
from eos_mirror.settings.rest import RestSettings
from eos_mirror.settings.values import HttpAddress

INSTALL: Final = "pip install 'eos-mirror[rest]'"
BACKLOG: Final = 64
STOPS_IN_S: Final = 5.0

EventSink = Callable[[str, dict[str, Any]], None]


@contextmanager
def served(
    settings: RestSettings, driver: Callable[[], Driver], *, on_event: EventSink
) -> Iterator[None]:
    """
    Serve while the block runs. What keeps it from serving is a warning: mirroring matters more.

    Args:
        driver: Returns the driver that runs now.
        on_event: Receives log events.
    """
    listener = settings.listener
    if listener is None or settings.obstacle:
        yield
        return
    try:
        server = _server(settings, driver)
        place = _listen(listener, settings)
    except ImportError as exc:
        on_event("rest.failed", {"reason": f"{exc.name} is not installed: {INSTALL}"})
        yield
        return
    except OSError as exc:
        reason = f"listeners = {listener}: cannot listen there: {_why(exc)}"
        on_event("rest.failed", {"reason": reason})
        yield
        return
    thread = threading.Thread(target=server.run, args=([place],), name="rest", daemon=True)
    thread.start()
    on_event("rest.listening", {"address": str(listener._replace(port=place.getsockname()[1]))})
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(timeout=STOPS_IN_S)


def _listen(listener: HttpAddress, settings: RestSettings) -> socket.socket:
    if listener.is_encrypted:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(settings.key_store)
    family = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
    return socket.create_server((listener.host, listener.port), family=family, backlog=BACKLOG)


def _server(settings: RestSettings, driver: Callable[[], Driver]) -> Any:
    import uvicorn  # noqa: PLC0415 (an extra, and slow to load)

    from eos_mirror.rest.app import app_of  # noqa: PLC0415

    pem = settings.key_store if settings.listener and settings.listener.is_encrypted else None
    config = uvicorn.Config(
        app_of(settings, driver),
        ssl_certfile=pem,
        ssl_keyfile=pem,
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
    )
    return uvicorn.Server(config)


def _why(exc: OSError) -> str:
    if isinstance(exc, ssl.SSLError):
        return "listeners.https.ssl.keystore.location is no PEM file with a key and certificates"
    return os.strerror(exc.errno) if exc.errno else str(exc)

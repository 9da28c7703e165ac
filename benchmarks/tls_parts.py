"""
What it costs to send a request in parts over TLS, and with its small parts joined.

Run `python -m benchmarks.tls_parts`. Each line is one request: batches, their size, and the
microseconds that sending it takes, in separate parts and joined (`eos_mirror.wire.tls.joined`).
"""

import socket
import ssl
import tempfile
import threading
import time
from pathlib import Path

from eos_mirror.testing.installation import find_installation
from eos_mirror.testing.tls import make_keys
from eos_mirror.wire.tls import joined
from tests.wire.conftest import pem_of

SHAPES = ((200, 500), (200, 2_000), (20, 20_000), (2, 800_000))
SENT_BYTES = 20_000_000
HEADER = bytes(10)

Parts = list[bytes | bytearray | memoryview]


def _connected(folder: Path) -> ssl.SSLSocket:
    """Return a connection to a thread that reads and forgets everything."""
    keys = make_keys(find_installation().java, folder)
    files = folder / "certificate.pem", folder / "key.pem"
    for file, pem in zip(files, pem_of(keys.brokers), strict=True):
        file.write_text(pem)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(*files)
    listener = socket.create_server(("127.0.0.1", 0))

    def drain() -> None:
        accepted, _ = listener.accept()
        buffer = bytearray(1 << 20)
        with server.wrap_socket(accepted, server_side=True) as reader:
            while reader.recv_into(buffer):
                pass

    threading.Thread(target=drain, daemon=True).start()
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.load_verify_locations(keys.authority)
    plain = socket.create_connection(listener.getsockname())
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client.wrap_socket(plain, server_hostname="127.0.0.1")


def _measure(connection: ssl.SSLSocket, parts: Parts, *, join: bool) -> float:
    """Return the processor time of one request in microseconds."""
    times = max(5, SENT_BYTES // sum(map(len, parts)))
    started = time.thread_time()
    for _ in range(times):
        for part in joined(parts) if join else parts:
            connection.sendall(part)
    return (time.thread_time() - started) / times * 1e6


def main() -> None:
    """Print a line for each shape of a request."""
    with tempfile.TemporaryDirectory() as folder, _connected(Path(folder)) as connection:
        for count, size in SHAPES:
            parts: Parts = [HEADER, bytes(size)] * count
            separate, together = (_measure(connection, parts, join=one) for one in (False, True))
            print(f"{count:4} x {size:7} bytes: {separate:7.0f} us, joined {together:7.0f} us")


if __name__ == "__main__":
    main()

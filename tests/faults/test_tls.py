"""Odd TLS clients: each costs its own connection only."""

import os
import re
import socket
import ssl
from collections.abc import Iterator

import pytest
from cryptography.x509 import load_pem_x509_certificate

from tests.end_to_end.servers import PATIENCE_SECONDS, Served, started
from tests.faults.raw_requests import CERTIFICATE, PROBE, closing, connect, exchange, open_socket, read_all


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    yield from started("--threads", "1", "--tls-certificate", str(CERTIFICATE))


@pytest.mark.parametrize("kind", ["certificate", "http/2", "tls 1.2", "long name"])
def test_what_a_client_offers_beside_a_handshake_is_ignored(served: Served, kind: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if kind == "certificate":
        context.load_cert_chain(CERTIFICATE)
    elif kind == "http/2":
        context.set_alpn_protocols(["h2"])
    elif kind == "tls 1.2":
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    name = "a." * 126 + "aaa" if kind == "long name" else None
    with context.wrap_socket(open_socket(served), server_hostname=name) as connection:
        connection.sendall(closing(PROBE))
        assert read_all(connection).startswith(b"HTTP/1.1 200 ")


def test_the_end_of_the_certificate_is_a_metric(served: Served) -> None:
    end = load_pem_x509_certificate(CERTIFICATE.read_bytes()).not_valid_after_utc.timestamp()
    body = exchange(served, closing(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")).decode()
    [value] = re.findall(r"^kvasir_tls_certificate_expiry_timestamp_seconds (.+)$", body, re.MULTILINE)
    assert float(value) == end


def test_what_is_no_tls_ends_its_connection_only(served: Served) -> None:
    with open_socket(served) as plain:
        plain.sendall(closing(PROBE))
        assert b"HTTP" not in read_all(plain)
    with connect(served) as connection, socket.socket(fileno=os.dup(connection.fileno())) as raw:
        raw.settimeout(PATIENCE_SECONDS)
        raw.sendall(b"\x17\x03\x03\x00\x20" + b"x" * 32)
        assert b"HTTP" not in read_all(raw)
    assert exchange(served, closing(PROBE)).startswith(b"HTTP/1.1 200 ")
    assert not [line for line in served.lines if line["level"] == "ERROR"]

import logging
import socket
import ssl
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from server.cli.tls import CertificateDates, TlsCertificate

CERTIFICATES = Path(__file__).parent  # self-signed, for tests only

BEGIN = datetime(2026, 3, 1, 12, tzinfo=UTC)


def _write_certificate(path: Path, begin: datetime, end: datetime, comment: str = "") -> None:
    """Write a certificate for 127.0.0.1 that signs itself, and its key before it, to a PEM file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), begin, end)
    key_pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    pem = builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)
    path.write_bytes(key_pem + comment.encode() + b"\n" + pem)


def _install(name: str, path: Path) -> Path:
    """Write a certificate and its key to `path` as a renewal does: as a new file under the old name."""
    new = path.with_suffix(".new")
    new.write_bytes((CERTIFICATES / f"tls_{name}.pem").read_bytes())
    new.replace(path)
    return path


def _name_shown(context: ssl.SSLContext) -> str:
    """Return the name in the certificate that a client receives from `context`."""
    ours, theirs = socket.socketpair()
    received: list[bytes] = []

    def connect() -> None:
        client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
        with client.wrap_socket(theirs) as connection:
            received.append(connection.getpeercert(binary_form=True) or b"")

    thread = threading.Thread(target=connect)
    thread.start()
    with context.wrap_socket(ours, server_side=True):
        thread.join()
    return "new" if b"new" in received[0] else "old"


def test_a_renewed_certificate_is_used_for_new_connections(tmp_path: Path) -> None:
    path = _install("old", tmp_path / "site.pem")
    certificate = TlsCertificate(path, None)
    assert _name_shown(certificate.context) == "old"
    _install("new", path)
    certificate.reload_if_changed()
    assert _name_shown(certificate.context) == "new"


def test_a_key_that_does_not_fit_leaves_the_old_certificate(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    chain, key = _install("old", tmp_path / "chain.pem"), _install("old", tmp_path / "key.pem")
    certificate = TlsCertificate(chain, key)
    _install("new", chain)
    certificate.reload_if_changed()
    assert "the old one stays in use" in caplog.text
    assert _name_shown(certificate.context) == "old"
    _install("new", key)
    certificate.reload_if_changed()
    assert _name_shown(certificate.context) == "new"


@pytest.mark.parametrize(
    ("content", "message"),
    [("encrypted", "the private key is encrypted"), (None, "No such file"), ("", "cannot be used for TLS")],
)
def test_unusable_files_are_errors_with_their_name(tmp_path: Path, content: str | None, message: str) -> None:
    path = tmp_path / "site.pem"
    if content:
        _install(content, path)
    elif content is not None:
        path.write_text(content)
    with pytest.raises(ValueError, match=rf"site\.pem.*{message}"):
        TlsCertificate(path, None)


def test_an_error_names_the_file_and_the_flag_that_mends_it(tmp_path: Path) -> None:
    certificate, end, key = (CERTIFICATES / "tls_old.pem").read_text().partition("-----END CERTIFICATE-----")
    (tmp_path / "only.crt").write_text(certificate + end)
    (tmp_path / "only.key").write_text(key)
    new = _install("new", tmp_path / "new.pem")
    only, only_key, missing = tmp_path / "only.crt", tmp_path / "only.key", tmp_path / "missing.pem"
    for paths, message in (
        ((only, None), "only.crt contains no private key in PEM format; set a file that does with --tls-key"),
        (
            (only_key, only),
            "only.key contains no certificate in PEM format; set a file that does with --tls-certificate",
        ),
        ((only, new), "the private key belongs to another certificate; set the key of this one with --tls-key"),
        ((only, missing), "missing.pem: No such file or directory; set a file that the server can read with --tls-key"),
    ):
        with pytest.raises(ValueError, match=message):
            TlsCertificate(*paths)
    TlsCertificate(only, only_key)


def test_dates_are_those_of_the_first_certificate(tmp_path: Path) -> None:
    path = tmp_path / "site.pem"
    _write_certificate(
        path, BEGIN, BEGIN + timedelta(days=90), comment="Subject: a chain as openssl x509 -text prints it"
    )
    _write_certificate(tmp_path / "issuer.pem", BEGIN, BEGIN + timedelta(days=1))
    path.write_text(path.read_text() + (tmp_path / "issuer.pem").read_text())
    dates = CertificateDates.read(path)
    assert dates == CertificateDates(BEGIN, BEGIN + timedelta(days=90))
    assert dates.fields() == {"valid_from": "2026-03-01T12:00:00Z", "valid_until": "2026-05-30T12:00:00Z"}


@pytest.mark.parametrize("days", [6, 90, 365])
def test_a_certificate_is_a_problem_outside_its_dates_and_near_their_end(days: int) -> None:
    dates = CertificateDates(BEGIN, BEGIN + timedelta(days=days))
    notice = timedelta(days=min(14, days / 5))
    second = timedelta(seconds=1)
    assert dates.problem(BEGIN - second) == "certificate not valid yet; check the clock"
    assert dates.problem(BEGIN) is dates.problem(dates.end - notice) is None
    assert (
        dates.problem(dates.end - notice + second) == dates.problem(dates.end) == "certificate expires soon; renew it"
    )
    assert dates.problem(dates.end + second) == "certificate expired; renew it"


def test_a_certificate_that_expires_is_reported_once_a_kind_and_again_when_it_is_loaded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, now = tmp_path / "site.pem", [BEGIN - timedelta(days=1)]
    _write_certificate(path, BEGIN, BEGIN + timedelta(days=90))
    certificate = TlsCertificate(path, None, lambda: now[0])
    for day in range(90):
        now[0] = BEGIN + timedelta(days=day)
        certificate.check_dates()
    now[0] = BEGIN + timedelta(days=91)
    certificate.check_dates()
    certificate.check_dates()
    assert certificate.expiry_seconds() == (BEGIN + timedelta(days=90)).timestamp()
    _write_certificate(path, BEGIN, BEGIN + timedelta(days=90, hours=1))
    certificate.reload_if_changed()
    _write_certificate(path, BEGIN, BEGIN + timedelta(days=180))
    certificate.reload_if_changed()
    assert certificate.expiry_seconds() == (BEGIN + timedelta(days=180)).timestamp()
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert [(each.message.split(";")[0], getattr(each, "valid_until")) for each in warnings] == [  # noqa: B009
        ("certificate not valid yet", "2026-05-30T12:00:00Z"),
        ("certificate expires soon", "2026-05-30T12:00:00Z"),
        ("certificate expired", "2026-05-30T12:00:00Z"),
        ("certificate expired", "2026-05-30T13:00:00Z"),
    ]

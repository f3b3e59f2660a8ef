import socket
import ssl
import threading
from pathlib import Path

import pytest

from server.cli.tls import TlsCertificate

CERTIFICATES = Path(__file__).parent  # self-signed, for tests only


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


def test_a_file_that_disappears_for_a_moment_leaves_the_old_certificate(tmp_path: Path) -> None:
    path = _install("old", tmp_path / "site.pem")
    certificate = TlsCertificate(path, None)
    path.unlink()
    certificate.reload_if_changed()
    assert _name_shown(certificate.context) == "old"
    _install("new", path)
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

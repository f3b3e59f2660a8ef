"""`kvasir serve`: sockets, models, then the application, imported while the models are loaded."""

import contextlib
import importlib
import logging
import os
import signal
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

from server.cli.listening import bound_sockets, bound_unix_socket
from server.cli.tls import TlsCertificate
from server.operations.log_lines import configure_logging
from server.operations.metrics import Metrics
from server.operations.models import open_engines
from server.operations.settings import Settings, is_loopback, unknown_variables

_log = logging.getLogger("kvasir")

_APPLICATION = "server.cli.draining_server"


def serve(settings: Settings) -> int:
    """Serve until SIGTERM or Ctrl-C. Return the exit code: 0, or 1 if requests were lost.

    Raises `BundleError` or OSError before it listens.
    """
    configure_logging(settings.log_level, settings.log_format)
    # Until models can be compared with their folders; else a reload during the start would end the process.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    for variable, meant in unknown_variables(os.environ).items():
        _log.warning("unknown environment variable", extra={"variable": variable, "similar": meant})
    certificate = None
    if settings.tls_certificate is not None:
        certificate = TlsCertificate(settings.tls_certificate, settings.tls_key)
    if settings.api_keys is None and settings.unix_socket is None and not is_loopback(settings.host):
        _log.warning("API open to every machine that reaches it; see --api-keys", extra={"host": settings.host})
    with contextlib.ExitStack() as stack:
        if settings.unix_socket is None:
            sockets = bound_sockets(settings.host, settings.port)
        else:
            sockets = [bound_unix_socket(settings.unix_socket)]
            stack.callback(settings.unix_socket.unlink, missing_ok=True)
        admin_socket = bound_admin_socket(settings, stack)
        for bound in sockets:
            stack.enter_context(bound)
        _log.info("loading models", extra={"folders": [str(folder) for folder in settings.model]})
        observer = Metrics()
        if certificate is not None:
            observer.watch_certificate(certificate.expiry_seconds)
        engines = open_engines(settings, observer, meanwhile=lambda: importlib.import_module(_APPLICATION))
        for engine in engines:  # the application has closed them unless it could not start
            stack.callback(engine.close)
        stack.enter_context(_temporary_files_in(settings.documents_folder))
        from server.cli.draining_server import run_server

        return run_server(settings, engines, observer, sockets, certificate, admin_socket)


def bound_admin_socket(settings: Settings, stack: contextlib.ExitStack) -> socket.socket | None:
    """Return the socket for administration, closed with the stack, or None."""
    if settings.admin_socket is not None:
        bound = bound_unix_socket(settings.admin_socket)
        settings.admin_socket.chmod(0o600)  # without keys, the owner of the socket is the administrator
        stack.callback(settings.admin_socket.unlink, missing_ok=True)
    elif settings.admin_port is not None:
        bound, *others = bound_sockets(settings.admin_host, settings.admin_port)
        for other in others:
            other.close()
    else:
        return None
    return stack.enter_context(bound)


@contextlib.contextmanager
def _temporary_files_in(folder: Path | None) -> Iterator[None]:
    """Receive uploads into `folder`; None is the system's folder for temporary files."""
    before = tempfile.tempdir
    if folder is not None:
        tempfile.tempdir = str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before

"""nginx and Caddy with the configurations of `deploy/` in front of a server, over HTTP/2."""

import base64
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.architecture.project_files import ROOT, text_of
from tests.end_to_end.servers import Served, gauge, started, until

SITE = "translate.example.org"
PASSWORD_HASH = "$2y$05$dbvKiGQvnC6NUvfnuo1ZI.GNXpqklHQ3blYXtbr82i5FHRe.TMUWK"  # of "secret"
CERTIFICATE = ROOT / "tests" / "server" / "cli" / "tls_old.pem"
FLAGS = ("--allowed-hosts", SITE, "--max-client-documents", "1", "--trusted-proxies", "127.0.0.1")

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")


@dataclass(frozen=True)
class Proxy:
    """A proxy that runs in front of a server."""

    port: int
    server: Served

    def curl(self, path: str, *flags: str, user: str = "reader:secret") -> list[str]:
        """Return the command that requests a path over HTTP/2."""
        address = f"{SITE}:{self.port}"
        command = ["curl", "--silent", "--show-error", "--insecure", "--http2", "--max-time", "60", "--user", user]
        return [*command, "--resolve", f"{address}:127.0.0.1", f"https://{address}{path}", *flags]

    def request(self, path: str, *flags: str, user: str = "reader:secret") -> tuple[str, int, str]:
        """Return the version of HTTP, the status and headers with the body."""
        command = self.curl(path, "--include", "--write-out", "\n%{http_version} %{http_code}", *flags, user=user)
        # Not checked: curl fails if the answer comes before the end of its body, after it has printed the answer.
        answer = subprocess.run(command, check=False, capture_output=True, text=True).stdout
        text, _, last = answer.rpartition("\n")
        version, status = last.split()
        return version, int(status), text


def _body(text: str, **fields: object) -> list[str]:
    body = {"text": text, "source": "en", "target": "de", **fields}
    return ["--header", "Content-Type: application/json", "--data", json.dumps(body)]


@contextmanager
def _nginx(folder: Path, port: int, *upstreams: str) -> Iterator[subprocess.Popen[bytes]]:
    (folder / "password").write_text("reader:{PLAIN}secret\n", encoding="utf-8")
    site = text_of("deploy/nginx.conf")
    for documented, here in {
        "listen 443": f"listen 127.0.0.1:{port}",
        "server 127.0.0.1:8000;": " ".join(f"server {upstream};" for upstream in upstreams),
        "client_header_timeout 10s": "client_header_timeout 1s",
        "/etc/ssl/kvasir/fullchain.pem": str(CERTIFICATE),
        "/etc/ssl/kvasir/privkey.pem": str(CERTIFICATE),
        "/etc/nginx/kvasir.htpasswd": str(folder / "password"),
    }.items():
        assert documented in site
        site = site.replace(documented, here)
    temporary = "".join(
        f"{kind}_temp_path {folder / kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(
        f"daemon off; {user} pid {folder}/pid; error_log {folder}/errors;\nevents {{}}\n"
        f"http {{ access_log off;\n{temporary}{site} }}\n",
        encoding="utf-8",
    )
    with subprocess.Popen(["nginx", "-e", str(folder / "errors"), "-c", str(folder / "nginx.conf")]) as process:
        yield process


@contextmanager
def _caddy(folder: Path, port: int, upstream: str) -> Iterator[subprocess.Popen[bytes]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        http_port = free.getsockname()[1]
    options = f"http_port {http_port}\nhttps_port {port}\nlocal_certs\nskip_install_trust\nadmin off\n"
    site = text_of("deploy/Caddyfile")
    (folder / "Caddyfile").write_text(f"{{\n{options}storage file_system {folder}\n}}\n{site}", encoding="utf-8")
    variables = {"PROXY_PASSWORD_HASH": PASSWORD_HASH, "PROXY_UPSTREAM": upstream, "XDG_CONFIG_HOME": str(folder)}
    command = ["caddy", "run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]
    with subprocess.Popen(command, env=os.environ | variables, stderr=subprocess.DEVNULL) as process:
        yield process


_PROXIES: dict[str, Callable[[Path, int, str], contextlib.AbstractContextManager[subprocess.Popen[bytes]]]] = {
    "nginx": _nginx,
    "caddy": _caddy,
}


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    yield from started(*FLAGS)


@pytest.fixture(scope="module", params=list(_PROXIES))
def proxy(request: pytest.FixtureRequest, server: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder: Path = tmp_path_factory.mktemp(request.param)
    with _PROXIES[request.param](folder, port, server.url.removeprefix("http://")) as process:
        proxy = Proxy(port, server)
        try:
            until(lambda: subprocess.run(proxy.curl("/health/live"), capture_output=True, check=False).returncode == 0)
            yield proxy
        finally:
            process.terminate()
            process.wait()


def test_a_translation_comes_over_http_2(proxy: Proxy) -> None:
    version, status, answer = proxy.request("/v1/translate", *_body("Good morning."))
    assert (version, status) == ("2", 200)
    assert "Guten Morgen." in answer
    assert "server-timing: tokenize" in answer


def test_strangers_reach_neither_the_server_nor_its_metrics(proxy: Proxy) -> None:
    assert proxy.request("/v1/models", user="reader:wrong")[1] == 401
    for path in ("/metrics", "//metrics", "/%6Detrics"):
        assert proxy.request(path, "--path-as-is")[1] == 403


def test_a_stream_arrives_while_it_is_decoded(proxy: Proxy) -> None:
    text = " ".join(f"House {number} of {proxy.port} was empty in the winter of that year." for number in range(1200))
    command = proxy.curl("/v1/translate", "--no-buffer", *_body(text, stream=True))
    with proxy.server.client() as client, subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as stream:
        assert stream.stdout is not None
        first = next(line for line in stream.stdout if line.startswith("data:"))
        num_running = gauge(client, "kvasir_requests_running")
        stream.terminate()
    assert "Haus 0 " in first
    assert num_running > 0


def test_clients_have_limits_of_their_own_and_see_when_to_retry(proxy: Proxy, tmp_path: Path) -> None:
    document = tmp_path / "long.txt"
    document.write_text("\n".join(f"This is line {number} of a long document." for number in range(20_000)))
    upload = ["--form", f"file=@{document}", "--form", "source=en", "--form", "target=de"]
    answers = [
        proxy.request("/v1/documents", *upload),
        proxy.request("/v1/documents", *upload),
        proxy.request("/v1/documents", *upload, "--interface", "127.0.0.2"),
    ]
    for _, _, answer in answers:
        for accepted in re.findall(r'"id":"(\w+)"', answer):
            proxy.request(f"/v1/documents/{accepted}", "--request", "DELETE")
    assert [status for _, status, _ in answers] == [202, 429, 202]
    assert re.search(r"^retry-after: \d+", answers[1][2], re.MULTILINE | re.IGNORECASE)


def test_a_body_over_the_limit_is_rejected_with_its_number(proxy: Proxy, tmp_path: Path) -> None:
    body = tmp_path / "body.json"
    body.write_text(json.dumps({"text": "a" * 4_500_000, "source": "en", "target": "de"}), encoding="utf-8")
    flags = ["--header", "Content-Type: application/json", "--data-binary", f"@{body}"]
    _, status, answer = proxy.request("/v1/translate", *flags)
    assert status == 413
    assert "at most 4000000 bytes" in answer


@pytest.mark.parametrize("flags", [(), ("--header", "Transfer-Encoding: chunked", "--http1.1")])
def test_a_body_over_the_limit_of_the_proxy_is_rejected_in_the_format_of_the_server(
    proxy: Proxy, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    document = tmp_path / "long.txt"
    document.write_bytes(b"a" * (21 << 20))
    upload = ["--form", f"file=@{document}", "--form", "source=en", "--form", "target=de"]
    _, status, answer = proxy.request("/v1/documents", *upload, *flags)
    assert status == 413
    assert re.search(r"^content-type: application/json", answer, re.MULTILINE | re.IGNORECASE)
    error = json.loads(answer[answer.rindex("\n{") :])["error"]
    assert error["code"] in ("body_too_large", "document_too_large")  # of nginx; of the server behind Caddy
    assert "bytes" in error["message"]


@pytest.fixture
def nginx_with_two(tmp_path: Path) -> Iterator[tuple[int, Sequence[Served]]]:
    """Return the port of nginx, and the servers behind it."""
    if shutil.which("nginx") is None:
        pytest.skip("nginx is not installed")
    with contextlib.ExitStack() as stack:
        flags = (*FLAGS, "--threads", "1")
        servers = [stack.enter_context(contextlib.contextmanager(started)(*flags)) for _ in range(2)]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        upstreams = [server.url.removeprefix("http://") for server in servers]
        process = stack.enter_context(_nginx(tmp_path, port, *upstreams))
        stack.callback(process.terminate)
        until(lambda: _listens(port))
        yield port, servers


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _connection(port: int) -> http.client.HTTPSConnection:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return http.client.HTTPSConnection("127.0.0.1", port, timeout=60, context=context)


def test_the_end_of_one_of_two_servers_is_seen_by_no_client_of_the_proxy(
    nginx_with_two: tuple[int, Sequence[Served]],
) -> None:
    port, (ending, _) = nginx_with_two
    statuses: list[int] = []
    is_over = threading.Event()
    credentials = base64.b64encode(b"reader:secret").decode()
    headers = {"Host": SITE, "Authorization": f"Basic {credentials}", "Content-Type": "application/json"}
    body = json.dumps({"text": "Good morning.", "source": "en", "target": "de"})

    def send() -> None:
        with contextlib.closing(_connection(port)) as connection:
            while not is_over.is_set():
                connection.request("POST", "/v1/translate", body, headers)
                answer = connection.getresponse()
                answer.read()
                statuses.append(answer.status)

    clients = [threading.Thread(target=send) for _ in range(8)]
    for client in clients:
        client.start()
    until(lambda: len(statuses) > 100)
    ending.process.send_signal(signal.SIGTERM)
    assert ending.process.wait(60) == 0
    num_before = len(statuses)
    until(lambda: len(statuses) > num_before + 100)
    is_over.set()
    for client in clients:
        client.join(60)
    assert set(statuses) == {200}


def test_a_tls_handshake_that_never_ends_is_closed_by_the_proxy(nginx_with_two: tuple[int, Sequence[Served]]) -> None:
    port, _ = nginx_with_two
    outgoing = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).wrap_bio(
            ssl.MemoryBIO(), outgoing, server_hostname="a." * 126 + "aa"
        ).do_handshake()
    give_up = time.monotonic() + 60
    with socket.create_connection(("127.0.0.1", port), timeout=60) as slow:
        with contextlib.suppress(ConnectionError):
            for byte in outgoing.read():
                slow.sendall(bytes([byte]))
                time.sleep(0.05)
        with contextlib.suppress(ConnectionError):
            assert slow.recv(1000) == b""
    assert time.monotonic() < give_up


def test_the_proxy_passes_on_as_many_requests_of_one_address_as_it_may(
    nginx_with_two: tuple[int, Sequence[Served]],
) -> None:
    port, (server, other) = nginx_with_two
    credentials = base64.b64encode(b"reader:secret").decode()
    body = json.dumps({"text": " ".join(f"House {n} is old." for n in range(200)), "source": "en", "target": "de"})
    headers = {"Host": SITE, "Authorization": f"Basic {credentials}", "Content-Type": "application/json"}
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(contextlib.closing(_connection(port))) for _ in range(80)]
        for connection in connections:
            connection.request("POST", "/v1/translate", body, headers)
        for probed in (server, other):
            with probed.client() as client:
                assert client.get("/health/live").status_code == 200
        statuses = [connection.getresponse().status for connection in connections]
    assert statuses.count(200) >= 64
    assert set(statuses) <= {200, 429}
    assert 429 in statuses

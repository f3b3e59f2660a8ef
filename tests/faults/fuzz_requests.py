"""Random requests over all protocols and content types against a server of its own, with probes among them.

`python -m tests.faults.fuzz_requests --requests 100000` prints the statuses, every response above 499 and the slowest
probes with the requests before them. It exits with 1 if there was a 5xx other than 503 and 504, a connection without an
answer, or a probe too slow.
"""

import argparse
import json
import random
import re
import socket
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from fastapi.routing import APIRoute

from server.http.protocols.registry import PROTOCOLS
from tests.end_to_end.servers import Served, started

_TIMEOUT_SECONDS = 60.0
_MAX_EXAMPLES = 20
_MAX_SLOW, _SLOW_SECONDS = 5, 0.05
_PARAMETER = re.compile(r"\{[^}]*\}")
_ALLOWED_FAILURES = (503, 504)  # the server is starting or stopping; the time limit of the request has passed

_ROUTES = [
    route
    for protocol in PROTOCOLS.values()
    for router in protocol.routers
    for route in router.routes
    if isinstance(route, APIRoute)
]
_OTHER_PATHS = (
    "/translate?api-version=3.0&from=en&to=de", "/translate?from=en&to=de&text=a", "/translate?langpair=en|de&q=a",
    "/breaksentence?api-version=3.0", "/deepl", "/health/live", "/health/ready", "/metrics", "/", "/docs",
    "/openapi.json", "/nothing", "/v3/x",
)  # fmt: skip
_PATHS = (*(_PARAMETER.sub("x", route.path) for route in _ROUTES), *_OTHER_PATHS)
_WRITING_PATHS = tuple(_PARAMETER.sub("x", route.path) for route in _ROUTES if "POST" in (route.methods or ()))
_METHODS = ("POST",) * 6 + ("GET", "GET", "DELETE", "HEAD", "PUT", "OPTIONS", "PATCH", "BREW")
_CONTENT_TYPES = (
    "application/json", "application/json; charset=utf-16", "application/x-www-form-urlencoded", "multipart/form-data",
    "multipart/form-data; boundary=b", "multipart/form-data; boundary=b; charset=utf-7", "text/plain", "",
    "application/json;;;", "application/octet-stream", "multipart/mixed; boundary=b", "\xff",
)  # fmt: skip
_FIELDS = (
    "text", "q", "source", "target", "source_lang", "target_lang", "format", "tag_handling", "glossary", "glossary_id",
    "glossary_ids", "stream", "timeout_seconds", "beam_size", "num_hypotheses", "max_new_tokens", "min_new_tokens",
    "length_penalty", "temperature", "top_k", "top_p", "min_p", "seed", "target_prefix", "required_phrases",
    "suppress_phrases", "suppress_tokens", "return_scores", "return_token_scores", "return_alignments",
    "return_attention", "num_token_alternatives", "alignment_layer", "alignment_heads", "num_beam_groups",
    "diversity_penalty", "patience", "coverage_penalty", "early_stopping", "no_repeat_ngram_size", "max_length_ratio",
    "repetition_penalty", "return_alternatives", "translation", "alternatives", "ignore_tags", "splitting_tags",
    "non_splitting_tags", "split_sentences", "model_type", "formality", "name", "entries", "entries_format", "file",
    "filename", "document_key", "delimiter", "api_key", "unknown", "from", "to", "texts", "text_list", "langpair", "sl",
    "tl", "messages", "model", "params", "dictionaries", "content", "message", "batch", "destination", "inputs",
)  # fmt: skip
_TEXTS = (
    "", " ", "Good morning.", "The house is old; it has {name} and 5 % more.", "a" * 3000, "\0", "\ud800",
    "\U0001f1e9" * 500,
    "a\u0301" * 500, "\ufffc" * 500, "<b>bold</b> text", "<b>" * 300, "&#x110000;", "<a href='", "]]>", "<!DOCTYPE a>",
    "\u202e\u2066x", "de", "en", "auto", "xx-YY", "EN-GB", "html", "xml", "1", "-1", "true", "a\tb\nc\td", "a,b\n\"",
    "../../etc/passwd", "x.docx", "%s%n", "\r\n\r\nGET / HTTP/1.1", "1e999", "𝔘𝔫𝔦", "\uffff", "\n" * 300, "A" * 300,
)  # fmt: skip
_NUMBERS = (0, 1, -1, 2, 5, 8, 0.5, 1e-9, 1e308, -1e308, 2**31, 2**63, 10**30, float("nan"), float("inf"), True, None)


class RequestGrammar:
    """Draws requests as bytes, valid and invalid ones, from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def request(self) -> bytes:
        """Return the bytes of one request."""
        draw = self._random
        path = draw.choice(_WRITING_PATHS) if draw.random() < 0.6 else draw.choice(_PATHS)
        method = draw.choice(_METHODS) if draw.random() < 0.2 else _method_of(path)
        if draw.random() < 0.2:
            path += ("&" if "?" in path else "?") + "&".join(
                f"{draw.choice(_FIELDS)}={draw.choice(('a', '%ff', '1', 'de', ''))}" for _ in range(3)
            )
        content_type = draw.choice(_CONTENT_TYPES[:5]) if draw.random() < 0.7 else draw.choice(_CONTENT_TYPES)
        body = self._body(content_type)
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Connection: close"]
        if content_type:
            lines.append(f"Content-Type: {content_type}")
        if draw.random() < 0.1:
            name = draw.choice(
                ("Cache-Control", "X-Request-ID", "Authorization", "Accept-Encoding", "Origin", "Expect")
            )
            lines.append(f"{name}: {draw.choice(('no-cache', 'a' * 500, 'Bearer x', '*', '100-continue', ''))}")
        if draw.random() < 0.1:
            head = "\r\n".join((*lines, "Transfer-Encoding: chunked", "", "")).encode("latin-1")
            return head + b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in _parts(body)) + b"0\r\n\r\n"
        length = len(body) + (draw.choice((-1, 0, 0, 0)) if body else 0)
        return "\r\n".join((*lines, f"Content-Length: {length}", "", "")).encode("latin-1") + body

    def _body(self, content_type: str) -> bytes:
        draw = self._random
        if draw.random() < 0.05:
            return draw.randbytes(draw.choice((0, 1, 100, 5000)))
        fields = {draw.choice(_FIELDS): self._value(0) for _ in range(draw.randrange(6))}
        if draw.random() < 0.8:  # as an ordinary request, with something else
            fields |= {"text": self._text(), "q": self._text(), "source": "en", "target": "de", "target_lang": "DE"}
        if content_type.startswith("multipart"):
            return b"".join(self._part(name, value) for name, value in fields.items()) + b"--b--\r\n"
        if "urlencoded" in content_type:
            pairs = (f"{name}={value}" for name, value in fields.items())
            return "&".join(pairs).encode("utf-8", "surrogatepass").replace(b" ", b"+")
        body = json.dumps(fields, ensure_ascii=draw.random() < 0.5).encode("utf-8", "surrogatepass")
        if draw.random() < 0.1 and body:
            position = draw.randrange(len(body))
            body = body[:position] + draw.choice((b"", b"\xff", b"[", b"\\", b"\0")) + body[position + 1 :]
        return body

    def _part(self, name: str, value: object) -> bytes:
        file = '; filename="a.txt"' if name == "file" or self._random.random() < 0.1 else ""
        charset = "\r\nContent-Type: text/plain; charset=punycode" if self._random.random() < 0.05 else ""
        head = f'--b\r\nContent-Disposition: form-data; name="{name}"{file}{charset}\r\n\r\n'
        return head.encode() + str(value).encode("utf-8", "surrogatepass") + b"\r\n"

    def _text(self) -> object:
        return self._random.choice(_TEXTS)

    def _value(self, depth: int) -> object:
        draw = self._random
        kind = draw.randrange(10)
        if kind < 4:
            return draw.choice(_TEXTS)
        if kind < 7:
            return draw.choice(_NUMBERS)
        if depth > 2 or kind == 7:
            return draw.choice((True, False))
        if kind == 8:
            return [self._value(depth + 1) for _ in range(draw.choice((0, 1, 3, 50)))]
        return {str(draw.choice(_TEXTS)): self._value(depth + 1) for _ in range(draw.choice((0, 1, 5)))}


def _method_of(path: str) -> str:
    return "POST" if path in _WRITING_PATHS else "GET"


def _parts(body: bytes) -> Sequence[bytes]:
    return [body[begin : begin + 1000] for begin in range(0, len(body), 1000)]


@dataclass(slots=True)
class FuzzReport:
    """Statuses of all requests, examples of failures, and the seconds of each probe."""

    statuses: Counter[int] = field(default_factory=Counter)
    failures: list[tuple[int, bytes]] = field(default_factory=list)
    probe_seconds: list[float] = field(default_factory=list)
    slow_probes: list[tuple[float, list[str]]] = field(default_factory=list)  # with the requests in progress meanwhile

    @property
    def num_failures(self) -> int:
        """Requests with a 5xx that reports a defect, and those without an answer."""
        return sum(count for status, count in self.statuses.items() if _is_failure(status))

    def add(self, status: int, request: bytes) -> None:
        """Count one response; 0 is none."""
        self.statuses[status] += 1
        if _is_failure(status) and len(self.failures) < _MAX_EXAMPLES:
            self.failures.append((status, request))


def _is_failure(status: int) -> bool:
    return status == 0 or (status >= 500 and status not in _ALLOWED_FAILURES)


def fuzz(served: Served, num_requests: int, num_clients: int, seed: int) -> FuzzReport:
    """Send random requests from several threads, with a probe every 50 ms."""
    host, port = served.url.removeprefix("http://").split(":")
    address, report, lock = (host, int(port)), FuzzReport(), threading.Lock()
    is_done = threading.Event()
    recent: deque[str] = deque(maxlen=num_clients * 3)  # the requests that began last

    def send(number: int) -> None:
        grammar = RequestGrammar(seed * 1000 + number)
        for _ in range(num_requests // num_clients):
            request = grammar.request()
            recent.append(_kind_of(request))
            status = _status(address, request)
            with lock:
                report.add(status, request)

    def probe() -> None:
        while not is_done.wait(0.05):
            begun = time.monotonic()
            _status(address, b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            seconds = time.monotonic() - begun
            report.probe_seconds.append(seconds)
            if seconds > _SLOW_SECONDS:
                report.slow_probes.append((round(seconds, 3), list(recent)))

    prober = _thread(probe)
    for thread in [_thread(lambda number=number: send(number)) for number in range(num_clients)]:  # type: ignore[misc]
        thread.join()
    is_done.set()
    prober.join()
    return report


def _kind_of(request: bytes) -> str:
    """Return the request line, the size, and the names of the largest fields."""
    head, _, body = request.partition(b"\r\n\r\n")
    return f"{head.split(b' HTTP')[0].decode('latin-1')[:60]}, {len(request)} bytes, {body[:60]!r}"


def _thread(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def _status(address: tuple[str, int], request: bytes) -> int:
    """Return the final status of the response; 0 for none. A stream is read to its end."""
    received = b""
    try:
        with socket.create_connection(address, timeout=_TIMEOUT_SECONDS) as connection:
            connection.sendall(request)
            while chunk := connection.recv(1 << 16):
                received = (received + chunk)[:4096]
    except (ConnectionResetError, BrokenPipeError, TimeoutError):
        pass  # what was received before counts
    lines = [line for line in received.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]
    statuses = [int(line.split()[1]) for line in lines]
    return next((status for status in statuses if status >= 200), 0)


def main() -> int:
    """Run the fuzzer as a program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--max-probe-seconds", type=float, default=0.1)
    options = parser.parse_args()
    for served in started("--request-timeout-seconds", "30", "--body-timeout-seconds", "3"):
        report = fuzz(served, options.requests, options.clients, options.seed)
        errors = [line for line in served.lines if line.get("level") == "ERROR"]
    slowest = max(report.probe_seconds)
    summary = {
        "requests": report.statuses.total(),
        "statuses": dict(sorted(report.statuses.items())),
        "failures": report.num_failures,
        "slowest_probe_seconds": round(slowest, 3),
        "slow_probes": sorted(report.slow_probes, reverse=True)[:_MAX_SLOW],
        "examples": [f"{status} {request[:1000]!r}" for status, request in report.failures],
        "errors": errors[:_MAX_EXAMPLES],
    }
    sys.stdout.write(json.dumps(summary, indent=2, default=str) + "\n")
    return int(report.num_failures > 0 or slowest > options.max_probe_seconds)


if __name__ == "__main__":
    raise SystemExit(main())

"""Large requests, one after the other, and how long each holds the event loop.

`python -m tests.faults.loop_holds` prints the longest hold with each request, in milliseconds, and exits with 1 if one
is longer than `--max-milliseconds`. `--only WORD` sends the requests whose names contain a word.
"""

import argparse
import sys
import time

import httpx2

from tests.end_to_end.servers import PATIENCE_SECONDS, Served, started
from tests.faults.large_requests import Attack, compatible_attacks, native_attacks, other_attacks

_REPORT_SECONDS = 0.25  # the server reports holds every tenth of a second


def holds(served: Served, attack: Attack) -> tuple[int, float]:
    """Return the status of an attack, and the longest hold of the event loop during it in seconds."""
    time.sleep(_REPORT_SECONDS)
    before = len(served.lines)
    with httpx2.Client(base_url=served.url, timeout=PATIENCE_SECONDS * 2) as client:
        headers = {"Content-Type": attack.content_type}
        try:
            answer = client.request(attack.method, attack.path, content=attack.content, headers=headers)
            status = answer.status_code
            if status == 202:
                _end_document(client, answer.headers["Location"])
        except httpx2.TransportError:
            status = 0
    time.sleep(_REPORT_SECONDS)
    reported = [float(str(line["seconds"])) for line in served.lines[before:] if line.get("message") == "hold"]
    return status, max(reported, default=0.0)


def _end_document(client: httpx2.Client, path: str) -> None:
    """Let the document be read and its first texts be translated, then delete it."""
    give_up = time.monotonic() + 6.0
    while time.monotonic() < give_up and client.get(path).json()["status"] in ("queued", "translating"):
        time.sleep(0.1)
    client.get(f"{path}/content")
    client.delete(path)


def main() -> int:
    """Run the attacks as a program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--max-milliseconds", type=float, default=50.0)
    parser.add_argument("--only", nargs="*", default=[""])
    options = parser.parse_args()
    attacks = [*other_attacks(), *native_attacks(), *compatible_attacks()]
    longest = 0.0
    for served in started("--request-timeout-seconds", "8", module="tests.faults.watched_server"):
        holds(served, Attack("start", "/v1/translate", b'{"text": "Tea."}'))
        for attack in attacks:
            if any(word in attack.name for word in options.only):
                status, seconds = holds(served, attack)
                longest = max(longest, seconds)
                sys.stdout.write(f"{seconds * 1000:7.1f} ms  {status}  {attack.name}\n")
                sys.stdout.flush()
    sys.stdout.write(f"longest hold: {longest * 1000:.1f} ms\n")
    return int(longest * 1000 > options.max_milliseconds)


if __name__ == "__main__":
    raise SystemExit(main())

"""One greedy client beside nine others: its share of the answers of a full server.

`python -m tests.faults.greedy_client` starts a server and ten clients with addresses of their own (127.0.0.2 and so on;
Linux accepts all of 127.0.0.0/8). The first has `--greedy` connections, the others `--polite` each; a connection sends
its next text when it has the answer, and 0.1 s later if it was rejected. It prints the shares, and exits with 1 if that
of the first is above `--max-share`. What the others do not ask for, it may have: with `--polite 4` a fifth, and all
rows of the empty server before their first requests, so that the first two seconds do not count.
"""

import argparse
import asyncio
import json
import random
import sys
import time
from collections import Counter
from urllib.parse import urlsplit

from tests.end_to_end.servers import started

_NUM_CLIENTS = 10
_PAUSE_SECONDS = 0.1
_WARM_UP_SECONDS = 2.0
_WORDS = ("house", "old", "river", "we", "buy", "the", "small", "garden", "today", "never", "is", "was", "green", "tea")


async def _send(
    address: tuple[str, int], client: int, seed: int, begin: float, end: float, statuses: Counter[tuple[int, int]]
) -> None:
    """Send texts over one connection until the end, and count the statuses of the client from `begin` on."""
    chance = random.Random(seed)
    reader, writer = await asyncio.open_connection(*address, local_addr=(f"127.0.0.{client + 2}", 0))
    while time.monotonic() < end:
        text = " ".join(chance.choices(_WORDS, k=chance.randint(5, 25))).capitalize() + "."
        body = json.dumps({"text": text, "beam_size": 4}).encode()
        head = "POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answered = (await reader.readuntil(b"\r\n\r\n")).lower()
        await reader.readexactly(int(answered.partition(b"content-length: ")[2].partition(b"\r\n")[0]))
        status = int(answered.split(b" ", 2)[1])
        if time.monotonic() >= begin:
            statuses[client, status] += 1
        if status != 200:
            await asyncio.sleep(_PAUSE_SECONDS)
    writer.close()


async def _load(address: tuple[str, int], greedy: int, polite: int, seconds: float) -> Counter[tuple[int, int]]:
    """Return how often each client received each status."""
    statuses: Counter[tuple[int, int]] = Counter()
    begin = time.monotonic() + _WARM_UP_SECONDS
    connections = [0] * greedy + [client for client in range(1, _NUM_CLIENTS) for _ in range(polite)]
    await asyncio.gather(
        *(_send(address, client, seed, begin, begin + seconds, statuses) for seed, client in enumerate(connections))
    )
    return statuses


def main() -> int:
    """Run the attack as a program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--greedy", type=int, default=60)
    parser.add_argument("--polite", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=12.0)
    parser.add_argument("--max-share", type=float, default=0.12)
    options = parser.parse_args()
    statuses: Counter[tuple[int, int]] = Counter()
    for served in started("--cache-sentences", "0"):
        url = urlsplit(served.url)
        address = (str(url.hostname), int(url.port or 0))
        statuses = asyncio.run(_load(address, options.greedy, options.polite, options.seconds))
    answered = [statuses[client, 200] for client in range(_NUM_CLIENTS)]
    shares = [count / sum(answered) for count in answered]
    rejected = Counter[bool]()
    for (client, status), count in statuses.items():
        rejected[client == 0] += count * (status != 200)
    sys.stdout.write(
        f"{sum(answered)} answers: {shares[0]:.3f} to the greedy client, {min(shares[1:]):.3f} to "
        f"{max(shares[1:]):.3f} to each of the others; rejected: {rejected[True]} of the greedy client, "
        f"{rejected[False]} of the others\n"
    )
    return int(shares[0] > options.max_share)


if __name__ == "__main__":
    raise SystemExit(main())

"""Time of rejections and of probes while more clients send requests than a server can answer.

    python -m benchmarks.service.refusals [--clients 400] [--pause 0.5] [--seconds 20]

Each client sends one sentence of 3 to 24 words, waits for the answer and then for `--pause` seconds. Sentences of one
length would all end in the same step, and their answers delay each other. The clients share the processors with the
server: "generator late" is the delay of a timer in their process, which is part of every other time. The last line has
the processor time of the server's event loop and of the clients.
"""

import asyncio
import json
import os
import random
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import psutil
import typer

from benchmarks.machine import describe_machine
from benchmarks.paths import DEFAULT_BUNDLE, ROOT
from benchmarks.service.server_process import run_server
from bundle.loading import load_bundle

_PROBE = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
_PROBE_SECONDS = 0.05
_WARM_UP_SECONDS = 1.0
_TIMER_SECONDS = 0.01
_WORDS = "the old man sat at the window of this house and looked at the rain that fell on all the gardens of our town"


def main(
    bundle: Annotated[Path, typer.Argument()] = DEFAULT_BUNDLE,
    clients: Annotated[int, typer.Option(min=1, help="clients, each with a connection")] = 400,
    pause: Annotated[float, typer.Option(min=0, help="seconds between two requests of a client")] = 0.5,
    seconds: Annotated[float, typer.Option(min=0.1, help="duration")] = 20.0,
) -> None:
    """Print a table of answers, rejections and probes."""
    machine = describe_machine()
    print(f"{machine.cpu}, load before {machine.load_before}\n")
    print(refusal_table(bundle.resolve(), clients, pause, seconds))


def refusal_table(bundle: Path, num_clients: int, pause: float, seconds: float) -> str:
    """Return a table of response times by status, and of probes."""
    config = load_bundle(bundle).config
    source, target = config.source_languages[0], config.target_languages[0]
    command = ["kvasir.py", "serve", "--model", str(bundle), "--cache-sentences", "0", "--log-level", "warning"]
    with run_server(ROOT, lambda port: [*command, "--port", str(port)]) as (port, pid):
        before = _processor_seconds(pid)
        found = asyncio.run(_load(port, (source, target), num_clients, pause, seconds))
        used = [after - begun for after, begun in zip(_processor_seconds(pid), before, strict=True)]
    rows = ["| response | number | p50, ms | p99, ms | maximum, ms |", "|---|---|---|---|---|"]
    for name, times in sorted(found.items()):
        times.sort()
        cells = (times[len(times) // 2], times[int(len(times) * 0.99)], times[-1])
        rows.append(f"| {name} | {len(times)} | {' | '.join(f'{each * 1000:.1f}' for each in cells)} |")
    shares = [each / (seconds + _WARM_UP_SECONDS) for each in used]
    rows.append(f"\nProcessors used: {shares[0]:.2f} by the event loop, {shares[1]:.2f} by the clients.")
    return "\n".join(rows)


def _processor_seconds(pid: int) -> tuple[float, float]:
    """Return the processor time of the main thread of the server, and of this process."""
    loop = next(thread for thread in psutil.Process(pid).threads() if thread.id == pid)
    own = os.times()
    return loop.user_time + loop.system_time, own.user + own.system


async def _load(
    port: int, languages: tuple[str, str], num_clients: int, pause: float, seconds: float
) -> Mapping[str, list[float]]:
    begin = time.monotonic() + _WARM_UP_SECONDS
    end = begin + seconds
    found: dict[str, list[float]] = {}

    async def send(name: str, number: int, wait: float) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.sleep(wait * number / max(num_clients, 1))  # clients do not send all at once
        count = 0
        while (sent := time.monotonic()) < end:
            writer.write(_PROBE if name else _sentence(languages, number * 10_000 + count))
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = next(line for line in head.split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(int(length.partition(b":")[2]))
            if sent >= begin:
                status = head.split(b" ", 2)[1].decode()
                found.setdefault(name or f"status {status}", []).append(time.monotonic() - sent)
            count += 1
            await asyncio.sleep(wait)
        writer.close()

    async def measure_lateness() -> None:
        while (due := time.monotonic() + _TIMER_SECONDS) < end:
            await asyncio.sleep(_TIMER_SECONDS)
            if due >= begin:
                found.setdefault("generator late", []).append(max(time.monotonic() - due, 0.0))

    await asyncio.gather(
        measure_lateness(),
        send("probe", 0, _PROBE_SECONDS),
        *(send("", number, pause) for number in range(num_clients)),
    )
    return found


def _sentence(languages: tuple[str, str], seed: int) -> bytes:
    words, chance = _WORDS.split(), random.Random(seed)  # noqa: S311 - no secret
    text = " ".join(chance.choices(words, k=chance.randint(3, len(words)))).capitalize() + "."
    body = json.dumps({"text": text, "source": languages[0], "target": languages[1]}).encode()
    head = "POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


if __name__ == "__main__":
    typer.run(main)

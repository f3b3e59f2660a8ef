"""Lists what a release consists of, and tries its wheel: `make release` runs this after the build of `dist/`.

`python deploy/release.py dist PYTHON...` writes `image-files.txt`, the files of the image with their SHA-256, and
`SHA256SUMS`. Then it installs the wheel into an empty environment of each Python, outside the checkout, and serves,
translates, exports and measures with it. pip needs a package index.
"""

import hashlib
import json
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PORT = 8137
URL = f"http://127.0.0.1:{PORT}"


def image_files() -> list[str]:
    """Return the committed files that `Dockerfile` copies from the checkout."""
    copied = [
        words
        for line in (ROOT / "Dockerfile").read_text("utf-8").splitlines()
        if (words := line.split())[:1] == ["COPY"]
    ]
    sources = [source for words in copied if not words[1].startswith("--from") for source in words[1:-1]]
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *sources], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return sorted(filter(None, listed.stdout.split("\0")))


def _sums(folder: Path, names: list[str]) -> str:
    """Return lines in the format of `sha256sum`."""
    return "".join(f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n" for name in names)


def try_wheel(wheel: Path, python: str, folder: Path) -> None:
    """Use the wheel in an empty environment. Raises an error if a command fails or answers something else."""
    environment = folder / "environment"
    _run(folder, python, "-m", "venv", environment)
    install = (environment / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    pinned = (*install, "-c", ROOT / "constraints.txt")
    kvasir = environment / "bin" / "kvasir"
    _run(folder, *pinned, wheel)
    _serve_and_translate(kvasir, folder)
    _run(folder, *pinned, f"{wheel}[export,loadtest]")
    model = next(environment.glob("lib/python3*/site-packages/models/en-de"))
    _run(folder, kvasir, "export", "--to", "checkpoint", model, "checkpoint")
    _run(folder, kvasir, "export", "checkpoint", "bundle")
    with _server(kvasir, folder, "--model", "bundle"):
        load = ("loadtest", "--url", URL, "--scenario", "smoke", "--max-error-ratio", "0")
        _run(folder, kvasir, *load, accepted=(0, 3))  # 3: the generator was late, on a busy machine
    _run(folder, *install, "--upgrade", "--upgrade-strategy", "eager", wheel)
    _serve_and_translate(kvasir, folder)  # with the newest versions that the wheel allows


def _run(folder: Path, *command: str | Path, accepted: Collection[int] = (0,)) -> None:
    """Run a command in `folder`; its exit code must be accepted."""
    ran = subprocess.run(list(map(str, command)), cwd=folder, check=False)
    assert ran.returncode in accepted, f"{command} ended with {ran.returncode}"


def _serve_and_translate(kvasir: Path, folder: Path) -> None:
    translated = subprocess.check_output([kvasir, "translate"], input="Good morning.\n", cwd=folder, text=True)
    assert translated == "Guten Morgen.\n", translated
    with _server(kvasir, folder):
        answer = json.load(urllib.request.urlopen(f"{URL}/translate", b"q=Good+morning.&source=en&target=de"))
    assert answer["translatedText"] == "Guten Morgen.", answer


@contextmanager
def _server(kvasir: Path, folder: Path, *flags: str) -> Iterator[None]:
    """Run `kvasir serve` until the block ends; wait until it is ready."""
    command = [str(kvasir), "serve", "--port", str(PORT), "--log-level", "warning", *flags]
    server = subprocess.Popen(command, cwd=folder)
    try:
        while server.poll() is None:
            try:
                urllib.request.urlopen(f"{URL}/health/ready").close()
                break
            except urllib.error.URLError:
                time.sleep(0.5)
        yield
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    """Write the lists, and try the wheel with each Python of the command line."""
    dist = Path(sys.argv[1]).resolve()
    (dist / "image-files.txt").write_text(_sums(ROOT, image_files()), encoding="utf-8")
    names = sorted(path.name for path in dist.iterdir() if path.name != "SHA256SUMS")
    (dist / "SHA256SUMS").write_text(_sums(dist, names), encoding="utf-8")
    [wheel] = dist.glob("*.whl")
    for python in sys.argv[2:]:
        with tempfile.TemporaryDirectory() as folder:
            try_wheel(wheel, python, Path(folder))
        print(f"{wheel.name} serves, translates, exports and measures with {python}")


if __name__ == "__main__":
    main()

"""The image: packages with hashes, one file for both devices, no open server without a decision."""

import re

import pytest

from deploy import pin_hashes
from tests.architecture.project_files import text_of

_PIN = re.compile(r"^([a-z0-9-]+)==(\S+) \\$")
_HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}( \\)?$")


def _pins(file: str) -> dict[str, str]:
    """Return the versions by name. Every line must be a comment, a pin or a hash."""
    pins: dict[str, str] = {}
    for line in text_of(f"deploy/{file}").splitlines():
        if found := _PIN.match(line):
            pins[found[1]] = found[2]
        else:
            assert line.startswith("#") or _HASH.match(line), line
    return pins


def _constraints() -> dict[str, str]:
    lines = [line.split("==") for line in text_of("constraints.txt").splitlines() if not line.startswith("#")]
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in lines}


def test_the_image_has_the_versions_that_the_tests_have() -> None:
    constraints = _constraints()
    pins = _pins("requirements.txt")
    assert {name: constraints.get(name) for name in pins} == pins, "run `make constraints`"


@pytest.mark.parametrize("file", list(pin_hashes.required()))
def test_every_requirement_has_a_hash(file: str) -> None:
    pins = _pins(file)
    for requirement in pin_hashes.required()[file]:
        found = re.match(r"[A-Za-z0-9._-]+", requirement)
        assert found is not None
        assert re.sub(r"[-_.]+", "-", found[0]).lower() in pins, f"{requirement}: run `make constraints`"
    assert "torch" not in pins


def test_the_image_can_send_traces() -> None:
    pins = _pins("requirements.txt")
    assert {"opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"} <= set(pins)


def test_two_machines_with_different_versions_are_an_error() -> None:
    both = pin_hashes.written([{"a==1": {"x"}}, {"a==1": {"y"}}])
    assert both.endswith("a==1 \\\n    --hash=sha256:x \\\n    --hash=sha256:y\n")
    with pytest.raises(ValueError, match="different versions of a"):
        pin_hashes.written([{"a==1": {"x"}}, {"a==2": {"y"}}])


def test_pip_checks_the_hashes_and_the_image_requires_keys() -> None:
    image = text_of("Dockerfile")
    installs = re.findall(r"/bin/pip install (.*?)(?: \\|;|$)", image, re.MULTILINE)
    # The last two: CUDA, whose wheels have gigabytes, and the wheel that was built from the context.
    assert [flags.split()[0] for flags in installs] == ["--require-hashes", "--require-hashes", "-c", "--no-deps"]
    assert "KVASIR_REQUIRE_KEYS=true" in image
    for files in re.findall(r"^COPY (?!--from)(.+) \S+$", image, re.MULTILINE):
        for name in files.split():
            assert f"!{name}" in text_of(".dockerignore").splitlines(), f"{name} is not in the build context"

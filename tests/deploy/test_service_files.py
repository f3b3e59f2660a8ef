"""Files of deploy/ that the page about deployment copies."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from server.operations.settings import Settings, unknown_variables
from tests.architecture.project_files import ROOT, text_of

UNIT = "deploy/kvasir.service"
PROGRAM = "/opt/kvasir/bin/kvasir"


def test_the_compose_file_builds_the_image_and_drains_before_it_is_killed() -> None:
    service: dict[str, Any] = yaml.safe_load(text_of("deploy/compose.yaml"))["services"]["kvasir"]
    assert (ROOT / "deploy" / service["build"] / "Dockerfile").is_file()
    assert not unknown_variables(service["environment"])
    assert [port.split(":")[0] for port in service["ports"]] == ["127.0.0.1"]
    assert int(service["stop_grace_period"].removesuffix("s")) > _default("drain_timeout_seconds")


def test_the_unit_waits_for_the_drain() -> None:
    [timeout] = [line for line in text_of(UNIT).splitlines() if line.startswith("TimeoutStopSec=")]
    assert int(timeout.partition("=")[2]) > _default("drain_timeout_seconds")


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("systemd-analyze is not installed")
    unit = tmp_path / "kvasir.service"
    unit.write_text(text_of(UNIT).replace(PROGRAM, sys.executable), encoding="utf-8")
    verified = subprocess.run([verify, "verify", str(unit)], capture_output=True, text=True, check=False)
    assert (verified.returncode, verified.stderr) == (0, "")


def test_the_proxies_allow_the_time_and_the_size_that_the_server_does() -> None:
    site = text_of("deploy/nginx.conf")
    assert f"client_max_body_size {Settings.model_fields['max_file_megabytes'].default}m;" in site
    assert f"at most {Settings.model_fields['max_file_megabytes'].default << 20} bytes" in site
    [timeout] = [line.split()[1] for line in site.splitlines() if line.strip().startswith("proxy_read_timeout")]
    assert int(timeout.removesuffix("s;")) > _default("request_timeout_seconds")


def _default(setting: str) -> float:
    return float(Settings.model_fields[setting].default)

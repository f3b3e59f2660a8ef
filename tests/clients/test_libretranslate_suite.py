"""LibreTranslate's own tests of its API, all of them, against this server."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.clients.environments import libretranslate_tests

NUM_TESTS = 14


def test_all_of_them_pass(url: str, tmp_path: Path) -> None:
    tests = libretranslate_tests(tmp_path)
    shutil.copy(Path(__file__).with_name("libretranslate_client.py"), tests / "conftest.py")
    (tests / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:locust", "-p", "no:cacheprovider", str(tests)],
        cwd=tests,
        env=os.environ | {"KVASIR_URL": url},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert re.search(rf"^{NUM_TESTS} passed in ", ran.stdout, re.MULTILINE), ran.stdout

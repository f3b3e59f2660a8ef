"""`kvasir` whose process may reach this machine only: an attempt to reach another one is an error in its log."""

import os
import runpy

from tests.loopback_only import block_the_network

if __name__ == "__main__":
    os.environ.pop("HF_HUB_OFFLINE", None)  # set for tests; an operator does not set it
    block_the_network()
    runpy.run_module("kvasir", run_name="__main__")

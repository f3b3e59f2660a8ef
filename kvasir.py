"""The command `kvasir`; its commands are in kvasir_commands.

Each engine process imports the main program once more, which is why this one imports nothing before it runs.
"""

import os
import sys
from pathlib import Path

# NumPy's threads, one for each processor, would be started by each process and wait; its products are small here.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# For plugins, pydantic would read the metadata of every installed package.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

# `python -m` puts the working directory first: a `server.py` there would replace the package of that name.
if __name__ == "__main__" and not sys.flags.safe_path and Path(sys.path[0]) != Path(__file__).parent:
    del sys.path[0]


def main() -> None:
    """Run the command line."""
    from kvasir_commands import app

    app(prog_name="kvasir")


if __name__ == "__main__":
    main()

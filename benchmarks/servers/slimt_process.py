"""slimt in a process of its own: one batch a line in, its answers in a line out.

    PYTHON slimt_process.py MODEL VOCABULARY SHORTLIST WORKERS

It runs in an interpreter with slimt 0.1.0 and without this project. `translate` keeps the interpreter's lock until all
answers are there, so a service in the same process could not take requests meanwhile. The package asks the network when
it is imported; its extension module does not.
"""

import importlib.util
import json
import sys
import sysconfig
from pathlib import Path

ENCODER_LAYERS, DECODER_LAYERS, HEADS = 6, 2, 8  # of Firefox's models


def main() -> None:
    """Answer batches of sentences until the input ends."""
    (library,) = Path(sysconfig.get_paths()["platlib"]).glob("slimt/_slimt*.so")
    found = importlib.util.spec_from_file_location("_slimt", library)
    assert found is not None
    assert found.loader is not None
    slimt = importlib.util.module_from_spec(found)
    found.loader.exec_module(slimt)
    model, vocabulary, shortlist, workers = sys.argv[1:]
    config = slimt.Config()
    config.encoder_layers, config.decoder_layers, config.num_heads = ENCODER_LAYERS, DECODER_LAYERS, HEADS
    config.split_mode = "paragraph"  # a line is a sentence
    loaded = slimt.Model(config, slimt.Package(model=model, vocabulary=vocabulary, shortlist=shortlist))
    service = slimt.Service(workers=int(workers), cache_size=0)
    for line in sys.stdin:
        answers = service.translate(loaded, json.loads(line))
        print(json.dumps([answer.target.text for answer in answers]), flush=True)


if __name__ == "__main__":
    main()

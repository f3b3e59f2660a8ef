"""Share of sentences with equal tokens from a float16 bundle and from a float32 bundle on the CPU.

python -m benchmarks.gpu.equality FLOAT16_BUNDLE FLOAT32_BUNDLE [--device cuda] [--limit 500] [--beam-size 1]
"""

import argparse
from pathlib import Path

from benchmarks.gpu.measuring import open_memory
from benchmarks.in_process import InProcessEngine
from benchmarks.paths import SENTENCES
from benchmarks.workloads import read_lines, target_language
from bundle.loading import Bundle, load_bundle
from server.engine.runners.device.runner import DeviceRunner
from server.engine.runners.device.sessions import DeviceSessions
from server.interface.request import SentenceParams, TokenIds
from server.text.tokenizers.registry import open_tokenizer


def share_of_equal(
    half: Bundle, reference: Bundle, sources: list[TokenIds], params: SentenceParams, device: str, max_rows: int = 64
) -> float:
    """Return the share of sentences whose best hypotheses have equal tokens."""
    runner = DeviceRunner(DeviceSessions.open(half, open_memory(device)), max_rows, 4096)
    ours = InProcessEngine.over(runner, half).decode(sources, params)
    theirs = InProcessEngine(reference, max_rows=max_rows).decode(sources, params)
    same = sum(
        mine.hypotheses[0].token_ids == other.hypotheses[0].token_ids for mine, other in zip(ours, theirs, strict=True)
    )
    return same / len(sources)


def main() -> None:
    """Compare, and print the share."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu.equality", description=__doc__.splitlines()[0])
    parser.add_argument("half", type=Path)
    parser.add_argument("reference", type=Path)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--sentences", type=Path, default=SENTENCES, help="file with one sentence per line")
    parser.add_argument("--limit", type=int, default=500)
    parser.add_argument("--beam-size", type=int, default=1)
    parser.add_argument("--target", help="target language of bundles that have several")
    options = parser.parse_args()
    half, reference = load_bundle(options.half), load_bundle(options.reference)
    tokenizer = open_tokenizer(half)
    lines = read_lines(options.sentences, options.limit)
    language = target_language(half, options.target)
    sources = [tokenizer.encode(line, language) for line in lines if line.strip()]
    params = SentenceParams(beam_size=options.beam_size, max_new_tokens=half.config.shapes.max_target_tokens)
    share = share_of_equal(half, reference, sources, params, options.device)
    print(f"{share:.2%} of {len(sources)} sentences have equal tokens, beam size {options.beam_size}")


if __name__ == "__main__":
    main()

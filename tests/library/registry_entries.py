"""Entries of registries in Mozilla's formats, and the files that they name."""

import hashlib
import sys

from bundle.shortlist import Shortlist

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

CONTENTS = {
    "model.ende.intgemm.alphas.bin": b"weights" * 1000,
    "vocab.ende.spm": b"pieces" * 100,
    "lex.50.50.ende.s2t.bin": Shortlist.of_lists(10, [[1]] * 20).to_bytes(),
}
KINDS = ("model", "vocab", "lexicalShortlist")


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def entry(tier: str, *, release: str = "Release", folder: str = "models") -> dict[str, object]:
    """Return an entry of `models.json` as db/updater.py of mozilla/translations writes it."""
    files: dict[str, dict[str, object]] = {
        kind: {"path": f"{folder}/{tier}/{name}.gz"} for kind, name in zip(KINDS, CONTENTS, strict=True)
    }
    files["model"] |= measured(CONTENTS["model.ende.intgemm.alphas.bin"])
    return {
        "architecture": tier,
        "releaseStatus": release,
        "sourceLanguage": "en",
        "targetLanguage": "de",
        "files": files,
        "modelStatistics": {"parameters": 31248966},
        "metrics": {"flores200-plus": {"bleu": 40.0, "chrf": 66.1, "comet22": 0.8651}},
    }


def measured(content: bytes) -> dict[str, object]:
    return {"uncompressedSize": len(content), "uncompressedHash": sha256(content)}


def record(name: str, kind: str, version: str, **changes: object) -> dict[str, object]:
    """Return a record of Remote Settings."""
    content = CONTENTS[name]
    return {
        "name": name,
        "sourceLanguage": "en",
        "targetLanguage": "de",
        "architecture": "tiny",
        "version": version,
        "fileType": kind,
        "filter_expression": "",
        "attachment": {
            "filename": name,
            "location": f"main-workspace/translations-models/{name}",
            "hash": sha256(content),
            "size": len(content),
            "mimetype": "application/octet-stream",
        },
    } | changes


def packed(content: bytes) -> bytes:
    """Return content as Firefox downloads it."""
    return zstd.compress(content)


def packed_record(name: str, kind: str, version: str) -> dict[str, object]:
    """Return a record of the collection translations-models-v2, whose attachments are packed."""
    content = CONTENTS[name]
    compressed = packed(content)
    attachment = {
        "filename": f"{name}.zst",
        "location": f"main/translations-models-v2/{name}.zst",
        "hash": sha256(compressed),
        "size": len(compressed),
        "mimetype": "application/zstd",
    }
    measured = {"decompressedSize": len(content), "decompressedHash": sha256(content)}
    return record(name, kind, version, attachment=attachment, **measured)

"""Names that `kvasir pull` and `kvasir serve` accept: a path, a URL, a language pair or a model of the hub."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

from library.opus_mt import opus_mt_model, opus_mt_targets

Kind = Literal["path", "url", "hub"]

HUB_HOSTS: Final = frozenset({"huggingface.co", "www.huggingface.co", "hf.co"})
_LANGUAGE: Final = r"[a-z]{2,3}(?:[-_](?i:hans|hant|latn|cyrl))?"
PAIR: Final = re.compile(rf"({_LANGUAGE})-({_LANGUAGE})")
_HUB_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_MAX_LISTED: Final = 40


@dataclass(frozen=True, slots=True)
class ModelName:
    """A model by the name of its source: `text` is a path, a URL or `organisation/model`."""

    kind: Kind
    text: str

    @property
    def short(self) -> str:
        """Return the last part, without the extension of an archive: the name of the model in the API."""
        last = urlsplit(self.text).path if self.kind == "url" else self.text
        if self.kind == "path":
            last = os.path.abspath(last)  # noqa: PTH100 - `.` has a name, and a link keeps its own
        return re.sub(r"(\.tar\.gz|\.tgz|\.tar|\.zip|\.argosmodel)$", "", last.rstrip("/").rpartition("/")[2])


def language_tag(written: str) -> str:
    """Return a language of a pair or a registry as a tag: "zh-Hant" for "zh_hant"."""
    language, _, script = written.replace("_", "-").partition("-")
    return f"{language}-{script.title()}" if script else language


def parse_name(name: str) -> ModelName:
    """Return the model that a name stands for. A path that exists precedes a pair and a name of the hub.

    Raises ValueError for a pair without a known model, and for any other text.
    """
    if name.startswith(("http://", "https://")):
        address = urlsplit(name)
        path = address.path.strip("/").removesuffix("/tree/main")  # the page of its files
        if address.hostname in HUB_HOSTS and _HUB_NAME.fullmatch(path):
            return ModelName("hub", path)
        return ModelName("url", name)
    path_name = Path(os.path.expanduser(name))  # noqa: PTH111 - which raises RuntimeError for unknown users
    if name and path_name.exists():
        return ModelName("path", str(path_name))
    if found := PAIR.fullmatch(name):
        hub_name = opus_mt_model(found[1], found[2])
        if hub_name is None:
            raise ValueError(f"no model is known for {name}; {_alternatives(found[1])}")
        return ModelName("hub", hub_name)
    if _HUB_NAME.fullmatch(name):
        return ModelName("hub", name)
    raise ValueError(
        "a model is a folder, a file, a URL, a name of the hub (Helsinki-NLP/opus-mt-en-fr) or a language pair "
        f"(en-fr). Given: {name}, which does not exist"
    )


def _alternatives(source: str) -> str:
    targets = opus_mt_targets(source)
    listed = f"available from {source}: {' '.join(targets[:_MAX_LISTED])}; " if targets else ""
    return f"{listed}name a model of the hub instead, such as facebook/nllb-200-distilled-600M"

"""Settings of the server: each is a flag of `kvasir serve`, an environment variable and a row of `docs/settings.md`."""

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from server.documents.input.limits import MEGABYTE, FileLimits
from server.documents.job_store import StoreOptions
from server.interface.decoding_options import MAX_BEAM_SIZE
from server.operations.cpu_count import usable_cpus
from server.translation.limits import TranslationLimits
from server.workers.sentence_cache import DEFAULT_MAX_SENTENCES

ENVIRONMENT_PREFIX = "KVASIR_"
_READ_ELSEWHERE = ("KERNELS",)  # by kernels/library.py
DEFAULT_MODEL = Path(__file__).resolve().parents[2] / "models" / "en-de"

LogLevel = Literal["debug", "info", "warning", "error"]
Device = Literal["cpu", "cuda"]


class Settings(BaseSettings):
    """Read once, at the start: a flag wins over its environment variable, that over the default.

    The variable of --max-rows is KVASIR_MAX_ROWS, and so on. Lists are written with commas in the environment and by
    repeating the flag on the command line.
    """

    model_config = SettingsConfigDict(
        env_prefix=ENVIRONMENT_PREFIX,
        frozen=True,
        extra="forbid",
        cli_kebab_case=True,
        cli_avoid_json=True,
        protected_namespaces=(),
        validate_default=True,
    )

    model: Annotated[
        list[Path],
        NoDecode,
        Field(min_length=1, description="folders of the bundles to serve, or folders that hold such folders"),
    ] = [DEFAULT_MODEL]
    pivot: Annotated[
        str,
        Field(
            max_length=64,
            description="language through which pairs without a model of their own are translated, where both legs "
            "have one; empty: no such pairs",
        ),
    ] = "en"
    detect_languages: Annotated[
        list[str],
        NoDecode,
        Field(description="languages that texts are expected in where none is named; unset: those the models read"),
    ] = []
    host: Annotated[str, Field(min_length=1, description="address to listen on")] = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535, description="TCP port to listen on; 0 takes any free one")] = 8000
    glossary_file: Annotated[
        Path | None,
        Field(
            description="SQLite file of stored glossaries, made where there is none; unset: they end with the server"
        ),
    ] = None
    device: Annotated[
        Device,
        Field(description="where models run: cpu, or cuda (an NVIDIA GPU; needs the `gpu` extra and float16 bundles)"),
    ] = "cpu"
    threads: Annotated[
        int,
        Field(ge=1, le=1024, description="CPU threads of all models together, shared out evenly; each has one or more"),
    ] = usable_cpus()
    replicas: Annotated[
        int | None,
        Field(
            ge=1,
            le=1024,
            description="engines a model runs in; unset: one for each thread, fastest for small models; on cuda one",
        ),
    ] = None
    engine_processes: Annotated[
        bool | None,
        Field(
            description="engines in processes of their own instead of threads: more sentences a second, the more so "
            "the more engines, and each has a copy of its model; unset: on cpu, for models below 256 megabytes"
        ),
    ] = None
    max_rows: Annotated[
        int,
        Field(ge=MAX_BEAM_SIZE, le=1024, description="sentences (with beam search: beams) a replica decodes at once"),
    ] = 32
    max_waiting_requests: Annotated[
        int, Field(ge=1, le=1_000_000, description="sentences that may wait for rows before a request gets 429")
    ] = 2048
    max_queue_seconds: Annotated[
        float,
        Field(
            gt=0,
            le=3600,
            description="wait for rows that a sentence may expect; once waits have been longer for a moment, a request "
            "gets 429 at once instead of a late answer",
        ),
    ] = 0.05
    max_encoder_tokens: Annotated[
        int,
        Field(
            ge=16,
            le=1_000_000,
            description="source tokens a replica encodes at once; more is faster, and delays those being decoded",
        ),
    ] = 512
    cache_sentences: Annotated[
        int,
        Field(
            ge=0,
            le=10_000_000,
            description="translated sentences that a model keeps for whoever asks the same; 0 keeps none, and decodes "
            "identical sentences in flight one by one",
        ),
    ] = DEFAULT_MAX_SENTENCES
    max_body_bytes: Annotated[
        int, Field(ge=1024, le=1_000_000_000, description="bytes of a request's body; more gets 413")
    ] = 4_000_000
    max_text_characters: Annotated[
        int, Field(ge=1, le=100_000_000, description="characters of all texts of a request; more gets 422")
    ] = 100_000
    max_texts: Annotated[int, Field(ge=1, le=1_000_000, description="texts of a request; more gets 422")] = 1000
    max_beam_size: Annotated[
        int, Field(ge=1, le=MAX_BEAM_SIZE, description="largest beam_size a request may ask for")
    ] = MAX_BEAM_SIZE
    default_beam_size: Annotated[
        int,
        Field(
            ge=1,
            le=MAX_BEAM_SIZE,
            description="beam_size of a request that names none; 1 is greedy: faster, less exact",
        ),
    ] = 4
    request_timeout_seconds: Annotated[
        float, Field(gt=0, le=3600, description="longest time for an answer, and the default; then 504")
    ] = 60.0
    max_file_megabytes: Annotated[
        int, Field(ge=1, le=1000, description="megabytes of a document as it is sent; more gets 413")
    ] = 20
    max_uncompressed_megabytes: Annotated[
        int, Field(ge=1, le=10_000, description="megabytes of all files in a document (docx, epub) unpacked")
    ] = 200
    max_part_megabytes: Annotated[
        int,
        Field(ge=1, le=1000, description="megabytes of a document parsed at once; takes some ten times that in memory"),
    ] = 32
    max_documents: Annotated[
        int, Field(ge=1, le=100_000, description="documents waiting, in work and kept; more gets 429")
    ] = 100
    max_running_documents: Annotated[int, Field(ge=1, le=64, description="documents translated at once")] = 2
    document_lifetime_seconds: Annotated[
        float, Field(gt=0, le=604_800, description="time that a translated document is kept")
    ] = 3600.0
    documents_folder: Annotated[
        Path | None, Field(description="folder for documents while they are kept; unset: the system's temporary one")
    ] = None
    drain_timeout_seconds: Annotated[
        float, Field(ge=0, le=3600, description="time for running requests to finish after SIGTERM")
    ] = 30.0
    heartbeat_limit_seconds: Annotated[
        float, Field(ge=2, le=3600, description="silence of an engine after which /health/live and /ready answer 503")
    ] = 30.0
    log_level: Annotated[LogLevel, Field(description="least severe log lines written: debug, info, warning, error")] = (
        "info"
    )
    cors_origins: Annotated[
        list[str], NoDecode, Field(description="origins whose pages may call the API from a browser; none by default")
    ] = []

    @field_validator("model", "cors_origins", "detect_languages", mode="before")
    @classmethod
    def _split_commas(cls, value: object) -> object:
        return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if self.replicas is not None and self.replicas > self.threads:
            raise ValueError(f"replicas is {self.replicas}, but threads is {self.threads}: each replica takes a thread")
        if self.engine_processes and self.device != "cpu":
            raise ValueError(f"engine_processes is true, but device is {self.device}: engines on a GPU are threads")
        if self.default_beam_size > self.max_beam_size:
            raise ValueError(
                f"default_beam_size is {self.default_beam_size}, but max_beam_size is {self.max_beam_size}"
            )
        return self

    def shares(self, num_models: int) -> tuple[int, int]:
        """Engines of each of so many models, and CPU threads of each engine; what does not divide is rounded up."""
        threads = -(-self.threads // num_models)
        replicas = min(self.replicas or (threads if self.device == "cpu" else 1), threads)
        return replicas, threads // replicas

    @property
    def limits(self) -> TranslationLimits:
        """What one request may ask for."""
        return TranslationLimits(
            max_texts=self.max_texts,
            max_text_characters=self.max_text_characters,
            max_beam_size=self.max_beam_size,
            default_beam_size=self.default_beam_size,
            max_timeout_seconds=self.request_timeout_seconds,
        )

    @property
    def document_options(self) -> StoreOptions:
        """How many documents there may be, how large, and for how long."""
        limits = FileLimits(
            max_file_bytes=self.max_file_megabytes * MEGABYTE,
            max_uncompressed_bytes=self.max_uncompressed_megabytes * MEGABYTE,
            max_part_bytes=self.max_part_megabytes * MEGABYTE,
        )
        return StoreOptions(
            limits=limits,
            max_documents=self.max_documents,
            max_running=self.max_running_documents,
            lifetime_seconds=self.document_lifetime_seconds,
            folder=self.documents_folder,
        )


def settings_from_flags(flags: Sequence[str]) -> Settings:
    """Settings from the flags of `kvasir serve` and the environment.

    Prints and exits for `--help` (0) and for flags there are not (2); raises pydantic's `ValidationError`.
    """
    # mypy takes the parameters of a model for its fields; these two belong to the constructor of BaseSettings.
    sources: dict[str, Any] = {"_cli_parse_args": list(flags), "_cli_prog_name": "kvasir serve"}
    return Settings(**sources)


def settings_table() -> str:
    """The settings as a Markdown table: flag, environment variable, default, bounds, description."""
    lines = ["| flag | environment variable | default | range | what |", "|---|---|---|---|---|"]
    for name, field in Settings.model_fields.items():
        flag = f"`--{name.replace('_', '-')}`"
        variable = f"`{ENVIRONMENT_PREFIX}{name.upper()}`"
        lines.append(f"| {flag} | {variable} | {_default(name)} | {_range(field.metadata)} | {field.description} |")
    return "\n".join(lines)


def _default(name: str) -> str:
    if name == "threads":
        return "usable processors"
    value = Settings.model_fields[name].default
    if name == "model":
        return "`models/en-de`"
    return "unset" if value in (None, []) else f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def _range(constraints: Sequence[object]) -> str:
    lower = next((f"from {c.ge}" for c in constraints if hasattr(c, "ge")), "")
    lower = lower or next((f"above {c.gt}" for c in constraints if hasattr(c, "gt")), "")
    upper = next((f"to {c.le}" for c in constraints if hasattr(c, "le")), "")
    return f"{lower} {upper}".strip()


def unknown_variables(environment: Iterable[str]) -> dict[str, str | None]:
    """Variables that look like settings and are none, each with the setting's that was meant, where one is similar."""
    known = [*(name.upper() for name in Settings.model_fields), *_READ_ELSEWHERE]
    named = {name: name.upper().removeprefix(ENVIRONMENT_PREFIX) for name in sorted(environment)}
    unknown = {name: end for name, end in named.items() if end != name.upper() and end not in known}
    return {
        name: next((ENVIRONMENT_PREFIX + near for near in difflib.get_close_matches(end, known, 1)), None)
        for name, end in unknown.items()
    }

"""Merging of one server's runs, minutes apart, into one run folder for reports."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from loadtest.results.records import Record, RecordWriter
from loadtest.results.run_folder import GeneratorInfo, RunFolder, ServerInfo, StageInfo


def merged(runs: Sequence[tuple[str, RunFolder]], folder: Path, label: str) -> RunFolder:
    """Return one run with all stages of at least one run, on the clock of the first.

    The name of each run precedes the names of its stages, which must then be unique. Raises `BadRunFolder`.
    """
    folder.mkdir(parents=True)
    together = RunFolder(folder)
    infos = [run.info() for _, run in runs]
    began = datetime.fromisoformat(infos[0].started_at)
    stages: list[StageInfo] = []
    with RecordWriter(together.records_file) as writer:
        for (name, run), info in zip(runs, infos, strict=True):
            later = (datetime.fromisoformat(info.started_at) - began).total_seconds()
            stages += [_later(replace(stage, name=f"{name}, {stage.name}"), later) for stage in info.stages]
            writer.write([_record_later(record, f"{name}, {record.stage}", later) for record in run.records()])
    assert len({stage.name for stage in stages}) == len(stages), "two stages with the same name"
    cpu_seconds = [info.server.cpu_seconds for info in infos]
    together.write_info(
        replace(
            infos[0],
            label=label,
            knee=None,
            stages=tuple(stages),
            generator=GeneratorInfo(
                cpu_seconds=sum(info.generator.cpu_seconds for info in infos),
                wall_seconds=sum(info.generator.wall_seconds for info in infos),
                num_processes=max(info.generator.num_processes for info in infos),
                nice=max(info.generator.nice for info in infos),
            ),
            server=ServerInfo(
                models=infos[0].server.models,
                cpu_seconds=None if None in cpu_seconds else sum(seconds or 0.0 for seconds in cpu_seconds),
                resident_bytes_before=infos[0].server.resident_bytes_before,
                resident_bytes_after=infos[-1].server.resident_bytes_after,
            ),
        )
    )
    return together


def _later(stage: StageInfo, seconds: float) -> StageInfo:
    return replace(
        stage,
        started=stage.started + seconds,
        warm_up_ended=stage.warm_up_ended + seconds,
        sending_ended=stage.sending_ended + seconds,
        drained=stage.drained + seconds,
    )


def _record_later(record: Record, stage: str, seconds: float) -> Record:
    return replace(
        record,
        stage=stage,
        scheduled=record.scheduled + seconds,
        sent=record.sent + seconds,
        first_event=None if record.first_event is None else record.first_event + seconds,
        finished=None if record.finished is None else record.finished + seconds,
    )

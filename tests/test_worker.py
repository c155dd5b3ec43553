"""What a worker's log says of a scheduler that has gone."""

import inspect
import logging
import sys

import pytest
from distributed import worker as dask_worker

from bnnviz.engine import worker


@pytest.mark.parametrize(
    ("sentence", "traced"), [(f"{worker._SILENT_SCHEDULER}.", False), ("Something else happened.", True)]
)
def test_a_heartbeat_that_nobody_hears_is_a_sentence(sentence: str, traced: bool) -> None:
    try:
        raise OSError("closed")
    except OSError:
        record = logging.LogRecord("distributed.worker", logging.ERROR, "", 0, sentence, (), sys.exc_info())
    assert worker._in_a_sentence(record)
    assert bool(record.exc_info) is traced


def test_it_is_what_dask_says() -> None:
    assert worker._SILENT_SCHEDULER in inspect.getsource(dask_worker.Worker.heartbeat)
    assert dask_worker.logger.name == "distributed.worker"

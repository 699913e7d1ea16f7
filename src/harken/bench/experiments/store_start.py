"""A worker whose index lies in an object store: when it is ready, with an empty cache and with a warm one."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from harken.bench.apart import run_apart
from harken.bench.measuring import Bench, Figure, Result
from harken.durable import MANIFEST
from harken.engine import Engine
from harken.errors import HarkenError
from harken.spark.storage import folder_at, machine_cache
from harken.spark.storage.cache import FOLDER
from harken.workloads import workload

MORE = 2.0
"""Asked for: seconds that an empty cache may cost."""

_SERVER = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""


def run(bench: Bench) -> Result:
    """Fresh processes that open the same part: on disk, from a store, and from a store again."""
    size = bench.pick(20_000, 6_000_000)
    disk, cold, warm = list[float](), list[float](), list[float]()
    with tempfile.TemporaryDirectory(prefix="harken-") as temporary, _server() as (address, options):
        here = Path(temporary)
        with bench.progress.step(f"saving {size:,} subscriptions"):
            _save(here / "parts" / "part", size)
            stored = folder_at(f"{address}/parts", options)
            stored.upload_folder("part", here / "parts" / "part", last=MANIFEST)
        bytes_of_part = sum(each.bytes for each in stored.files())
        with bench.progress.step("starting workers", bench.repeats) as tell:
            for number in range(bench.repeats):
                cache = {FOLDER: str(here / f"cache-{number}")}
                disk.append(_ready(str(here / "parts"), {}, bytes_of_part, cache))
                cold.append(_ready(stored.address, options, bytes_of_part, cache))
                warm.append(_ready(stored.address, options, bytes_of_part, cache))
                tell(number + 1)
    extra = tuple(one - other for one, other in zip(cold, disk, strict=True))
    return Result(
        "A worker with its index in an object store (W0)",
        {
            "subscriptions": f"{size:,}",
            "bytes": f"{bytes_of_part:,}",
            "store": "moto's S3 server, on this machine",
        },
        [
            Figure("from local disk", "s", tuple(disk), lower_is_better=True),
            Figure("from the store, cache empty", "s", tuple(cold), lower_is_better=True),
            Figure("from the store, cache warm", "s", tuple(warm), lower_is_better=True),
            Figure("an empty cache costs", "s", extra, bench.target(MORE), lower_is_better=True),
        ],
        notes=[
            "Ready: a fresh process has loaded Harken and its kernels, has the part on its disk and mapped with "
            "its checksums verified, and has matched a first batch. The server shares the two cores."
        ],
    )


def ready_after(address: str, options: dict[str, Any], size: int) -> float:
    """Seconds until this process has matched a first batch; to be called in a fresh process."""
    begin = time.perf_counter()
    engine = machine_cache().tree(folder_at(address, options), "part", size, Engine.load)
    engine.match_batch(workload("w0").events(20_000))
    return time.perf_counter() - begin


def _ready(address: str, options: dict[str, Any], size: int, environment: dict[str, str]) -> float:
    return cast("float", run_apart(ready_after, address, options, size, environment=environment).result)


def _save(path: Path, size: int) -> None:
    engine = Engine("dynamic", keep_text=False)
    for table in workload("w0").subscriptions(size):
        engine.subscribe_many(table)
    engine.save(path)


@contextmanager
def _server() -> Iterator[tuple[str, dict[str, Any]]]:
    """An S3 server in a process of its own: the address of a bucket, and what leads there."""
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        port = process.stdout.readline().strip()
        if not port:
            raise HarkenError(f"no S3 server could be started: {process.communicate()[1].strip()[-300:]}")
        options = {
            "endpoint": f"http://127.0.0.1:{port}",
            "access_key_id": "key",
            "secret_access_key": "secret",
            "region": "us-east-1",
            "virtual_hosted_style_request": "false",
            "allow_http": "true",
        }
        _make_bucket(options["endpoint"])
        yield "s3://harken", json.loads(json.dumps(options))
    finally:
        process.kill()
        process.communicate()


def _make_bucket(endpoint: str) -> None:
    from urllib.request import Request, urlopen

    with urlopen(Request(f"{endpoint}/harken", method="PUT")) as answer:  # a loopback address
        answer.read()

"""A saved engine: a folder with a manifest and the subscriptions, written beside and moved into place."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from harken.errors import IndexFormatError
from harken.language import to_text
from harken.model.limits import Limits
from harken.model.schema import Schema
from harken.model.subscriptions import Subscription
from harken.normal.compiled import MOMENT, id_array

FORMAT = "harken-engine"
VERSION = 1
_MANIFEST, _SUBSCRIPTIONS = "manifest.json", "subscriptions.parquet"


@dataclass(frozen=True, slots=True)
class SavedEngine:
    """What a folder holds: how the engine was set up, and its subscriptions as a table of texts."""

    algorithm: str
    schema: Schema | None
    limits: Limits
    subscriptions: pa.Table

    @classmethod
    def of(
        cls, algorithm: str, schema: Schema | None, limits: Limits, subscriptions: Iterable[Subscription]
    ) -> SavedEngine:
        """An engine about to be saved."""
        return cls(algorithm, schema, limits, _table(subscriptions))


def save(engine: SavedEngine, folder: Path) -> None:
    """Write an engine into a folder; until all is written, what was there before stays."""
    if folder.exists() and not _is_replaceable(folder):
        raise IndexFormatError(f"{folder} exists and is not a saved engine; choose another place")
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    fresh.chmod(0o755)  # made for its maker only; what is saved may be shared
    try:
        pq.write_table(engine.subscriptions, fresh / _SUBSCRIPTIONS, write_page_checksum=True)
        (fresh / _MANIFEST).write_text(json.dumps(_manifest(engine), indent=2) + "\n", encoding="utf-8")
        _move_into_place(fresh, folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def read(folder: Path) -> SavedEngine:
    """What `save` wrote."""
    try:
        manifest = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
        if manifest.get("format") != FORMAT or manifest.get("version") != VERSION:
            raise IndexFormatError(f"{folder} was saved in another format or by another version of Harken")
        schema = None if manifest["schema"] is None else Schema(manifest["schema"])
        table = pq.read_table(folder / _SUBSCRIPTIONS, page_checksum_verification=True)
        table.validate(full=True)
        if table.num_rows != manifest["subscriptions"]:
            raise IndexFormatError(
                f"{folder} should hold {manifest['subscriptions']:,} subscriptions, found {table.num_rows:,}"
            )
        return SavedEngine(str(manifest["algorithm"]), schema, _limits(manifest["limits"]), table)
    except IndexFormatError:
        raise
    except FileNotFoundError as error:
        missing = Path(error.filename or _SUBSCRIPTIONS).name  # Arrow does not say which
        raise IndexFormatError(f"{folder} is not a saved engine: {missing} is missing") from None
    except (
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        RecursionError,
        pa.ArrowException,
        OSError,
    ) as error:
        raise IndexFormatError(f"{folder} is damaged: {error}") from error


def _limits(saved: dict[str, object]) -> Limits:
    for name, limit in saved.items():
        if type(limit) is not int:
            raise TypeError(f"the limit {name} is {limit!r}, not a number")
    return Limits(**saved)  # type: ignore[arg-type]  # all ints; unknown names are refused


def _manifest(engine: SavedEngine) -> dict[str, object]:
    schema = engine.schema
    return {
        "format": FORMAT,
        "version": VERSION,
        "algorithm": engine.algorithm,
        "schema": None if schema is None else {name: declared.value for name, declared in schema.items()},
        "limits": asdict(engine.limits),
        "subscriptions": engine.subscriptions.num_rows,
    }


def _table(subscriptions: Iterable[Subscription]) -> pa.Table:
    rows = list(subscriptions)
    return pa.table(
        {
            "id": id_array([row.id for row in rows]),
            "expression": pa.array([to_text(row.expression) for row in rows], pa.string()),
            "owner": pa.array([row.owner for row in rows], pa.string()),
            "valid_from": pa.array([row.validity.valid_from for row in rows], MOMENT),
            "valid_until": pa.array([row.validity.valid_until for row in rows], MOMENT),
        }
    )


def _is_replaceable(folder: Path) -> bool:
    return folder.is_dir() and ((folder / _MANIFEST).is_file() or not any(folder.iterdir()))


def _move_into_place(fresh: Path, folder: Path) -> None:
    if not folder.exists():
        fresh.rename(folder)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{folder.name}-old-", dir=folder.parent))
    folder.rename(old / "replaced")
    fresh.rename(folder)
    shutil.rmtree(old)

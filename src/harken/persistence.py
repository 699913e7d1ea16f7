"""A saved engine: a folder with a manifest and what the engine held, written beside and moved into place.

There are two forms. An **index** is saved as it lies in memory and mapped back; a matcher that holds expressions
is saved as **texts**, a table that is read like any other. Another algorithm takes over what either form holds.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from harken.errors import BulkLoadError, IndexFormatError, SubscriptionError, UnknownAlgorithmError
from harken.intake import admit
from harken.language import to_text
from harken.matching import registry
from harken.matching.contract import Incoming, Matcher, Saveable, Slots
from harken.matching.identity import Identities
from harken.matching.saving import Fact, State
from harken.model.limits import Limits
from harken.model.schema import Schema
from harken.model.subscriptions import ALWAYS, Validity
from harken.normal.compiled import MOMENT

FORMAT = "harken-engine"
VERSION = 3
READABLE = (1, VERSION)
"""Version 1 knew texts only, in the same form; in version 2 ids lay otherwise."""

INDEX, TEXTS = "index", "texts"

PORTION = 20_000
"""Subscriptions that move to another algorithm together."""

Manifest: TypeAlias = dict[str, Fact]

_MANIFEST, _SUBSCRIPTIONS = "manifest.json", "subscriptions.parquet"
_BOUNDS = ("valid_from", "valid_until")
_DAMAGE = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    OverflowError,
    RecursionError,
    pa.ArrowException,
    OSError,
)
"""What comes of reading a file that is not as it was written."""


@dataclass(slots=True)
class SavedEngine:
    """All that makes an engine: how it was set up, and what it holds. Owners and validity are by slot."""

    algorithm: str
    options: dict[str, object]
    schema: Schema | None
    limits: Limits
    matcher: Matcher
    identities: Identities
    owners: dict[int, str]
    validity: dict[int, Validity]


def save(engine: SavedEngine, folder: Path) -> None:
    """Write an engine into a folder; until all is written, what was there before stays."""
    if folder.exists() and not _is_replaceable(folder):
        raise IndexFormatError(f"{folder} exists and is not a saved engine; choose another place")
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    fresh.chmod(0o755)  # made for its maker only; what is saved may be shared
    try:
        manifest = _manifest(engine) | _write(engine, fresh)
        (fresh / _MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
        _move_into_place(fresh, folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def load(folder: Path, algorithm: str | None, *, verify: bool) -> SavedEngine:
    """What `save` wrote, with the algorithm named or else the one it was saved with."""
    with _damage_named(folder):
        manifest = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
        if manifest.get("format") != FORMAT or manifest.get("version") not in READABLE:
            raise IndexFormatError(f"{folder} was saved in another format or by another version of Harken")
        engine = _empty(manifest, algorithm)
        read = {TEXTS: _read_texts, INDEX: _read_index}[manifest.get("form", TEXTS)]
        read(engine, folder, manifest, verify)
        expected, found = manifest["subscriptions"], len(engine.identities)
        if found != expected:
            raise IndexFormatError(f"{folder} should hold {expected:,} subscriptions, found {found:,}")
        return engine


def _empty(manifest: Manifest, algorithm: str | None) -> SavedEngine:
    """An engine that is set up as a manifest says, or with another algorithm, and holds nothing yet."""
    saved_with = str(manifest["algorithm"])
    known = saved_with if algorithm is None else algorithm
    options = dict(manifest.get("options", {})) if known == saved_with else {}
    schema = None if manifest["schema"] is None else Schema(manifest["schema"])
    limits, matcher = _limits(manifest["limits"]), registry.create(known, **options)
    return SavedEngine(known, options, schema, limits, matcher, Identities(), {}, {})


@contextmanager
def _damage_named(folder: Path) -> Iterator[None]:
    """Say of what cannot be read which folder it is in."""
    try:
        yield
    except (IndexFormatError, UnknownAlgorithmError):
        raise
    except FileNotFoundError as error:
        missing = Path(error.filename or _SUBSCRIPTIONS).name  # Arrow does not say which
        raise IndexFormatError(f"{folder} is not a saved engine: {missing} is missing") from None
    except SubscriptionError as error:
        raise IndexFormatError(f"{folder} is damaged: {error.message}") from error
    except _DAMAGE as error:
        raise IndexFormatError(f"{folder} is damaged: {error}") from error


def _limits(saved: dict[str, object]) -> Limits:
    for name, limit in saved.items():
        if type(limit) is not int:
            raise TypeError(f"the limit {name} is {limit!r}, not a number")
    return Limits(**saved)  # type: ignore[arg-type]  # all ints; unknown names are refused


def _manifest(engine: SavedEngine) -> Manifest:
    schema = engine.schema
    return {
        "format": FORMAT,
        "version": VERSION,
        "algorithm": engine.algorithm,
        "options": engine.options,
        "schema": None if schema is None else {name: declared.value for name, declared in schema.items()},
        "limits": asdict(engine.limits),
        "subscriptions": len(engine.identities),
    }


def _write(engine: SavedEngine, folder: Path) -> Manifest:
    """Write what an engine holds; what the manifest has to say of that."""
    index = engine.matcher.state() if isinstance(engine.matcher, Saveable) else None
    if index is None:
        pq.write_table(_texts(engine), folder / _SUBSCRIPTIONS, write_page_checksum=True)
        return {"form": TEXTS}
    special = np.array(sorted(engine.owners.keys() | engine.validity.keys()), np.int64)
    about = State({}, {}, {"about": _about(engine, special)})
    state = State.of_parts({INDEX: index, "identities": engine.identities.state(), "subscriptions": about})
    picked = str(getattr(engine.matcher, "picked", engine.algorithm))
    return {"form": INDEX, "picked": picked, "files": state.write(folder)}


# ---------------------------------------------------------------- texts


def _texts(engine: SavedEngine) -> pa.Table:
    slots = engine.identities.slots()
    expressions = pa.array([to_text(engine.matcher.expression(slot)) for slot in slots.tolist()], pa.string())
    about = _about(engine, slots)
    return about.set_column(0, "id", engine.identities.id_array(slots)).add_column(1, "expression", expressions)


def _read_texts(engine: SavedEngine, folder: Path, manifest: Manifest, verify: bool) -> None:
    table = pq.read_table(folder / _SUBSCRIPTIONS, page_checksum_verification=verify)
    table.validate(full=True)
    # What was taken in as a tree, or is known in its normal form, may be larger once written as a text.
    unbounded = dict.fromkeys(("max_length", "max_regexes", "max_work"), sys.maxsize)
    written = replace(engine.limits, max_depth=max(engine.limits.max_depth, 4), **unbounded)
    admission = admit(table, engine.identities, engine.schema, written, replace=False)
    if admission.rejects:
        raise BulkLoadError(admission.rejects)
    slots = engine.identities.admit(admission.ids)
    engine.matcher.add(slots, admission.incoming)
    engine.owners = {int(slots[at]): owner for at, owner in admission.owners.items()}
    engine.validity = {int(slots[at]): validity for at, validity in admission.validity.items()}


# ---------------------------------------------------------------- the index as it lies


def _about(engine: SavedEngine, slots: Slots) -> pa.Table:
    """What is known of subscriptions besides their ids and expressions."""
    listed = slots.tolist()
    bounds = [engine.validity.get(slot, ALWAYS) for slot in listed]
    return pa.table(
        {
            "slot": pa.array(listed, pa.int64()),
            "owner": pa.array([engine.owners.get(slot) for slot in listed], pa.string()),
            **{name: pa.array([getattr(each, name) for each in bounds], MOMENT) for name in _BOUNDS},
        }
    )


def _read_index(engine: SavedEngine, folder: Path, manifest: Manifest, verify: bool) -> None:
    state = State.read(folder, manifest["files"], verify=verify)
    engine.identities.restore(state.part("identities"))
    _know_again(engine, state.part("subscriptions").table("about"))
    if engine.algorithm == manifest["algorithm"]:
        _restore(engine.matcher, state)
        return
    saved = registry.create(manifest["algorithm"], **manifest["options"])
    _restore(saved, state)
    slots = engine.identities.slots()
    for start in range(0, len(slots), PORTION):
        portion = slots[start : start + PORTION]
        engine.matcher.add(portion, Incoming.of([saved.expression(slot) for slot in portion.tolist()]))


def _restore(matcher: Matcher, state: State) -> None:
    if not isinstance(matcher, Saveable):
        raise TypeError(f"{type(matcher).__name__} has no index to be restored")
    matcher.restore(state.part(INDEX))


def _know_again(engine: SavedEngine, about: pa.Table) -> None:
    slots, owners, starts, ends = (about.column(name).to_pylist() for name in ("slot", "owner", *_BOUNDS))
    engine.owners = {slot: owner for slot, owner in zip(slots, owners, strict=True) if owner is not None}
    bounded = zip(slots, map(Validity, starts, ends), strict=True)
    engine.validity = {slot: validity for slot, validity in bounded if not validity.is_always}


# ---------------------------------------------------------------- the folder


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

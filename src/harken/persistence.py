"""A saved engine: a folder with a manifest and what the engine held, replaced as a whole (durable.py).

There are two forms. An **index** is saved as it lies in memory and mapped back; a matcher that holds expressions
is saved as **texts**, a table that is read like any other. Another algorithm takes over what either form holds.

A folder is data: whatever is in it, loading gives an engine that works, or IndexFormatError. So nothing is taken
for granted that a kernel, or Python, would stumble over later.
"""

from __future__ import annotations

import inspect
import json
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import UnionType
from typing import Any, TypeAlias, get_args, get_origin, get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from harken import durable
from harken.durable import MANIFEST
from harken.errors import BulkLoadError, HarkenError, IndexFormatError, UnknownAlgorithmError
from harken.intake import admit
from harken.language import to_text
from harken.matching import registry
from harken.matching.contract import Incoming, Matcher, Saveable, Slots
from harken.matching.identities import Identities
from harken.matching.saving import DAMAGE, Fact, State, is_file_name
from harken.model.limits import DEFAULT_LIMITS, Limits
from harken.model.schema import Schema
from harken.model.subscriptions import ALWAYS, Validity
from harken.model.values import SPATIAL_KINDS, Type
from harken.normal.compiled import MOMENT
from harken.written import Written, expression_of

FORMAT = "harken-engine"
VERSION = 4
READABLE = (1, 3, VERSION)
"""Up to version 3 the files lay in the folder itself, and texts in Parquet; in version 2 ids lay otherwise."""

INDEX, TEXTS = "index", "texts"
PREDICATES = ".predicates.table.predicates"
"""How the table of the distinct predicates of an index is called in the end, whatever the algorithm."""

PORTION = 20_000
"""Subscriptions that move to another algorithm together."""

Manifest: TypeAlias = dict[str, Fact]

_PARQUET = "subscriptions.parquet"
_ABOUT = pa.schema([("slot", pa.int64()), ("owner", pa.string()), ("valid_from", MOMENT), ("valid_until", MOMENT)])
_BOUNDS = _ABOUT.names[2:]

MOST_WORK, MOST_FACTOR = 20_000_000, 4_096
"""Steps that reading one saved text may take, and for each of its characters, whatever its folder allows."""

MOST_CLAUSES, MOST_CLAUSES_OF_ONE = 1 << 20, 1 << 16
"""Clauses that saved texts may have, shared by all, and one of them, whatever their folder allows: but one may
always have those of the default limits, and as many as saved texts have characters on average."""

MOST_CHARACTERS = 1 << 30
"""Of all texts in Parquet."""

MOST_ROWS_PER_BYTE = 8
"""Subscriptions that a byte of Parquet can stand for: their ids differ."""


@dataclass(slots=True)
class SavedEngine:
    """All that makes an engine: how it was set up, and what it holds. Owners and validity are by slot."""

    algorithm: str
    options: dict[str, object]
    schema: Schema | None
    limits: Limits
    matcher: Matcher
    identities: Identities
    owners: dict[int, str] = field(default_factory=dict)
    validity: dict[int, Validity] = field(default_factory=dict)
    written: Written | None = None
    """What was written, by slot; None if that is not kept."""


def save(engine: SavedEngine, folder: Path) -> None:
    """Write an engine into a folder, to last; whatever happens meanwhile, it holds what it held or all of this."""
    if folder.exists() and not durable.is_kept(folder, FORMAT):
        raise IndexFormatError(f"{folder} exists and is not a saved engine; choose another place")
    durable.replace_contents(folder, lambda fresh: _manifest(engine) | _write(engine, fresh), _files_beside)


def _files_beside(manifest: Mapping[str, object]) -> set[str]:
    """The files of an engine that lie beside its manifest, as they did up to version 3."""
    is_older = manifest.get(durable.GENERATION) is None
    named = manifest.get("files" if is_older else durable.BESIDE)
    files = named if isinstance(named, dict | list) else ()
    known = {name for name in files if isinstance(name, str) and (is_file_name(name) or name == _PARQUET)}
    return known | {_PARQUET} if is_older else known


def load(folder: Path, algorithm: str | None, *, verify: bool) -> SavedEngine:
    """What `save` wrote, with the algorithm named or else the one it was saved with."""
    while True:
        with _damage_named(folder):
            manifest = _read_manifest(folder)
        try:
            with _damage_named(folder):
                return _load(folder, manifest, algorithm, verify)
        except IndexFormatError:
            # Somebody may have saved another engine here meanwhile, and removed the files of this one.
            if _is_still(folder, manifest):
                raise


def _load(folder: Path, manifest: Manifest, algorithm: str | None, verify: bool) -> SavedEngine:
    if manifest.get("format") != FORMAT or manifest.get("version") not in READABLE:
        raise IndexFormatError(f"{folder} was saved in another format or by another version of Harken")
    engine = _empty(manifest, algorithm)
    read = {TEXTS: _read_texts, INDEX: _read_index}[manifest.get("form", TEXTS)]
    read(engine, durable.contents_of(folder, manifest), manifest, verify)
    expected, found = manifest["subscriptions"], len(engine.identities)
    if found != expected:
        raise IndexFormatError(f"{folder} should hold {expected:,} subscriptions, found {found:,}")
    return engine


def _read_manifest(folder: Path) -> Manifest:
    path = folder / MANIFEST
    if not stat.S_ISREG(path.lstat().st_mode):
        raise ValueError(f"{MANIFEST} is no file")
    manifest = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(manifest, dict):
        raise TypeError(f"{MANIFEST} holds a {type(manifest).__name__}")
    return manifest


def _is_still(folder: Path, manifest: Manifest) -> bool:
    try:
        return _read_manifest(folder) == manifest
    except DAMAGE:
        return True


def _empty(manifest: Manifest, algorithm: str | None) -> SavedEngine:
    """An engine that is set up as a manifest says, or with another algorithm, and holds nothing yet."""
    saved_with = manifest["algorithm"]
    if not isinstance(saved_with, str):
        raise TypeError(f"the algorithm is {saved_with!r}")
    known = saved_with if algorithm is None else algorithm
    options = dict(manifest.get("options", {})) if known == saved_with else {}
    schema = None if manifest["schema"] is None else Schema(manifest["schema"])
    limits, matcher = _limits(manifest["limits"]), _matcher(known, options)
    keep_text = manifest.get("keep_text", True)
    if type(keep_text) is not bool:
        raise TypeError(f"keep_text is {keep_text!r}")
    written = Written() if keep_text else None
    return SavedEngine(known, options, schema, limits, matcher, Identities(), written=written)


def _matcher(algorithm: str, options: Mapping[str, object]) -> Matcher:
    """A new matcher; TypeError if an option is not of the type that it takes."""
    matcher = registry.create(algorithm, **options)
    constructor = type(matcher).__init__
    wanted = get_type_hints(constructor)
    for name, value in options.items():
        if name not in inspect.signature(constructor).parameters or not isinstance(
            value, (*_classes(wanted[name]), int)
        ):
            raise TypeError(f"the option {name} is {value!r}")
        if isinstance(value, float) and value != value:
            raise ValueError(f"the option {name} is not a number")
    return matcher


def _classes(hint: Any) -> tuple[type, ...]:  # whatever annotates an option
    """The classes that values of an annotated option are of."""
    return tuple(get_origin(each) or each for each in (get_args(hint) if isinstance(hint, UnionType) else (hint,)))


@contextmanager
def _damage_named(folder: Path) -> Iterator[None]:
    """Say of what cannot be read which folder it is in."""
    try:
        yield
    except (IndexFormatError, UnknownAlgorithmError):
        raise
    except FileNotFoundError as error:
        missing = Path(error.filename or _PARQUET).name  # Arrow does not say which
        raise IndexFormatError(f"{folder} is not a saved engine: {missing} is missing") from None
    except NotADirectoryError:
        raise IndexFormatError(f"{folder} is not a saved engine, which is a folder") from None
    except HarkenError as error:
        raise IndexFormatError(f"{folder} is damaged: {error.message}") from error
    except DAMAGE as error:
        raise IndexFormatError(f"{folder} is damaged: {error}") from error


def _limits(saved: dict[str, object]) -> Limits:
    for name, limit in saved.items():
        if type(limit) is not int or limit < 0:
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
        "keep_text": engine.written is not None,
        "subscriptions": len(engine.identities),
    }


def _write(engine: SavedEngine, folder: Path) -> Manifest:
    """Write what an engine holds; what the manifest has to say of that."""
    index = engine.matcher.state() if isinstance(engine.matcher, Saveable) else None
    if index is None:
        return {"form": TEXTS, "files": State(tables={TEXTS: _texts(engine)}).write(folder)}
    special = np.array(sorted(engine.owners.keys() | engine.validity.keys()), np.int64)
    parts = {
        INDEX: index,
        "identities": engine.identities.state(),
        "subscriptions": State(tables={"about": _about(engine, special)}),
    }
    if engine.written is not None:
        parts["written"] = engine.written.state()
    picked = str(getattr(engine.matcher, "picked", engine.algorithm))
    return {"form": INDEX, "picked": picked, "files": State.of_parts(parts).write(folder)}


# ---------------------------------------------------------------- texts


def _texts(engine: SavedEngine) -> pa.Table:
    slots = engine.identities.slots()
    expressions = pa.array([_text(engine, slot) for slot in slots.tolist()], pa.string())
    about = _about(engine, slots)
    return about.set_column(0, "id", engine.identities.id_array(slots)).add_column(1, "expression", expressions)


def _text(engine: SavedEngine, slot: int) -> str:
    """What was written, or what the matcher knows."""
    kept = engine.written
    text = None if kept is None else kept.text(slot)
    if kept is not None and kept.is_loaded and expression_of(text, engine.limits) is None:
        text = None
    return to_text(engine.matcher.expression(slot)) if text is None else text


def _read_texts(engine: SavedEngine, folder: Path, manifest: Manifest, verify: bool) -> None:
    table = _text_table(folder, manifest, verify)
    admission = admit(table, engine.identities, engine.schema, _bounds_of(table, engine.limits), replace=False)
    if admission.rejects:
        raise BulkLoadError(admission.rejects)
    slots = engine.identities.admit(admission.ids)
    engine.matcher.add(slots, admission.incoming)
    if engine.written is not None and admission.texts is not None:
        engine.written.admit(slots, admission.texts())
    engine.owners = {int(slots[at]): owner for at, owner in admission.owners.items()}
    engine.validity = {int(slots[at]): validity for at, validity in admission.validity.items()}


def _text_table(folder: Path, manifest: Manifest, verify: bool) -> pa.Table:
    if manifest["version"] < VERSION:
        return _parquet(folder / _PARQUET, verify)
    tables = State.read(folder, manifest["files"], verify=verify).tables
    if TEXTS not in tables or set(tables[TEXTS].column_names) != {"id", "expression", *_ABOUT.names[1:]}:
        raise ValueError("there is no table of texts")
    return tables[TEXTS]


def _parquet(path: Path, verify: bool) -> pa.Table:
    """Texts as they were saved up to version 3, where repeated ones took hardly any room."""
    texts = ["id", "expression", "owner"]
    if not set(texts) <= set(pq.read_schema(path).names):
        raise ValueError(f"{path.name} has not the columns id and expression, and owner")
    with pq.ParquetFile(path, page_checksum_verification=verify, read_dictionary=texts) as file:
        if file.metadata.num_rows > MOST_ROWS_PER_BYTE * path.stat().st_size:
            raise ValueError(f"{path.name} claims to hold {file.metadata.num_rows:,} subscriptions")
        table = file.read()
    table.validate(full=True)
    for at, (name, column) in enumerate(zip(table.column_names, table.columns, strict=True)):
        if pa.types.is_dictionary(column.type):
            lengths = (pc.take(pc.binary_length(each.dictionary), each.indices) for each in column.chunks)
            if sum(pc.sum(each).as_py() or 0 for each in lengths) > MOST_CHARACTERS:
                raise ValueError(f"{path.name} claims to hold more text than there can be")
            table = table.set_column(at, name, column.cast(column.type.value_type))
    return table


def _bounds_of(table: pa.Table, limits: Limits) -> Limits:
    """The limits to read saved texts with.

    What was taken in as a tree, or is known in its normal form, may be larger once written as a text. How long it
    takes to read, and the room, are bounded all the same: by what there is to read, and where limits are beyond
    the default ones by what is said above.
    """
    lengths, rows = pc.utf8_length(table.column("expression")), max(table.num_rows, 1)
    longest, average = pc.max(lengths).as_py() or 0, (pc.sum(lengths).as_py() or 0) // rows
    most = max(DEFAULT_LIMITS.max_clauses, min(MOST_CLAUSES // rows, MOST_CLAUSES_OF_ONE), average)
    clauses = min(limits.max_clauses, most)
    work = max(min(limits.max_work, MOST_WORK), longest * min(clauses, MOST_FACTOR))
    unbounded = dict.fromkeys(("max_length", "max_regexes"), sys.maxsize)
    depth = max(limits.max_depth, 4)
    return replace(limits, max_depth=depth, max_clauses=clauses, max_work=work, **unbounded)


# ---------------------------------------------------------------- the index as it lies


def _about(engine: SavedEngine, slots: Slots) -> pa.Table:
    """What is known of subscriptions besides their ids and expressions."""
    listed = slots.tolist()
    bounds = [engine.validity.get(slot, ALWAYS) for slot in listed]
    return pa.table(
        {
            "slot": listed,
            "owner": [engine.owners.get(slot) for slot in listed],
            **{name: [getattr(each, name) for each in bounds] for name in _BOUNDS},
        },
        schema=_ABOUT,
    )


def _read_index(engine: SavedEngine, folder: Path, manifest: Manifest, verify: bool) -> None:
    state = State.read(folder, manifest["files"], verify=verify)
    engine.identities.restore(state.part("identities"))
    slots = engine.identities.slots()
    _know_again(engine, state.part("subscriptions").table("about", _ABOUT), slots)
    if engine.written is not None and manifest["version"] == VERSION:
        engine.written.restore(state.part("written"), slots)
    if engine.algorithm == manifest["algorithm"]:
        _restore(engine.matcher, state, slots, engine.schema)
        return
    saved = _matcher(manifest["algorithm"], manifest["options"])
    _restore(saved, state, slots, engine.schema)
    for start in range(0, len(slots), PORTION):
        portion = slots[start : start + PORTION]
        engine.matcher.add(portion, Incoming.of([saved.expression(slot) for slot in portion.tolist()]))


def _restore(matcher: Matcher, state: State, slots: Slots, schema: Schema | None) -> None:
    if not isinstance(matcher, Saveable):
        raise TypeError(f"{type(matcher).__name__} has no index to be restored")
    matcher.restore(state.part(INDEX), slots)
    if schema is not None:
        for name, table in state.tables.items():
            if name.endswith(PREDICATES):
                _hold_to(schema, table)


def _hold_to(schema: Schema, predicates: pa.Table) -> None:
    """SchemaError unless subscriptions could ask for these predicates, as texts are held to the schema too.

    Those of an attribute that have the same operator and type of operand are looked at together.
    """
    names = ["attribute", "operator", "type"]
    said = pa.table({name: predicates.column(name).cast(pa.string()) for name in names})
    for attribute, operator, found in zip(*said.group_by(names).aggregate([]).to_pydict().values(), strict=True):
        declared = schema.declared(attribute)
        if found is None:  # it asks whether there is a value
            continue
        kind = Type(found).kind
        # The types of a kind are one to "is", and points and boxes to spatial operators.
        alike = operator == "is" or (kind in SPATIAL_KINDS and operator not in ("=", "!=", "in"))
        if not (alike and (declared.kind is kind or {declared.kind, kind} <= SPATIAL_KINDS)):
            schema.check_type(attribute, Type(found))


def _know_again(engine: SavedEngine, about: pa.Table, in_use: Slots) -> None:
    slots, owners, starts, ends = (about.column(name).to_pylist() for name in _ABOUT.names)
    if not set(slots) <= set(in_use[np.isin(in_use, np.array(slots, np.int64))].tolist()):
        raise ValueError("something is known of subscriptions that there are not")
    engine.owners = {slot: owner for slot, owner in zip(slots, owners, strict=True) if owner is not None}
    bounded = zip(slots, map(Validity, starts, ends), strict=True)
    engine.validity = {slot: validity for slot, validity in bounded if not validity.is_always}

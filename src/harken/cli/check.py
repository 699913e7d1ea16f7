"""`harken check`: what is wrong with the subscriptions of a file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from harken.cli.findings import Finding
from harken.cli.options import FILES, FileFormat, JsonOption, SchemaOption, check_there, schema_of
from harken.cli.terminal import harmless, note, progress

if TYPE_CHECKING:
    import pyarrow as pa

    from harken import Schema
    from harken.files import SubscriptionFile
    from harken.intake import Admission
    from harken.model.values import Type

NEVER = "never matches any event: it contradicts itself"
ALWAYS = "matches every event"
SAMPLE = 100_000
"""Events that are looked at, at least, if there are so many."""


def check(
    file: Annotated[str, typer.Argument(metavar="FILE", help=f"Standing conditions: {FILES}.")],
    schema: SchemaOption = None,
    events: Annotated[
        str | None,
        typer.Option(
            "--events", "-e", metavar="FILE", help=f"A sample of the data to hold them against: {FILES}."
        ),
    ] = None,
    format: Annotated[  # noqa: A002
        FileFormat | None, typer.Option(help="What the file is written in, where its name does not tell.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Say what is wrong with the subscriptions of a file.

    Prints a line for each bad one: FILE:LINE, its id, line:column inside its expression, and the reason (for
    Parquet, which has no lines, FILE:ROW with rows from 0). Warns of those that never or always match and, given
    events, of those that compare an attribute with a kind of constant that it never has there.
    Exit status 1 if any is bad, 0 otherwise; warnings alone are no failure.

    Examples: harken check subscriptions.csv --schema types.json

    zcat wishes.gz | harken check - --format csv --json
    """
    from harken.files import read_subscriptions

    check_there(file, events)
    unread: list[Finding] = []
    declared = schema_of(schema)
    subscriptions = read_subscriptions(file, lambda error: unread.append(Finding.of_line(error)), format=format)
    seen = {} if events is None else _types_seen(events, declared)
    findings = [*unread, *_findings(subscriptions, declared, seen)]
    findings.sort(key=lambda finding: (finding.line or 0, finding.row or 0))
    bad = sum(finding.severity == "error" for finding in findings)
    total = len(subscriptions) + len(unread)
    if as_json:
        said = [finding.to_dict() for finding in findings]
        whole = {"file": file, "subscriptions": total, "bad": bad, "findings": said}
        typer.echo(json.dumps(whole, ensure_ascii=False, indent=2))
    else:
        for finding in findings:
            typer.echo(harmless(str(finding)))
        note(f"{total:,} subscriptions, {bad:,} bad, {len(findings) - bad:,} warnings")
    if bad:
        raise typer.Exit(1)


def _types_seen(path: str, schema: Schema | None) -> dict[str, set[Type]]:
    """The types that attributes have in the first events of a file."""
    from harken.files import read_events
    from harken.matching.events.types import types_seen

    seen: dict[str, set[Type]] = {}
    count = 0
    for chunk in read_events(path, schema):
        for name, types in types_seen(chunk.events).items():
            seen.setdefault(name, set()).update(types)
        count += len(chunk)
        if count >= SAMPLE:
            break
    return seen


def _findings(file: SubscriptionFile, schema: Schema | None, seen: dict[str, set[Type]]) -> list[Finding]:
    from harken.intake import admit
    from harken.matching.identities import Identities
    from harken.model.limits import DEFAULT_LIMITS

    with progress("checking", len(file)) as done:
        admission = admit(file.rows, Identities(), schema, DEFAULT_LIMITS, replace=False, progress=done)
    errors = [Finding.of_reject(file, reject) for reject in admission.rejects]
    return [*errors, *_warnings(file, admission, seen)]


def _warnings(file: SubscriptionFile, admission: Admission, seen: dict[str, set[Type]]) -> list[Finding]:
    from harken.normal.kinds import mismatched_rows

    rejected = {reject.row for reject in admission.rejects}
    rows = [row for row in range(len(file)) if row not in rejected]
    compiled = admission.incoming.compiled
    doubts = [*_doubts(compiled).items()]
    for at, found in mismatched_rows(compiled, seen).items() if seen else ():
        doubts += [(at, str(mismatch)) for mismatch in found]
    return [Finding.of_warning(file, rows[at], doubt) for at, doubt in sorted(doubts)]


def _doubts(table: pa.Table) -> dict[int, str]:
    """The rows of a compiled table that match nothing (no clause) or everything (an empty clause)."""
    import pyarrow.compute as pc

    doubts: dict[int, str] = {}
    first = 0
    for chunk in table.column("clauses").chunks:
        for at in pc.indices_nonzero(pc.equal(pc.list_value_length(chunk), 0)).to_pylist():
            doubts[first + at] = NEVER
        empty = pc.equal(pc.list_value_length(pc.list_flatten(chunk)), 0)
        for at in pc.list_parent_indices(chunk).filter(empty).to_pylist():
            doubts[first + at] = ALWAYS
        first += len(chunk)
    return doubts

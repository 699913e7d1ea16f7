"""`harken check`: what is wrong with the subscriptions of a file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from harken.cli.findings import Finding
from harken.cli.options import FILES, FileFormat, JsonOption, SchemaOption, schema_of
from harken.cli.terminal import harmless, note, progress

if TYPE_CHECKING:
    import pyarrow as pa

    from harken import Schema
    from harken.files import SubscriptionFile
    from harken.intake import Admission

NEVER = "never matches any event: it contradicts itself"
ALWAYS = "matches every event"


def check(
    file: Annotated[str, typer.Argument(metavar="FILE", help=f"Standing conditions: {FILES}.")],
    schema: SchemaOption = None,
    format: Annotated[  # noqa: A002
        FileFormat | None, typer.Option(help="What the file is written in, where its name does not tell.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Say what is wrong with the subscriptions of a file.

    Prints a line for each bad one: FILE:LINE, its id, line:column inside its expression, and the reason (for
    Parquet, which has no lines, FILE:ROW with rows from 0). Warns of those that never or always match.
    Exit status 1 if any is bad, 0 otherwise; warnings alone are no failure.

    Examples: harken check subscriptions.csv --schema types.json

    zcat wishes.gz | harken check - --format csv --json
    """
    from harken.files import read_subscriptions

    unread: list[Finding] = []
    declared = schema_of(schema)
    subscriptions = read_subscriptions(file, lambda error: unread.append(Finding.of_line(error)), format=format)
    findings = [*unread, *_findings(subscriptions, declared)]
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


def _findings(file: SubscriptionFile, schema: Schema | None) -> list[Finding]:
    from harken.intake import admit
    from harken.matching.identity import Identities
    from harken.model.limits import DEFAULT_LIMITS

    with progress("checking", len(file)) as done:
        admission = admit(file.rows, Identities(), schema, DEFAULT_LIMITS, replace=False, progress=done)
    errors = [Finding.of_reject(file, reject) for reject in admission.rejects]
    return [*errors, *_warnings(file, admission)]


def _warnings(file: SubscriptionFile, admission: Admission) -> list[Finding]:
    rejected = {reject.row for reject in admission.rejects}
    rows = [row for row in range(len(file)) if row not in rejected]
    doubts = _doubts(admission.incoming.compiled)
    return [Finding.of_warning(file, rows[at], doubt) for at, doubt in sorted(doubts.items())]


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

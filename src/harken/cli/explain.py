"""`harken explain`: why an event satisfies a subscription, or why not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from harken.cli.options import (
    AtOption,
    JsonOption,
    SchemaOption,
    SubscriptionsFormatOption,
    SubscriptionsOption,
    check_there,
    schema_of,
    time_of,
)
from harken.cli.terminal import harmless, note, screen

if TYPE_CHECKING:
    from rich.text import Text

    from harken import Explanation

_STYLES = {"✓": "green", "✗": "red", "?": "yellow"}


def explain(
    subscriptions: SubscriptionsOption,
    event: Annotated[str, typer.Option(metavar="JSON|@FILE", help="The event, or the file that holds it.")],
    id: Annotated[str, typer.Option(metavar="ID", help="The subscription to explain.")],
    schema: SchemaOption = None,
    subscriptions_format: SubscriptionsFormatOption = None,
    at: AtOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say why a subscription does or does not match an event.

    Shows each part of the expression with its truth (true, false, or unknown where an attribute is missing or
    of another kind) and the value it saw. Exit status 0 either way.

    Examples: harken explain -s subscriptions.csv --id alice --event '{"item": "camera", "price": 320}'

    tail -n 1 offers.jsonl | harken explain -s wishes.jsonl --id 17 --event @- --json
    """
    from harken import Engine
    from harken.cli.findings import Finding
    from harken.errors import BulkLoadError, SubscriptionError
    from harken.files import read_event, read_subscriptions

    check_there(subscriptions)
    declared, moment = schema_of(schema), time_of(at)
    file = read_subscriptions(
        subscriptions, lambda error: note(f"passed over: {error}"), format=subscriptions_format
    )
    wanted = file.only(id)
    # The reference keeps expressions as they were written.
    engine = Engine("reference", declared)
    try:
        engine.subscribe_many(wanted.rows)
    except BulkLoadError as error:
        reject = error.rejects[0]
        raise SubscriptionError(str(Finding.of_reject(wanted, reject))) from error  # type: ignore[arg-type]
    explanation = engine.explain(read_event(event, declared), next(iter(engine)), at=moment)
    if as_json:
        typer.echo(json.dumps(explanation.to_dict(), ensure_ascii=False, indent=2))
    else:
        show(explanation)


def show(explanation: Explanation) -> None:
    """Print an explanation, in colours where there are any."""
    console = screen()
    for line in harmless(str(explanation)).split("\n"):
        console.print(coloured(line, explanation.matches), soft_wrap=True)


def coloured(line: str, matches: bool) -> Text:
    """A line of an explanation with its verdict in the verdict's colour."""
    from rich.text import Text

    text = Text(line)
    sign = line.strip()[:1]
    if sign in _STYLES:
        at = line.index(sign)
        text.stylize(_STYLES[sign], at, at + len("✓ unknown"))
        if "   [" in line:
            text.stylize("dim", line.rindex("   ["))
    elif not line.startswith(" "):
        text.stylize("bold green" if matches else "bold red")
    return text

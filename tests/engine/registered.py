"""What the tests of registering share: a small engine, and all that can be seen of one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from harken import Engine, Subscription

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def small_engine() -> Engine:
    engine = Engine("reference")
    engine.subscribe("a", "x = 1")
    engine.subscribe("b", "x > 1", owner="Bob", valid_until=NOON)
    return engine


def seen(engine: Engine) -> dict[int | str, Subscription]:
    """Everything that can be seen of an engine's subscriptions."""
    return {id: engine.subscription(id) for id in engine}

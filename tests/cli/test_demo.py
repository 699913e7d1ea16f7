"""`harken demo`, in small."""

from __future__ import annotations

import io
import operator
import re
from pathlib import Path

import pytest
from rich.console import Console

from harken import Engine
from harken.demo import crowd, marketplace, saleroom, show_auction, show_pipeline
from harken.demo import show as demo
from harken.demo.pipeline import Sizes
from harken.errors import JavaError
from tests.cli.running import run

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"ROBOTS": 60, "STREAMED": 120, "BATCH": 200, "INTERVAL": 0.0, "MEASURED_SECONDS": 0.02}
    for name, value in sizes.items():
        monkeypatch.setattr(f"harken.demo.presentation.{name}", value)


def shown(**options: object) -> str:
    screen = io.StringIO()
    demo(Console(file=screen, width=80, highlight=False, **options))  # type: ignore[arg-type]
    return screen.getvalue()


def shown_pipeline(sizes: Sizes) -> str:
    screen = io.StringIO()
    show_pipeline(Console(file=screen, width=100, highlight=False), sizes)
    return screen.getvalue()


def without_times(text: str) -> str:
    return re.sub(r"in [0-9.]+ s\b\s*|[0-9,]+ events/s \([0-9,]+ events, [0-9,]+ matches\)\s*", "", text)


def test_piped_it_tells_the_whole_story_in_plain_text() -> None:
    text = shown()
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 84  # the error's own line may be a little longer
    for part in ("Subscriptions", "Offers come in", "goes to", "does not match", "✗ false    price <", "Summary"):
        assert part in text
    assert (
        "write <= for 'less or equal'\n  kind = 'camera' AND price =< 300\n                            ^^" in text
    )
    assert re.search(r"algorithm +\w+", text)


def test_what_is_done_once_is_told_apart_from_the_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 10_000, 100))
    told: list[str] = []
    first = Engine.match_batch

    def slow_at_first(engine: Engine, *arguments: object) -> object:
        told.append(f"{len(engine)}")
        return first(engine, *arguments)  # type: ignore[arg-type]  # handed on

    monkeypatch.setattr(Engine, "match_batch", slow_at_first)
    monkeypatch.setattr("harken.demo.presentation.time.perf_counter", lambda: next(clock))
    text = shown()
    assert re.search(r"first use +kernels compiled, or loaded from disk, in 100\.0 s\n", text)
    assert re.search(r"in 100\.00 s\.\n", text)  # subscribing, by itself
    assert len(re.findall(r"warm, as \w+ +1 events/s", text)) == 2  # 200 events within two ticks of the clock
    assert len(told) == 5  # to warm up, and twice to arrange and to measure


def test_offers_as_columns_match_as_they_do_as_dictionaries() -> None:
    engine = Engine(schema=marketplace.SCHEMA)
    engine.subscribe_many([(wish.id, wish.expression) for wish in marketplace.WISHES])
    batch = marketplace.offers(500, seed=4)
    assert engine.match_batch(marketplace.as_columns(batch)).equals(engine.match_batch(batch))


def test_it_shows_the_same_each_time() -> None:
    assert without_times(shown()) == without_times(shown())


def test_on_a_terminal_the_table_is_live_and_ends_the_same() -> None:
    live = shown(force_terminal=True, color_system="truecolor", legacy_windows=False)
    assert "\x1b[?25l" in live  # the cursor is hidden while the table changes
    plain = _ESCAPES.sub("", live)
    for line in ("Maria", "120 offers", "Why not?"):
        assert line in plain


def test_every_wish_is_valid_under_the_schema_and_hears_of_something_or_is_rare() -> None:
    engine = Engine(schema=marketplace.SCHEMA)
    engine.subscribe_many([(wish.id, wish.expression) for wish in marketplace.WISHES])
    heard = engine.match_batch(marketplace.offers(2_000, seed=1)).column("subscription").to_pylist()
    assert set(heard) == {wish.id for wish in marketplace.WISHES}


def test_the_same_seed_makes_the_same_market() -> None:
    assert marketplace.offers(50, seed=3) == marketplace.offers(50, seed=3)
    assert list(marketplace.robots(9, seed=3)) == list(marketplace.robots(9, seed=3))
    assert marketplace.offers(50, seed=3) != marketplace.offers(50, seed=4)


def test_the_command_shows_the_small_market_alone_if_asked_to() -> None:
    done = run("demo", "--without-spark")
    assert (done.status, "Summary" in done.out, "Spark" in done.out) == (0, True, False)


def shown_auction(url: str | None = None, **options: object) -> str:
    screen = io.StringIO()
    show_auction(Console(file=screen, width=120, highlight=False, **options), url)  # type: ignore[arg-type]
    return screen.getvalue()


def test_an_auction_tells_who_leads_and_who_has_won() -> None:
    text = shown_auction()
    assert "\x1b" not in text
    counted = re.search(r"(\d+) bids, (\d+) times another led", text)
    assert counted is not None
    assert int(counted[2]) > 20
    assert f"{counted[2]} notices of the best having changed were delivered" in text
    assert re.search(r"leads for \w+ of \w+; \w+ \d+ is outbid", text)
    for sale in saleroom.SALES:
        assert re.search(rf"{sale.product} +{sale.seller} sells to +\w+ \d+", text)


def test_an_auction_is_the_same_in_a_database(tmp_path: Path) -> None:
    in_memory, in_database = shown_auction(), shown_auction(f"sqlite:///{tmp_path}/auction.db")
    assert in_memory.partition("offer ")[2] == in_database.partition("offer ")[2]


def test_on_a_terminal_the_auction_is_live(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harken.demo.auction.INTERVAL", 0.001)
    live = shown_auction(force_terminal=True, color_system="truecolor", legacy_windows=False)
    assert "\x1b[?25l" in live
    assert "sells to" in _ESCAPES.sub("", live)


def test_the_command_holds_an_auction_if_asked_to() -> None:
    assert "sells to" in run("auction", "--demo").out
    refused = run("auction")
    assert (refused.status, refused.out) == (2, "")
    assert "pass --demo" in refused.err


@pytest.mark.usefixtures("lent_spark")
def test_on_spark_the_join_finds_what_harken_finds_and_is_compared_with_it() -> None:
    text = shown_pipeline(Sizes(wishes=1_000, offers=1_000, sample=300))
    assert "1,000 subscriptions and 1,000 offers, as Parquet" in text
    assert re.search(r"→ \w+ \d+\n +because .*price <= \d+", text)
    assert re.search(r"Harken is faster by +[0-9,]+ times", text)
    assert re.search(r"same pairs found +yes, all [1-9]", text)


def test_where_spark_cannot_be_started_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise JavaError("Spark needs Java 17", suggestion="install it")

    monkeypatch.setattr("harken.spark.runtime.lifetime.temporary_session", refuse)
    _heading, said, *rest = shown_pipeline(Sizes(1, 1, 1)).splitlines()
    assert said == "Left out, as Spark cannot be started: Spark needs Java 17; install it"
    assert rest == []


def test_wishes_as_texts_mean_what_they_mean_as_columns() -> None:
    wanted, found = crowd.wishes(1_200, seed=5), crowd.offers(100, seed=6)
    engine = Engine()
    engine.subscribe_many(crowd.as_subscriptions(wanted))
    matches = engine.match_batch(found)
    texts = set(zip(matches["event"].to_pylist(), matches["subscription"].to_pylist(), strict=True))
    compare = {"=": operator.eq, "<=": operator.le, ">=": operator.ge}

    def wished(offer: dict[str, object], wish: dict[str, object]) -> bool:
        asked = [
            (offer[attribute], op, wish[name]) for attribute, op, name in crowd.ASKED if wish[name] is not None
        ]
        return all(value is not None and compare[op](value, constant) for value, op, constant in asked)

    offers, wishes = found.to_pylist(), wanted.to_pylist()
    assert texts == {(o["id"], w["id"]) for o in offers for w in wishes if wished(o, w)} != set()

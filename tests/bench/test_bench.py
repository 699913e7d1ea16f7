"""Experiments run, write what they found, and say on what."""

from __future__ import annotations

import json

import pytest

from harken.bench import report
from harken.bench.experiments import experiments, load
from harken.bench.measuring import Bench, Curve, Figure, Plot, Ratio, Result
from harken.errors import UnknownExperimentError
from tests.cli.running import run


def test_the_list_names_every_experiment():
    listed = run("bench", "--list")
    assert listed.status == 0
    assert all(name in listed.out for name in experiments())


def test_help_and_list_say_which_experiments_take_minutes():
    told = " ".join(run("bench", "--help").out.replace("│", " ").split())
    assert "those go on of which --list says --minutes" in told
    taking = {name for name, each in experiments().items() if "--minutes" in each}
    assert taking >= {"soak", "threads", "faults", "storage-stress", "stream-stress"}


def test_an_unknown_experiment_is_told_with_the_nearest_name():
    with pytest.raises(UnknownExperimentError, match="did you mean 'compile'"):
        load("complie")


def test_an_experiment_leaves_its_figures_and_says_on_what(tmp_path):
    done = run("bench", "yardstick", "--repeats", "1", "--out", str(tmp_path), "--json")
    assert done.status == 0, done.err
    said = json.loads((tmp_path / "yardstick.json").read_text())
    assert json.loads(done.out)["experiment"] == "yardstick"
    assert {"dependent", "prefetched"} <= {figure["name"] for figure in said["figures"]}
    assert all(figure["median"] > 0 for figure in said["figures"])
    assert said["machine"]["cores"] >= 1
    assert "processor" in said["machine"]
    assert (tmp_path / "yardstick.md").read_text().startswith("# Random reads of cache lines")


def test_contenders_take_turns():
    order = []
    seconds = Bench(repeats=3).in_turns({"a": lambda: order.append("a"), "b": lambda: order.append("b")})
    assert order == ["a", "b"] * 3
    assert {name: len(samples) for name, samples in seconds.items()} == {"a": 3, "b": 3}


@pytest.mark.parametrize(
    ("samples", "verdict"),
    [
        ((1.5, 2.0, 3.0), "ahead in every repeat"),
        ((0.5, 0.6, 0.9), "behind in every repeat"),
        ((0.9, 1.1, 1.2), "within noise"),
        ((2.0, 2.0), "too few repeats"),
    ],
)
def test_a_ratio_says_whether_its_repeats_agree(samples, verdict):
    assert Ratio("r", samples).verdict == verdict


def test_a_target_is_reached_by_the_median():
    assert Figure("f", "/s", (1.0, 5.0, 6.0), target=5).reached is True
    assert Figure("f", "/s", (1.0, 4.0, 6.0), target=5).reached is False
    assert Figure("f", "us", (1.0, 4.0, 6.0), target=5, lower_is_better=True).reached is True
    assert Figure("f", "/s", (1.0,)).reached is None


@pytest.mark.parametrize(
    ("figure", "said"),
    [
        (Figure("f", "us", (4.0,), target=5, lower_is_better=True), "at most 5: reached"),
        (Figure("f", "us", (6.0,), target=5, lower_is_better=True), "at most 5: missed"),
        (Figure("f", "/s", (6.0,), target=5), "at least 5: reached"),
    ],
)
def test_a_report_says_which_way_a_target_points(figure, said):
    result = Result("A title", {}, [figure])
    written = report.to_dict("some", Bench(), result)
    assert said in report.markdown(written, result, None)
    assert written["figures"][0]["lower_is_better"] is figure.lower_is_better


def test_a_soak_lasts_as_long_as_is_asked(tmp_path):
    done = run("bench", "soak", "--minutes", "0.02", "--out", str(tmp_path))
    assert done.status == 0, done.err
    said = json.loads((tmp_path / "soak.json").read_text())
    assert said["conditions"]["minutes"] == "0.02"
    assert (tmp_path / "soak.png").exists()


def test_a_soak_of_no_time_is_refused():
    assert run("bench", "soak", "--minutes", "0").status == 2


def test_points_can_stand_above_names(tmp_path):
    curves = tuple(Curve(name, ("w0", "ranges"), (1.0, 20.0)) for name in ("one", "other"))
    report.draw(Plot("workload", "events/s", curves, log_y=True), "A title", tmp_path / "points.png")
    assert (tmp_path / "points.png").read_bytes().startswith(b"\x89PNG")


def test_a_report_has_tables_the_papers_words_and_a_picture(tmp_path):
    plot = Plot("x", "y", (Curve("one", (1.0, 2.0), (3.0, 4.0)),), log_x=True)
    result = Result("A title", {"size": 3}, [Figure("f", "/s", (1.0, 2.0))], [Ratio("r", (2.0,))], plot, "17 ms")
    written = report.write(tmp_path, "some", report.to_dict("some", Bench(), result), result)
    assert {path.name for path in written} == {"some.json", "some.md", "some.png"}
    page = (tmp_path / "some.md").read_text()
    assert "| f | 1.5 |" in page
    assert "17 ms" in page
    assert "![A title](some.png)" in page
    assert (tmp_path / "some.png").read_bytes().startswith(b"\x89PNG")


def test_where_nothing_can_be_drawn_the_rest_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "find_spec", lambda _: None)
    result = Result("A title", {}, [Figure("f", "/s", (1.0,))], plot=Plot("x", "y", (Curve("c", (1.0,), (1.0,)),)))
    written = report.write(tmp_path, "named", report.to_dict("named", Bench("small", 1), result), result)
    assert sorted(path.name for path in written) == ["named.json", "named.md"]
    assert "named.png" not in (tmp_path / "named.md").read_text()

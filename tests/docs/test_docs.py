"""The documentation is executed: what it shows is what the code does.

Conventions of the Markdown files:

- `python` blocks of one file share a namespace and run in order, in an empty folder. A block with `>>>` is a
  doctest; any other is a script, and its assertions count.
- `harken` blocks hold one case per line: `expression | event | verdict`, `expression -> part of the error`, or
  `expression same as expression`. Events are Python dictionaries.
- A block whose info string names a file (`json events.jsonl`) is that file. `console` blocks run their
  `$ harken` commands in a folder that has the files of the document, and compare the output.
"""

from __future__ import annotations

import doctest
import importlib
import os
import pkgutil
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import pytest

import harken
from harken import Box, Engine, Point, parse, to_text
from harken.compiler import Texts, compile_texts
from harken.errors import ExpressionError
from harken.model.evaluation import truth
from harken.model.events import flatten
from harken.normal.decompiled import expressions_of

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(ROOT.glob("docs/**/*.md"))]
NORMATIVE = [ROOT / "docs" / "language.md", ROOT / "docs" / "semantics.md"]

_FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#+ (?P<title>.+)$", re.MULTILINE)
_OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the file it is (if its info string names one), and where it stands."""

    page: Path
    line: int
    language: str
    file: str | None
    body: str

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path, language: str | None = None) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = []
    for fence in _FENCE.finditer(text):
        words = fence["info"].split() or [""]
        line = text.count("\n", 0, fence.start("body")) + 1
        found.append(Block(page, line, words[0], words[1] if len(words) > 1 else None, fence["body"]))
    return [block for block in found if language in (None, block.language)]


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


# Python blocks


def asks_for_spark(page: Path) -> bool:
    return "local_session" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.service] * asks_for_spark(page), id=named(page))
        for page in PAGES
        if blocks(page, "python")
    ],
)
def test_python_blocks_run_and_show_what_happens(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if asks_for_spark(page):
        # What the page gets, and need not start. Its Java is where it was started, which must outlast this test.
        request.getfixturevalue("lent_spark")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__docs__"}
    for block in blocks(page, "python"):
        if ">>>" in block.body:
            run_doctest(block, namespace)
        else:
            # Empty lines in front make tracebacks point into the document.
            exec(compile("\n" * (block.line - 1) + block.body, str(page), "exec"), namespace)


def run_doctest(block: Block, namespace: dict[str, object]) -> None:
    examples = doctest.DocTestParser().get_doctest(block.body, {}, block.place, str(block.page), block.line - 1)
    examples.globs = namespace
    said: list[str] = []
    failed, _ = doctest.DocTestRunner(optionflags=_OPTIONS).run(examples, out=said.append, clear_globs=False)
    assert not failed, "".join(said)


def modules() -> list[str]:
    found = pkgutil.walk_packages(harken.__path__, "harken.")
    return [module.name for module in found if not module.name.endswith("__main__")]


@pytest.mark.parametrize("name", ["harken", *modules()])
def test_examples_in_docstrings_show_what_happens(name: str) -> None:
    said: list[str] = []
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(optionflags=_OPTIONS)
    for examples in doctest.DocTestFinder(exclude_empty=True).find(module):
        runner.run(examples, out=said.append)
    assert not runner.failures, "".join(said)


# Cases of the language


@dataclass(frozen=True)
class Case:
    """One line of a `harken` block."""

    place: str
    expression: str
    event: str | None = None
    verdict: str | None = None
    error: str | None = None
    equal: str | None = None


def cases() -> Iterator[Case]:
    for page in NORMATIVE:
        for block in blocks(page, "harken"):
            for at, line in enumerate(block.body.splitlines()):
                if line.strip() and not line.startswith("#"):
                    yield read_case(f"{named(page)}:{block.line + at}", line.strip())


def read_case(place: str, line: str) -> Case:
    if " -> " in line:
        expression, error = line.rsplit(" -> ", 1)
        return Case(place, expression.strip(), error=error.strip())
    if " same as " in line:
        expression, equal = line.split(" same as ")
        return Case(place, expression.strip(), equal=equal.strip())
    expression, event, verdict = line.rsplit(" | ", 2)
    return Case(place, expression.strip(), event=event.strip(), verdict=verdict.strip())


CASES = list(cases())
VERDICTS = [case for case in CASES if case.verdict is not None]
TRUTHS = {"true": True, "false": False, "unknown": None}
_IN_EVENTS = {each.__name__: each for each in (Box, Decimal, Point, date, datetime, timedelta, timezone)} | {
    "UTC": UTC,
    "inf": float("inf"),
}


def event_of(case: Case) -> dict[str, object]:
    return eval(str(case.event), dict(_IN_EVENTS))  # the documentation is ours


@pytest.mark.parametrize("case", VERDICTS, ids=lambda case: case.place)
def test_an_expression_has_the_documented_truth(case: Case) -> None:
    flat, _ = flatten(event_of(case))
    assert truth(parse(case.expression), flat) is TRUTHS[str(case.verdict)]


@pytest.mark.parametrize("case", VERDICTS, ids=lambda case: case.place)
def test_the_compiled_form_and_an_engine_match_when_the_documented_truth_is_true(case: Case) -> None:
    wanted = case.verdict == "true"
    event = event_of(case)
    compiled = compile_texts(Texts(["s"], [case.expression])).table
    assert (truth(expressions_of(compiled)[0], flatten(event)[0]) is True) is wanted
    engine = Engine()
    engine.subscribe("s", case.expression)
    assert engine.match(event) == (["s"] if wanted else [])


@pytest.mark.kernel
@pytest.mark.filterwarnings("ignore:overflow encountered in scalar multiply")  # the shape hash wraps around
def test_texts_compiled_in_bulk_keep_the_documented_truth_and_the_documented_errors() -> None:
    many = [
        case for case in CASES if case.equal is None
    ] * 8  # enough texts for the kernels, and shapes that recur
    compilation = compile_texts(Texts(range(len(many)), [case.expression for case in many]))
    for row, expression in zip(compilation.rows.tolist(), expressions_of(compilation.table), strict=True):
        case = many[row]
        assert case.verdict is not None, f"{case.place} was taken"
        assert (truth(expression, flatten(event_of(case))[0]) is True) is (case.verdict == "true"), case.place
    for reject in compilation.rejects:
        case = many[reject.row]
        assert case.error is not None, f"{case.place} was rejected: {reject.reason}"
        assert case.error in str(reject.error), case.place


@pytest.mark.parametrize("case", [case for case in CASES if case.error is None], ids=lambda case: case.place)
def test_a_documented_expression_survives_printing(case: Case) -> None:
    expression = parse(case.expression)
    assert parse(to_text(expression)) == expression


@pytest.mark.parametrize("case", [case for case in CASES if case.error is not None], ids=lambda case: case.place)
def test_a_text_is_refused_with_the_documented_words(case: Case) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(case.expression)
    assert str(case.error) in str(caught.value)


@pytest.mark.parametrize("case", [case for case in CASES if case.equal is not None], ids=lambda case: case.place)
def test_two_texts_documented_as_the_same_give_the_same_expression(case: Case) -> None:
    assert parse(case.expression) == parse(str(case.equal))


@pytest.mark.parametrize("page", NORMATIVE, ids=named)
def test_a_normative_page_holds_cases(page: Path) -> None:
    assert any(case.place.startswith(f"{named(page)}:") for case in CASES)


def test_every_keyword_of_the_grammar_is_described_and_used_in_a_case() -> None:
    grammar = (ROOT / "src" / "harken" / "language" / "grammar.lark").read_text(encoding="utf-8")
    declared = " ".join(re.findall(r"^%declare (.+)$", grammar, re.MULTILINE)).split()
    keywords = {name.strip("_") for name in declared} - {"NAME", "COMPARATOR", "NUMBER", "STRING"}
    (summary,) = (block.body for block in blocks(NORMATIVE[0], "text"))
    used = " ".join(case.expression for case in CASES if case.place.startswith("docs/language.md")).upper()
    for keyword in keywords:
        assert re.search(rf"\b{keyword}\b", summary), f"the grammar summary does not mention {keyword}"
        assert re.search(rf"\b{keyword}\b", used), f"no case uses {keyword}"


# The command line


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "console")], ids=named)
def test_console_blocks_print_what_is_shown(page: Path, tmp_path: Path) -> None:
    for block in blocks(page):
        if block.file is not None:
            (tmp_path / block.file).write_text(block.body, encoding="utf-8")
    for block in blocks(page, "console"):
        for command, shown in commands(block):
            assert command[0] == "harken", f"{block.place}: only harken is run here, found {command[0]}"
            said = run_harken(command[1:], tmp_path)
            assert doctest.OutputChecker().check_output(shown, said, _OPTIONS), (
                f"{block.place}: {shlex.join(command)}\nshown:\n{shown}\nprinted:\n{said}"
            )


def commands(block: Block) -> Iterator[tuple[list[str], str]]:
    """The commands of a console block, each with the output shown below it."""
    for piece in re.split(r"^\$ ", block.body, flags=re.MULTILINE)[1:]:
        typed, _, shown = piece.partition("\n")
        while typed.endswith("\\"):
            more, _, shown = shown.partition("\n")
            typed = typed[:-1] + more.removeprefix("> ")
        yield shlex.split(typed), shown


def run_harken(arguments: list[str], folder: Path) -> str:
    script = Path(sys.executable).parent / "harken"
    plain = {**os.environ, "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "100", "PYTHONIOENCODING": "utf-8"}
    finished = subprocess.run(
        [str(script), *arguments],
        cwd=folder,
        env=plain,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    return finished.stdout + finished.stderr


def test_make_targets_named_in_the_documentation_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r"(?:^|`)make ([a-z-]+)", text, re.MULTILINE):
            assert target in targets, f"{named(page)} says make {target}"


# Between the pages


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_relative_links_lead_somewhere(page: Path) -> None:
    prose = _FENCE.sub("", page.read_text(encoding="utf-8"))
    for link in _LINK.finditer(prose):
        target, _, anchor = link["target"].partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        there = (page.parent / target).resolve() if target else page
        assert there.exists(), f"{named(page)}: {link['target']}"
        if anchor:
            assert anchor in anchors(there), f"{named(page)}: {link['target']}"


def anchors(page: Path) -> set[str]:
    titles = _HEADING.findall(_FENCE.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix != ".md" or not page.is_file():
            continue
        reached.add(page)
        links = _LINK.findall(page.read_text(encoding="utf-8"))
        waiting.extend((page.parent / link.partition("#")[0]).resolve() for link in links if ":" not in link)
    assert {named(page) for page in PAGES} == {named(page) for page in reached}


def test_the_architecture_page_shows_the_import_rules_that_are_checked() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    shown = [block for block in blocks(ROOT / "docs" / "architecture.md") if block.language == "layers"]
    assert [block.body.split("\n")[:-1] for block in shown] == [
        each["layers"] for each in contracts if each["type"] == "layers"
    ]

"""A compiled kernel is used again if and only if all that it is made of is the same."""

from __future__ import annotations

import ast
import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import harken
from harken.jit import sources
from tests.jit.trial import FILES, Shop

PACKAGE = Path(harken.__file__).parent
TEXTS = {path: path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))}


def named(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)


KERNELS = [
    named(path) for path, text in TEXTS.items() if "from harken.jit import " in text and path.parent.name != "jit"
]


def test_an_unchanged_package_compiles_once(shop: Shop):
    first, second = shop.use(), shop.use()
    assert (first.totals, first.kept, first.compiled) == ([10, 10, 12], 0, 3)
    assert (second.totals, second.kept, second.compiled) == ([10, 10, 12], 3, 0)
    assert "compiling kernels" in first.said
    assert second.said == ""


def test_an_edit_in_a_callee_of_another_file_changes_the_answer(warm_shop: Shop):
    assert warm_shop.use().compiled == 0
    warm_shop.edit("callee.py", FILES["callee.py"].replace("number + STEP", "number - STEP"))
    assert warm_shop.use().totals == [2, 2, 12]


def test_an_edit_of_a_constant_that_only_the_callee_sees_changes_the_answer_and_going_back_changes_it_back(
    warm_shop: Shop,
):
    warm_shop.edit("constants.py", "STEP = 100\n")
    assert warm_shop.use().totals == [406, 406, 12]
    warm_shop.edit("constants.py", FILES["constants.py"])
    again = warm_shop.use()
    assert (again.totals, again.compiled) == ([10, 10, 12], 0)


def test_who_loads_one_text_and_compiles_after_it_was_edited_keeps_nothing_under_the_name_of_the_new(shop: Shop):
    before = "from typing import NamedTuple\nclass Pair(NamedTuple):\n    left: object\n    right: object\n"
    after = before.replace("left", "other").replace("right", "left").replace("other", "right")
    shop.edit("pairs.py", before)
    shop.edit(
        "picking.py",
        "from harken.jit import tight\nfrom shop.pairs import Pair\n\n"
        "@tight\ndef picked(pair):\n    return pair.left[0]\n",
    )
    use = (
        "import numpy as np\nfrom pathlib import Path\nfrom shop.picking import picked\n"
        "from shop.pairs import Pair\n{}\nprint(picked(Pair(left=np.array([1]), right=np.array([2]))))"
    )
    edited = use.format(f"Path({str(shop.package / 'pairs.py')!r}).write_text({after!r})")
    for code in (edited, use.format("")):
        process = shop.start(code)
        said, errors = process.communicate(timeout=300)
        assert (said.strip(), process.returncode) == ("1", 0), errors


def test_no_kernel_is_made_of_anything_that_another_process_has_otherwise():
    code = (
        "import importlib, sys\nfrom harken.jit import sources\n"
        "for name in sys.argv[1:]:\n    importlib.import_module(name)\n"
        "print([sources.digest(name) for name in sys.argv[1:]])"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code, *KERNELS],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1


def test_an_edit_elsewhere_in_the_package_compiles_nothing(warm_shop: Shop):
    warm_shop.edit("unrelated.py", "STEP = 7\n")
    assert warm_shop.use().compiled == 0


def test_kernels_that_check_bounds_and_kernels_that_do_not_are_kept_apart(warm_shop: Shop):
    code = (
        "import numpy as np\nfrom shop import caller\n"
        "try:\n    print(caller.element(np.arange(9)[:5], 5))\n"
        "except IndexError:\n    print('refused')\n"
    )
    printed = []
    for settings in ({}, {"NUMBA_BOUNDSCHECK": "1"}, {}, {"NUMBA_BOUNDSCHECK": "1"}):
        process = warm_shop.start(code, settings)
        said, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
        printed.append(said.strip())
    assert printed == ["5", "refused", "5", "refused"]
    assert sum(path.name.startswith("element") for path in warm_shop.files()) == 2


def test_a_setting_made_in_the_program_counts_as_one_from_outside(monkeypatch: pytest.MonkeyPatch):
    import numba

    plain = sources.digest("harken.matching.clusters.kernels.matching")
    monkeypatch.setattr(numba.config, "BOUNDSCHECK", 1)
    assert sources.digest("harken.matching.clusters.kernels.matching") != plain


class Copy:
    """Harken elsewhere, and the digest that fresh processes find there for some kernels."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(PACKAGE, folder / "harken", ignore=shutil.ignore_patterns("__pycache__"))
        self.first = self.digest()

    def digest(self) -> str:
        code = (
            "from harken.jit import sources\nimport harken.matching.clusters.kernels.matching as kernels\n"
            "print(kernels.__file__, sources.digest(kernels.__name__))"
        )
        said = subprocess.run(
            [sys.executable, "-c", code],
            cwd=self.folder,
            env={"PYTHONPATH": str(self.folder)},
            capture_output=True,
            check=True,
        )
        assert str(self.folder) in said.stdout.decode()
        return said.stdout.decode().split()[-1]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    return Copy(tmp_path_factory.mktemp("copy"))


def test_a_digest_is_the_same_in_every_process_while_nothing_is_edited(copy: Copy):
    assert copy.digest() == copy.first


@pytest.mark.parametrize("edited", ["matching/kernels/truth.py", "matching/kernels/layout.py", "jit/options.py"])
def test_an_edit_of_a_kernels_callee_in_harken_itself_is_noticed(edited: str, copy: Copy):
    file = copy.folder / "harken" / edited
    before = file.read_text(encoding="utf-8")
    file.write_text(f"{before}# edited\n", encoding="utf-8")
    try:
        assert copy.digest() != copy.first
    finally:
        file.write_text(before, encoding="utf-8")


@pytest.mark.parametrize("name", KERNELS)
def test_whatever_a_kernel_module_imports_from_harken_is_in_its_digest(name: str):
    module = importlib.import_module(name)
    reached = sources._reached(name)
    assert sources.digest(name) is not None
    for node in ast.walk(ast.parse(TEXTS[Path(str(module.__file__))])):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("harken"):
            for alias in node.names:
                if hasattr(module, alias.asname or alias.name):  # or it is imported for its type, or in a function
                    value = getattr(module, alias.asname or alias.name)
                    if isinstance(value, dict | set | frozenset):
                        continue  # which kernels cannot hold
                    home = getattr(value, "__module__", None) or getattr(value, "__name__", None)
                    assert home in reached or sources.rendered(value) is not None, alias.name


def test_kernel_modules_are_found():
    assert len(KERNELS) > 15
    assert "harken.matching.kernels.truth" in KERNELS


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 2),
        (1, 1.0),
        (0.0, -0.0),
        ("a", "b"),
        ((1, 2), (2, 1)),
        (np.int32(1), np.int64(1)),
        (np.arange(3), np.arange(4)),
    ],
)
def test_constants_that_differ_are_told_apart(one: object, other: object):
    assert sources.rendered(one) != sources.rendered(other)
    assert sources.rendered(one) == sources.rendered(one)


def test_what_looks_different_in_every_process_is_not_a_constant():
    assert sources.rendered(object()) is None
    assert sources.rendered((1, object())) is None

"""Options that numba does not document: they do what is assumed, or kernels are compiled without them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numba import typeof, types

from harken.jit import called, options, part
from harken.jit.parts import _PartLibrary
from tests.jit.trial import Shop

REFUSING = """
import numba.core.cpu
for owner in numba.core.cpu.CPUTargetOptions.__mro__:
    if {name!r} in vars(owner):
        delattr(owner, {name!r})
"""
"""numba no longer knows an option."""

IGNORING = """
import numba
plain = numba.njit
numba.njit = lambda *functions, {name}=None, **options: plain(*functions, **options)
"""
"""numba takes an option, and does nothing with it."""

OTHERWISE_INSIDE = """
import numba.core.codegen
del numba.core.codegen.JITCodeLibrary
"""
"""numba keeps what it compiles in another way."""

MATCHING = """
import json
from harken.bench.experiments.first_use import use
use(["counting"], 1)  # compares with the reference semantics
from harken.matching.counting.kernels.matching import match_events
print(json.dumps(sorted(match_events.targetoptions)))
"""


def test_the_options_hold_with_the_numba_that_is_installed():
    assert options.verdict() == "hold"


@pytest.mark.parametrize(
    ("uncounted", "built_in", "counts", "calls"),
    [
        (options.UNCOUNTED, options.BUILT_IN, False, False),
        (options.UNCOUNTED, options.UNCOUNTED, False, True),
        (options.UNCOUNTED, options.CALLED, False, True),
        ({}, {}, True, True),
    ],
)
def test_the_trial_can_tell_what_each_option_does(uncounted, built_in, counts, calls):
    trial = options.compiled(uncounted, built_in)
    trial(options.Pair(np.arange(9), np.arange(9)))
    (code,) = trial.inspect_llvm().values()
    assert ("NRT_" in code, options.calls_remain(code)) == (counts, calls)


def test_the_verdict_is_kept_for_later_processes(warm_shop: Shop):
    later = warm_shop.use(before="from harken.jit import options\noptions.verdict = lambda: 'must not be asked'\n")
    assert (later.said, later.kept) == ("", 3)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (REFUSING.format(name="_nrt"), "refuses them"),
        (REFUSING.format(name="forceinline"), "refuses them"),
        (IGNORING.format(name="_nrt"), "counts references all the same"),
        (IGNORING.format(name="forceinline"), "leaves calls in place all the same"),
    ],
)
def test_without_an_option_kernels_are_compiled_plainly_with_one_notice(change: str, reason: str, shop: Shop):
    used = shop.use(before=change)
    assert used.totals == [10, 10, 12]
    assert used.said.count("without the options") == 1
    assert reason in used.said


def test_where_numba_is_made_otherwise_inside_parts_are_compiled_like_anything_else(shop: Shop):
    used = shop.use(before=OTHERWISE_INSIDE)
    assert (used.totals, used.said.count("without the options")) == ([10, 10, 12], 0)


def test_no_machine_code_is_made_of_parts():
    for made in (part(options._picked), called(options._picked)):
        made.compile((typeof(options.Pair(np.arange(9), np.arange(9))), types.int64))
        (overload,) = made.overloads.values()
        assert isinstance(overload.library, _PartLibrary)
        assert not overload.library._codegen._engine.is_symbol_defined(overload.fndesc.mangled_name)


def test_kernels_compiled_with_and_without_the_options_are_kept_apart(warm_shop: Shop):
    plain = {"before": "import harken.jit.options\nharken.jit.options.verdict = lambda: 'differs'\n"}
    for verdict in warm_shop.home.rglob("verdict"):
        verdict.unlink()
    assert warm_shop.use(**plain).compiled == 2  # `doubled` takes no such options
    assert warm_shop.use(**plain).compiled == 0


def test_matching_gives_the_same_answers_without_the_options(shop: Shop):
    process = shop.start(REFUSING.format(name="_nrt") + MATCHING, {"NUMBA_OPT": "0"})
    printed, said = process.communicate(timeout=600)
    assert process.returncode == 0, said
    assert "_nrt" not in json.loads(printed)
    assert said.count("without the options") == 1

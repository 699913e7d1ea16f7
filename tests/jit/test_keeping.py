"""Compiled kernels on disk: none is lost to others, none is trusted if damaged, and none is needed."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from harken.jit import keeping, kernel, turns
from tests.jit.trial import SOURCE, Shop, outcome

NOT_KEPT = "cannot be written"


@pytest.fixture(autouse=True)
def own_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """No turn that another test took, nor its impatience."""
    monkeypatch.setattr(turns, "_own", turns._Turns())


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Harken in a zip file, beside which nothing can be written. Kernels that were compiled are not part of it."""
    folder = tmp_path_factory.mktemp("packed")
    shutil.copytree(SOURCE / "harken", folder / "plain/harken", ignore=shutil.ignore_patterns("__pycache__"))
    return Path(shutil.make_archive(str(folder / "packed"), "zip", folder / "plain", "harken"))


@pytest.mark.parametrize("home", ["/dev/null", "/proc/harken", "a-file"])
def test_without_a_folder_to_write_kernels_are_compiled_in_every_process_with_one_notice(home: str, shop: Shop):
    (shop.folder / "a-file").write_text("no folder")
    used = shop.use({"NUMBA_CACHE_DIR": home})
    assert (used.totals, used.kept, used.compiled) == ([10, 10, 12], 0, 3)
    assert used.said.count(NOT_KEPT) == 1
    assert used.said.count("\n") == 1


def test_a_package_in_a_zip_file_and_no_home_work_with_one_notice(shop: Shop, packed: Path):
    settings = {"NUMBA_CACHE_DIR": "", "HOME": "/dev/null", "XDG_CACHE_HOME": ""}
    used = shop.use(settings, packed)
    assert (used.totals, used.compiled) == ([10, 10, 12], 3)
    assert used.said.count(NOT_KEPT) == 1
    assert used.said.count("\n") == 1


def test_a_package_in_a_zip_file_keeps_kernels_in_the_users_cache(shop: Shop, packed: Path):
    settings = {"NUMBA_CACHE_DIR": "", "XDG_CACHE_HOME": str(shop.home)}
    assert shop.use(settings, packed).compiled == 3
    assert shop.use(settings, packed).kept == 3
    assert shop.files()


def test_without_a_home_the_user_has_no_cache(monkeypatch: pytest.MonkeyPatch):
    def nobody(_: int) -> None:
        raise KeyError

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    (only,) = keeping._homes.__wrapped__("")
    assert only.parent.name == "__pycache__"


def test_a_disk_that_fills_up_is_told_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(keeping, "homes", lambda: [tmp_path])
    monkeypatch.setattr(Path, "write_bytes", full)
    keeping._tell_it_is_not_kept.cache_clear()
    add = kernel(lambda number: number + 1)
    assert (add(1), add(1.5), add(np.int32(3))) == (2, 2.5, 4)
    assert [NOT_KEPT in each.message for each in caplog.records if "cannot" in each.message] == [True]
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def truncated(data: bytes) -> bytes:
    return data[: len(data) // 2]


def flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def sealed_nonsense(data: bytes) -> bytes:
    nonsense = b"no pickle"
    return keeping.hashlib.blake2b(nonsense, digest_size=32).digest() + nonsense


def emptied(_: bytes) -> bytes:
    return b""


@pytest.mark.parametrize("ways", [(truncated, flipped, sealed_nonsense), (emptied, emptied, emptied)])
def test_damaged_files_are_compiled_anew_and_mended(ways: tuple[Callable[[bytes], bytes], ...], warm_shop: Shop):
    for path, damaged in zip(warm_shop.files(), ways, strict=True):
        path.write_bytes(damaged(path.read_bytes()))
    again, later = warm_shop.use(), warm_shop.use()
    assert (again.totals, again.compiled) == ([10, 10, 12], 3)
    assert (later.totals, later.kept, later.compiled) == ([10, 10, 12], 3, 0)


def test_a_file_under_the_name_of_another_is_not_taken_for_it(warm_shop: Shop):
    whole, real = (path for path in warm_shop.files() if path.name.startswith("total"))
    whole.write_bytes(real.read_bytes())
    again = warm_shop.use()
    assert (again.totals, again.kept, again.compiled) == ([10, 10, 12], 2, 1)


def test_of_processes_that_want_the_same_kernels_at_once_one_compiles_each(shop: Shop):
    running = [shop.start() for _ in range(3)]
    used = [outcome(process) for process in running]
    assert [each.totals for each in used] == [[10, 10, 12]] * 3
    assert sum(each.compiled for each in used) == 3
    assert shop.use().kept == 3
    assert len(shop.files()) == 3  # and nothing half written, and no lock


HOLD = """
import time
from pathlib import Path
from harken.jit import turns
turns.take(Path({kernel!r}))
print("taken", flush=True)
time.sleep(20)
"""


def test_a_process_that_is_killed_while_it_compiles_keeps_nobody_waiting(shop: Shop):
    shop.home.mkdir()
    kernel = shop.home / "one"
    with shop.start(HOLD.format(kernel=str(kernel))) as holding:
        assert holding.stdout is not None
        assert holding.stdout.readline() == "taken\n"
        waiting = threading.Thread(target=turns.take, args=[kernel])
        waiting.start()
        waiting.join(0.3)
        assert waiting.is_alive()
        holding.kill()
        waiting.join(10)
        assert not waiting.is_alive()
    assert [path.name for path in shop.home.iterdir()] == ["one.lock"]
    turns.give_up(kernel)
    assert list(shop.home.iterdir()) == []


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_who_is_interrupted_while_he_compiles_or_waits_keeps_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(keeping, "homes", lambda: [tmp_path])
    add = kernel(lambda number: number + 1)
    with monkeypatch.context() as patched:
        patched.setattr(add._compiler, "compile", interrupt)
        with pytest.raises(KeyboardInterrupt):
            add(1)
    assert not turns._own.open
    assert not list(tmp_path.rglob("*.lock"))
    locked = turns._is_locked
    for waiting in (interrupt, lambda lock: locked(lock) and interrupt()):
        with monkeypatch.context() as patched:
            patched.setattr(turns, "_is_locked", waiting)
            with pytest.raises(KeyboardInterrupt):
                add(1)
        assert not turns._own.open
    monkeypatch.setattr(turns, "PATIENCE", 0.0)
    assert add(1) == 2
    assert not turns._own.in_vain, "the lock had been given up"
    assert not list(tmp_path.rglob("*.lock"))


def test_who_has_waited_for_too_long_compiles_for_himself_and_waits_no_more(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
):
    shop.home.mkdir()
    kernel, another = shop.home / "one", shop.home / "another"
    monkeypatch.setattr(turns, "PATIENCE", 0.2)
    with shop.start(HOLD.format(kernel=str(kernel))) as holding:
        assert holding.stdout is not None
        assert holding.stdout.readline() == "taken\n"
        turns.take(kernel)
        turns.give_up(kernel)
        assert [path.name for path in shop.home.iterdir()] == ["one.lock"]  # which is the other's
        monkeypatch.setattr(turns, "PATIENCE", 600)
        for each in (kernel, another):
            turns.take(each)
            turns.give_up(each)
        holding.kill()
    assert not turns._own.open


def test_a_turn_ends_with_the_process_that_took_it_whatever_it_has_forked(shop: Shop):
    shop.home.mkdir()
    kernel = shop.home / "one"
    # The child stays for longer than anybody waits.
    stay = f"print(os.getpid(), flush=True)\ntime.sleep({2 * turns.PATIENCE})"
    fork = f"import os\nif os.fork():\n    os._exit(0)\n{stay}"
    with shop.start(HOLD.replace("time.sleep(20)", fork).format(kernel=str(kernel))) as holding:
        assert holding.stdout is not None
        assert holding.stdout.readline() == "taken\n"
        child = int(holding.stdout.readline())
        try:
            holding.wait(60)
            turns.take(kernel)
            assert not turns._own.in_vain
            turns.give_up(kernel)
        finally:
            os.kill(child, signal.SIGKILL)


def test_turns_are_taken_where_kernels_will_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    taken: list[Path] = []
    add = kernel(lambda number: number + 1)

    def refuse(turn: Path) -> None:
        taken.append(turn)
        if turn.is_relative_to(tmp_path / "another's"):
            raise PermissionError

    monkeypatch.setattr(keeping, "homes", lambda: [tmp_path / "another's", tmp_path / "own"])
    monkeypatch.setattr(turns, "take", refuse)
    assert add(1) == 2
    assert [each.relative_to(tmp_path).parts[0] for each in taken] == ["another's", "own"]


def digests(module: Path) -> set[str]:
    return {path.name for path in module.iterdir()}


def test_digests_least_recently_used_make_room_for_new_ones(tmp_path: Path):
    module, neighbour = tmp_path / "shop.caller", tmp_path / "shop.other"
    assert keeping.write(neighbour / "0" / "f", b"kernel")
    for number in range(keeping.VARIANTS):
        assert keeping.write(module / str(number) / "f", b"kernel")
    for number in range(keeping.VARIANTS):
        os.utime(module / str(number), (number, number))
    keeping._use.cache_clear()
    assert keeping._read(module / "0" / "f") == b"kernel"  # is used now
    assert keeping.write(module / "new" / "f", b"kernel")
    assert digests(module) == {"0", *map(str, range(2, keeping.VARIANTS)), "new"}
    assert digests(neighbour) == {"0"}


def test_several_processes_may_make_room_at_once_and_lose_nothing_that_they_write(tmp_path: Path):
    module = tmp_path / "shop.caller"
    for number in range(2 * keeping.VARIANTS):
        (module / str(number)).mkdir(parents=True)
        os.utime(module / str(number), (number, number))
    written: list[bool] = []

    def write(name: str) -> None:
        written.extend(keeping.write(module / name / kernel, b"kernel") for kernel in "fgh")

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert written == [True] * 12
    assert set("abcd") <= digests(module)
    assert len(digests(module)) <= keeping.VARIANTS


def test_kernels_are_read_from_any_home_and_written_to_the_first_that_can_be(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(keeping, "homes", lambda: [Path("/dev/null"), tmp_path])
    first, second = (kernel(Numbers.twice), kernel(Numbers.twice))
    assert (first(3), second(3)) == (6, 6)
    assert (sum(first.stats.cache_hits.values()), sum(second.stats.cache_hits.values())) == (0, 1)


class Numbers:
    """Keeps a function where two kernels can be made of it."""

    @staticmethod
    def twice(number: int) -> int:
        return number * 2


def test_functions_that_differ_only_in_what_they_closed_over_are_kept_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def adding(amount: int) -> Callable[[int], int]:
        return kernel(lambda number: number + amount)

    monkeypatch.setattr(keeping, "homes", lambda: [tmp_path])
    assert [adding(amount)(1) for amount in (1, 2, 1, 2)] == [2, 3, 2, 3]


def test_other_users_of_numba_are_left_alone():
    import numba
    from numba.core import caching

    own = numba.njit(Numbers.twice)
    assert own(2) == 4
    assert isinstance(own._cache, caching.NullCache)
    assert keeping.__name__ not in repr(caching.CacheImpl._locator_classes)

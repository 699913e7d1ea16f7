"""Jars for tests, from Maven Central, through the Ivy that Spark ships, into the user's cache.

Servers that tests talk to, and what Spark needs to talk to them, are too large for the repository, and no packages
of Python. Once fetched they are there offline.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyspark

from harken.spark.runtime.java import java_home

_UNREACHABLE = re.compile(
    r"Host \S+ not found|java\.net\.(?:ConnectException|NoRouteToHostException|UnknownHostException)[^\n)]*"
)


class UnreachableError(Exception):
    """Maven Central cannot be reached at all."""


@dataclass(frozen=True, slots=True)
class Module:
    """A module of Maven Central, with all that it needs, or `alone`."""

    organisation: str
    name: str
    version: str
    alone: bool = False

    def xml(self, folder: str) -> str:
        """What asks Ivy for the module."""
        what = "master" if self.alone else "master,runtime"
        named = f'org="{self.organisation}" name="{self.name}" rev="{self.version}"'
        return f'<dependency {named} conf="{folder}->{what}"/>'


def fetched(
    name: str,
    modules: Mapping[str, Sequence[Module]],
    *,
    without: Sequence[str] = (),
    java_options: Sequence[str] = (),
) -> Path:
    """A folder of the cache with folders of jars: for each key of `modules`, those of the modules listed there.

    `without` names organisations whose jars are left out though modules need them, because Spark has them. Fetches
    them the first time; later calls find them by `name` and a digest of what is asked for. UnreachableError if
    there is no way to the network; AssertionError if anything else goes wrong.
    """
    asked = _asked(name, modules, without)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    final = cache / "harken" / f"{name}-{hashlib.sha256(asked.encode()).hexdigest()[:16]}"
    if final.exists():
        return final
    final.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=final.parent, prefix=f".{name}-") as folder:
        _fetch(asked, Path(folder), java_options)
        # Another process may have been first.
        with suppress(OSError):
            (Path(folder) / "jars").rename(final)
    return final


def of_spark() -> Path:
    """The folder of the jars that come with pyspark."""
    return Path(pyspark.__file__).parent / "jars"


def hadoop_version() -> str:
    """The version of the Hadoop that comes with pyspark: what is added to it must be of the same."""
    (client,) = of_spark().glob("hadoop-client-api-*.jar")
    return client.stem.removeprefix("hadoop-client-api-")


def java() -> str:
    """The program that runs jars: the Java that Spark gets, too."""
    return shutil.which("java", path=java_home() / "bin") or "java"


def _asked(name: str, modules: Mapping[str, Sequence[Module]], without: Sequence[str]) -> str:
    folders = "".join(f'<conf name="{folder}"/>' for folder in modules)
    wanted = [each.xml(folder) for folder, listed in modules.items() for each in listed]
    unwanted = [f'<exclude org="{organisation}"/>' for organisation in without]
    return "\n".join(
        [
            '<ivy-module version="2.0">',
            f'<info organisation="harken" module="{name}-tests"/>',
            f"<configurations>{folders}</configurations>",
            "<dependencies>",
            *wanted,
            *unwanted,
            "</dependencies>",
            "</ivy-module>",
        ]
    )


def _fetch(asked: str, folder: Path, java_options: Sequence[str]) -> None:
    """Have Ivy put the jars into `folder/jars`."""
    (folder / "ivy.xml").write_text(asked, encoding="utf-8")
    (ivy,) = of_spark().glob("ivy-*.jar")
    pattern = f"{folder}/jars/[conf]/[organisation].[artifact]-[revision](-[classifier]).[ext]"
    options = (f"-Divy.default.ivy.user.dir={folder}/ivy", *java_options)
    command = [java(), *options, "-jar", str(ivy), "-ivy", str(folder / "ivy.xml"), "-retrieve", pattern]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    said = finished.stdout + finished.stderr
    unreachable = _UNREACHABLE.search(said)
    if finished.returncode and unreachable and "[SUCCESSFUL ]" not in said:
        raise UnreachableError(unreachable[0])
    assert finished.returncode == 0, said

"""Finding a Java that Spark can run on, before Spark is started.

Without one, Spark fails late and says little: a gateway that exited, or a class file of a version nobody knows.
So Harken looks first, and says what it found and what to install. `scripts/ensure-java.sh` looks in the same
places when the project is set up. Nothing here imports pyspark.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from harken.errors import JavaError

MINIMUM = 17
"""The oldest Java that Spark 4 runs on."""

PLACES = (
    "/usr/lib/jvm/*",
    "/opt/*jdk*",
    "~/.sdkman/candidates/java/*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
)
"""Where Java is usually installed, as patterns of homes."""

ADVICE = f"install openjdk-{MINIMUM}-jre-headless or any newer Java, or set JAVA_HOME to the home of one"

_VERSION = re.compile(r'\bversion "(?:1\.)?(\d+)')  # before Java 9 the version was 1.8.0_392
_HOME = re.compile(r"^\s*java\.home = (.+?)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Runtime:
    """An installed Java: where it is, and its feature version (8, 17, 21)."""

    home: Path
    version: int


def java_home(places: Iterable[str] = PLACES, *, patience: float = 30.0) -> Path:
    """The home of the first Java that is new enough: JAVA_HOME, then `java` on the PATH, then the usual places.

    Starts each Java it comes to, until one will do, and gives each `patience` seconds to answer. Raises JavaError,
    which names all that were found, if none will do.
    """
    refused = []
    for java in _candidates(places):
        try:
            runtime = examine(java, patience=patience)
        except JavaError as error:
            refused.append(error.message)
            continue
        if runtime.version >= MINIMUM:
            return runtime.home
        refused.append(f"{java} is Java {runtime.version}")
    found = "; ".join(refused) or "there is none"
    raise JavaError(f"Spark needs Java {MINIMUM} or newer, but {found}", suggestion=ADVICE)


def examine(java: Path, *, patience: float) -> Runtime:
    """What a `java` executable says about itself; JavaError if it says nothing that makes sense."""
    try:
        # Asked for its settings as well, it tells its home even where `java` is a script that picks a version.
        command = [str(java), "-XshowSettings:properties", "-version"]
        answer = subprocess.run(command, capture_output=True, errors="replace", timeout=patience, check=False)
    except subprocess.TimeoutExpired:
        raise JavaError(f"{java} did not answer in {patience:g} s") from None
    except OSError as error:
        raise JavaError(f"{java} cannot be run ({error.strerror})") from error
    version = _VERSION.search(answer.stderr)
    if version is None:
        raise JavaError(f"{java} does not say its version")
    home = _HOME.search(answer.stderr)
    return Runtime(Path(home[1]) if home else java.resolve().parent.parent, int(version[1]))


def _candidates(places: Iterable[str]) -> Iterator[Path]:
    """Every `java` to look at, once, in order of preference."""
    seen = set()
    for java in _executables(places):
        if java.resolve() not in seen:
            seen.add(java.resolve())
            yield java


def _executables(places: Iterable[str]) -> Iterator[Path]:
    configured = os.environ.get("JAVA_HOME")
    if configured:
        yield Path(configured) / "bin" / "java"
    on_path = shutil.which("java")
    if on_path:
        yield Path(on_path)
    for place in places:
        for home in sorted(glob.glob(os.path.expanduser(place))):
            java = Path(home) / "bin" / "java"
            if java.is_file():
                yield java

"""What Spark calls folders, as Hadoop does, and what a session knows of object stores: nobody says it twice.

Spark reads and writes tables with Hadoop's settings, such as `spark.hadoop.fs.s3a.endpoint`. The same store is
reached with the same settings from here. What they do not say (keys, where machines have roles) is found in the
environment by both.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeAlias

Setting: TypeAlias = Callable[[str], str | None]


def literally(path: str) -> str:
    """A path as Spark has to be told it, which takes some characters for patterns."""
    return "".join(f"\\{char}" if char in "\\{}[]*?" else char for char in path)


def session_options(scheme: str, bucket: str) -> dict[str, Any]:
    """Options for a store, as the active session of this process has them; none without a session."""
    setting = _settings_of_session()
    if setting is None:
        return {}
    if scheme in ("s3", "s3a"):
        return s3_options(lambda name: setting(f"fs.s3a.bucket.{bucket}.{name}") or setting(f"fs.s3a.{name}"))
    if scheme == "gs":
        named = (f"{at}.auth.service.account.json.keyfile" for at in ("fs.gs", "google.cloud"))
        key = next(filter(None, map(setting, named)), None)
        return {"service_account": key} if key else {}
    account = bucket.partition("@")[2]
    key = setting(f"fs.azure.account.key.{account}") or setting("fs.azure.account.key")
    return {"account_key": key} if key else {}


def s3_options(setting: Setting) -> dict[str, Any]:
    """Hadoop's settings for `s3a` as options of a store."""
    names = {
        "access.key": "access_key_id",
        "secret.key": "secret_access_key",
        "session.token": "session_token",
        "endpoint.region": "region",
    }
    options: dict[str, Any] = {ours: value for theirs, ours in names.items() if (value := setting(theirs))}
    if endpoint := setting("endpoint"):
        secure = setting("connection.ssl.enabled") != "false"
        if "://" not in endpoint:
            endpoint = f"{'https' if secure else 'http'}://{endpoint}"
        options["endpoint"] = endpoint
        options.setdefault("region", "us-east-1")
        if endpoint.startswith("http://"):
            options["client_options"] = {"allow_http": True}
    if "Anonymous" in (setting("aws.credentials.provider") or ""):
        options["skip_signature"] = True
    if setting("path.style.access") == "false":
        options["virtual_hosted_style_request"] = True
    return options


def _settings_of_session() -> Setting | None:
    """How to ask the active session, if this process has one that can be asked."""
    if "pyspark.sql" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    try:
        session = SparkSession.getActiveSession()
    except Exception:  # a worker has none, and says so in many ways
        return None
    java = getattr(session, "_jsparkSession", None)
    if java is None:
        return None
    hadoop = java.sessionState().newHadoopConf()  # with what was set since the session was started
    return lambda name: hadoop.get(name)

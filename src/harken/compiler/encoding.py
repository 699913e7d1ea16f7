"""Texts as kernels read them: UTF-8, one after the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harken.model.limits import Limits


def utf8(expressions: Sequence[object], limits: Limits) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """The texts as bytes, text i from offset i on; what is no text, or too long a one, is left empty."""
    most = limits.max_length
    texts: Sequence[str] = expressions  # type: ignore[assignment]  # nearly always; or each is looked at
    if set(map(type, texts)) != {str} or max(map(len, texts)) > most:
        texts = [each if isinstance(each, str) and len(each) <= most else "" for each in expressions]
    try:
        encoded = pa.array(texts, pa.large_string())
    except UnicodeEncodeError:  # a lone surrogate somewhere: the parser will say where
        encoded = pa.array([each if _is_utf8(each) else "" for each in texts], pa.large_string())
    _, offsets, data = encoded.buffers()
    return np.frombuffer(data, np.uint8), np.frombuffer(offsets, np.int64, len(texts) + 1)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

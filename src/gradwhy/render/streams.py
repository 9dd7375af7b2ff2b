"""Writing to a stream that may not be able to take it."""

from __future__ import annotations

from typing import TextIO


def write(stream: TextIO, text: str) -> None:
    """Write the text in one piece. What the stream's encoding lacks is escaped; a closed stream takes nothing."""
    try:
        try:
            stream.write(text)
        except UnicodeEncodeError:
            encoding = getattr(stream, "encoding", None) or "ascii"
            stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except (OSError, ValueError):
        return

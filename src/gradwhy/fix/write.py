"""Writing a changed file: all of it or nothing, and only over what was read."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat

from gradwhy.flow import Text


class WriteError(Exception):
    """The file is as it was; `reason` says why."""

    def __init__(self, reason: Text) -> None:
        super().__init__(reason.key)
        self.reason = reason


def read_content(path: str, sha256: str | None) -> bytes | None:
    """A file's bytes; None where it cannot be read or, with a hash, is no longer what the program read."""
    try:
        with open(path, "rb") as stream:
            content = stream.read()
    except OSError:
        return None
    return content if sha256 is None or hashlib.sha256(content).hexdigest() == sha256 else None


def write_content(path: str, shown: str, before: bytes, after: bytes) -> None:
    """Put `after` in the place of `before`. WriteError where the file changed meanwhile, is read-only, or the disk is full.

    The new text is complete on the disk before the name points to it, so that a kill at any moment leaves one or the other.
    """
    target = os.path.realpath(path)
    if read_content(target, None) != before:
        raise WriteError(Text("fixes/reason/changed", {"file": shown}))
    if not os.access(target, os.W_OK) or not os.stat(target).st_mode & stat.S_IWUSR:
        raise WriteError(Text("fixes/reason/read-only", {"file": shown}))
    beside = f"{target}.{os.getpid()}-{os.urandom(4).hex()}"
    try:
        with open(beside, "xb") as stream:
            stream.write(after)
            stream.flush()
            os.fsync(stream.fileno())
        status = os.stat(target)
        os.chmod(beside, stat.S_IMODE(status.st_mode))
        with contextlib.suppress(OSError, AttributeError):
            os.chown(beside, status.st_uid, status.st_gid)
        os.replace(beside, target)
    except OSError as wrong:
        problem = (wrong.strerror or str(wrong)).lower()
        raise WriteError(Text("fixes/reason/unwritable", {"file": shown, "problem": problem})) from None
    finally:
        with contextlib.suppress(OSError):
            os.unlink(beside)

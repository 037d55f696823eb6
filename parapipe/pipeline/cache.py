"""Solved mapping problems, kept between runs in one SQLite file.

A schedule goes in as JSON, in a transaction of its own, as soon as it is found: a run that is
killed at any moment loses none. Rows carry a digest, and whoever reads a schedule verifies it
again. The journal is SQLite's rollback journal, which unlike a write-ahead log works on a home
folder that several machines share. The disk is not waited for (`synchronous=OFF`): a kill can't
hurt the file, and after a power failure a damaged one is set aside like any other.

No trouble with the cache stops a run. It is told once, and the run goes on without.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from time import time
from types import TracebackType
from typing import Any, Self, TypeVar

from parapipe.mapping.schedule import Answer, Schedule
from parapipe.pipeline.kept_text import schedule_of, text_of, trade_offs_of

FORMAT = 1  # user_version
NAME = f"schedules-{FORMAT}.sqlite"  # so that versions of parapipe don't share a file wrongly
ASIDE = f"{NAME}.aside"
PARAPIPE = 0x50415249  # application_id: "PARI"
LOCK_WAIT_S = 10.0
DAY_S = 86_400.0
SIZE_LIMIT_BYTES = 100_000_000
CHUNK = 500  # parameters of one query; SQLite takes 999 at least
_SCHEMA = "CREATE TABLE schedules (key TEXT PRIMARY KEY, digest TEXT, used_s REAL, schedule TEXT)"
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

Result = TypeVar("Result")


def user_folder() -> Path:
    """Return the user's cache folder: PARAPIPE_CACHE, or parapipe's in XDG_CACHE_HOME or ~/.cache.

    Raises
    ------
    RuntimeError
        The user has no home.
    """
    own = os.environ.get("PARAPIPE_CACHE")
    if own:
        return Path(own)
    shared = os.environ.get("XDG_CACHE_HOME", "")
    # the specification has it that a relative path is ignored
    base = Path(shared) if Path(shared).is_absolute() else Path.home() / ".cache"
    return base / "parapipe"


class Cache:
    """Schedules by key, in a folder of their own; also a context that closes it.

    Parameters
    ----------
    folder
        Made if need be; the user's cache folder if None.
    note
        Takes one sentence about what is wrong with the cache and what becomes of it.
    """

    def __init__(self, folder: Path | None, note: Callable[[str], None]) -> None:
        self._note = note
        self._connection: sqlite3.Connection | None = None
        self._identity: int | None = None
        try:
            self._file = (folder or user_folder()) / NAME
        except RuntimeError:
            self._say("the user has no home folder; set PARAPIPE_CACHE to a folder")
            return
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            self._say(f"its folder {self._file.parent} cannot be made ({error.strerror})")
            return
        self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file; from then on nothing is found or kept."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            with suppress(sqlite3.Error):
                connection.close()

    def get(self, keys: Iterable[str]) -> dict[str, Schedule]:
        """Return the schedules there are, by key, not yet verified; drop what is unreadable."""
        return self._get(keys, schedule_of)

    def get_trade_offs(self, keys: Iterable[str]) -> dict[str, Answer]:
        """Return the sets of schedules there are, as `get` does."""
        return self._get(keys, trade_offs_of)

    def _get(
        self, keys: Iterable[str], read: Callable[[dict[str, Any]], Result]
    ) -> dict[str, Result]:
        wanted = list(dict.fromkeys(keys))
        rows = self._try(lambda connection: _rows(connection, wanted)) or []
        found: dict[str, Result] = {}
        unreadable, old = [], []
        for key, digest, used_s, text in rows:
            try:
                found[key] = read(_content(key, digest, text))
            except (ValueError, TypeError, KeyError, AttributeError):
                unreadable.append(key)
                continue
            if not isinstance(used_s, float) or abs(time() - used_s) > DAY_S:
                old.append(key)
        self.drop(unreadable)
        if old:
            # a day is fine enough to know what was used least recently, and saves writing
            self._write("UPDATE schedules SET used_s = ? WHERE key = ?", [(time(), k) for k in old])
        return found

    def put(self, key: str, answer: Schedule | Answer) -> None:
        """Keep a schedule or a set of them; when this returns, a kill does not lose it."""
        text = text_of(answer)
        row = (key, _digest(key, text), time(), text)
        self._write("INSERT OR REPLACE INTO schedules VALUES (?, ?, ?, ?)", [row])

    def drop(self, keys: Iterable[str]) -> None:
        """Forget schedules, because they turned out to be wrong."""
        rows: list[tuple[object, ...]] = [(key,) for key in keys]
        if rows:
            self._write("DELETE FROM schedules WHERE key = ?", rows)

    def _write(self, statement: str, rows: list[tuple[object, ...]]) -> None:
        def work(connection: sqlite3.Connection) -> None:
            with _transaction(connection):
                connection.executemany(statement, rows)

        self._try(work)

    def _try(self, work: Callable[[sqlite3.Connection], Result]) -> Result | None:
        """Work on the file; if that fails, on a new one in its place; if not even that, give up."""
        for _ in range(2):
            if self._connection is None:
                break
            try:
                return work(self._connection)
            except sqlite3.Error as error:
                self.close()
                if _is_damage(error):
                    self._set_aside(f"is damaged ({error})")
                else:
                    self._say(f"{self._file} cannot be used ({error})")
        return None

    def _open(self, *, again: bool = False) -> None:
        """Connect; a file that is none of ours is set aside, once."""
        self._identity = _identity(self._file)
        connection = None
        try:
            connection = sqlite3.connect(self._file, LOCK_WAIT_S, isolation_level=None)
            wrong = _prepare(connection)
            if wrong is None:
                self._connection = connection
                return
        except sqlite3.Error as error:
            wrong = f"is damaged ({error})" if _is_damage(error) else None
            if wrong is None:
                self._say(f"{self._file} cannot be used ({error})")
        if connection is not None:
            connection.close()
        if wrong is not None and not again:
            self._set_aside(wrong)

    def _set_aside(self, wrong: str) -> None:
        if _identity(self._file) != self._identity:  # another process was quicker
            self._open(again=True)
            return
        aside = self._file.with_name(ASIDE)
        try:
            # first the journal: without it a damaged file is still only a damaged file
            for ending in ("-journal", "-wal", "-shm", ""):
                with suppress(FileNotFoundError):
                    Path(f"{self._file}{ending}").replace(f"{aside}{ending}")
        except OSError as error:
            self._say(f"{self._file} {wrong} and cannot be set aside ({error.strerror}); remove it")
            return
        self._note(f"the cache {self._file} {wrong}; it was moved to {aside} and a new one begun")
        self._open(again=True)

    def _say(self, wrong: str) -> None:
        self._note(f"solved subgraphs are not kept for the next run: {wrong}")


def _identity(file: Path) -> int | None:
    """Return what tells a file from a later one of the same name; None if there is none."""
    try:
        return file.stat().st_ino
    except OSError:
        return None


def _rows(connection: sqlite3.Connection, keys: list[str]) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for first in range(0, len(keys), CHUNK):
        chunk = keys[first : first + CHUNK]
        marks = ",".join("?" * len(chunk))
        query = f"SELECT key, digest, used_s, schedule FROM schedules WHERE key IN ({marks})"
        rows.extend(connection.execute(query, chunk))
    return rows


def _digest(key: str, text: str) -> str:
    return sha256(f"{key} {text}".encode()).hexdigest()


def _content(key: str, digest: str, text: str) -> dict[str, Any]:
    """Read a row; ValueError or TypeError if it is none."""
    if _digest(key, text) != digest:
        raise ValueError("the row was changed")
    content: dict[str, Any] = json.loads(text)
    return content


def _is_damage(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE


def _prepare(connection: sqlite3.Connection) -> str | None:
    """Make a connection, and an empty file, ready for use; or say what is wrong with the file."""
    connection.text_factory = _text
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # only counts as long as it is empty
    connection.execute("PRAGMA journal_mode = TRUNCATE")
    connection.execute("PRAGMA synchronous = OFF")
    if _number(connection, "application_id") == 0:
        with _transaction(connection):  # another process may be doing the same
            if not _number(connection, "schema_version"):
                connection.execute(_SCHEMA)
                connection.execute(f"PRAGMA application_id = {PARAPIPE}")
                connection.execute(f"PRAGMA user_version = {FORMAT}")
    marks = (_number(connection, "application_id"), _number(connection, "user_version"))
    (schema,) = connection.execute("SELECT max(sql) FROM sqlite_master").fetchone()
    if marks != (PARAPIPE, FORMAT) or schema != _SCHEMA:
        return "is not a cache of parapipe"
    _prune(connection)
    return None


def _prune(connection: sqlite3.Connection) -> None:
    """Beyond the limit, forget what was used least recently, down to four fifths of it."""
    page_bytes = _number(connection, "page_size")
    pages = _number(connection, "page_count") - _number(connection, "freelist_count")
    if pages * page_bytes <= SIZE_LIMIT_BYTES:
        return
    with _transaction(connection):
        connection.execute(
            "DELETE FROM schedules WHERE key NOT IN (SELECT key FROM (SELECT key,"
            " sum(length(schedule) + 200) OVER (ORDER BY used_s DESC, key) AS bytes FROM schedules)"
            " WHERE bytes <= ?)",
            (SIZE_LIMIT_BYTES * 4 // 5,),
        )
    connection.executescript("PRAGMA incremental_vacuum")  # `execute` would free a single page


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    (value,) = connection.execute(f"PRAGMA {pragma}").fetchone()
    return int(value)


def _text(value: bytes) -> str:
    return value.decode(errors="replace")


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Begin as a writer at once: a reader that becomes one later can deadlock with another."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")

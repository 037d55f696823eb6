"""Answers of solvers, kept between runs in one SQLite file: text by key.

A text goes in by a transaction of its own, as soon as it is known: a run that is killed at any
moment loses none. Rows carry a digest, and whoever reads an answer verifies it again. The journal
is SQLite's rollback journal, which unlike a write-ahead log works on a home folder that several
machines share. The disk is not waited for (`synchronous=OFF`): a kill cannot damage the file, and
after a power failure a damaged one is set aside like any other.

No trouble with the cache stops a run. It is told once, and the run goes on without.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from math import inf
from pathlib import Path
from time import time
from typing import Annotated, Any, Self, TypeVar

from pydantic import BeforeValidator, TypeAdapter

from parapipe.files.user_folders import cache_folder
from parapipe.solvers.schedule import Answer


def _restore_infinity(content: object) -> object:
    """Put back the infinite resolution, which is null in JSON."""
    unknown = isinstance(content, dict) and content.get("resolution", 0) is None
    return {**content, "resolution": inf} if unknown else content  # type: ignore[dict-item]


_ANSWER: TypeAdapter[Answer] = TypeAdapter(Annotated[Answer, BeforeValidator(_restore_infinity)])


def answer_text(answer: Answer) -> str:
    """Write an answer as JSON; every number comes back to the last bit."""
    return _ANSWER.dump_json(answer).decode()


def read_answer(text: str) -> Answer:
    """Read an answer; ValueError if the text is none."""
    return _ANSWER.validate_json(text)


FORMAT = 1  # user_version
NAME = f"schedules-{FORMAT}.sqlite"  # so that versions of parapipe don't share a file wrongly
ASIDE = f"{NAME}.aside"
PARAPIPE = 0x50415249  # application_id: "PARI"
LOCK_WAIT_S = 10.0
DAY_S = 86_400.0
SIZE_LIMIT_BYTES = 100_000_000
_SCHEMA = "CREATE TABLE schedules (key TEXT PRIMARY KEY, digest TEXT, used_s REAL, schedule TEXT)"
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

Result = TypeVar("Result")


class Cache:
    """Texts by key, in a file in a folder of their own; also a context that closes it.

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
        try:
            self._file = (folder or cache_folder()) / NAME
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except RuntimeError:
            self._give_up("the user has no home folder; set PARAPIPE_CACHE to a folder")
        except OSError as error:
            self._give_up(f"its folder {self._file.parent} cannot be made ({error.strerror})")
        else:
            self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; from then on nothing is found or kept."""
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def get(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the texts there are, by key; those that were changed since are dropped."""
        wanted = dict.fromkeys(keys)
        rows = self._attempt(lambda connection: _select_rows(connection, wanted)) or []
        texts = {key: text for key, digest, _, text in rows if _digest(key, text) == digest}
        self.drop(key for key, *_ in rows if key not in texts)
        # a day is fine enough to know what was used least recently, and saves writing
        now_s = time()
        if old := [(now_s, key) for key, _, used_s, _ in rows if _is_old(used_s, now_s)]:
            self._write("UPDATE schedules SET used_s = ? WHERE key = ?", old)
        return texts

    def put(self, key: str, text: str) -> None:
        """Keep a text; when this returns, a kill does not lose it."""
        row = (key, _digest(key, text), time(), text)
        self._write("INSERT OR REPLACE INTO schedules VALUES (?, ?, ?, ?)", [row])

    def drop(self, keys: Iterable[str]) -> None:
        """Forget texts, because they turned out to be wrong."""
        if rows := [(key,) for key in keys]:
            self._write("DELETE FROM schedules WHERE key = ?", rows)

    def _write(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        def work(connection: sqlite3.Connection) -> None:
            with _transaction(connection):
                connection.executemany(statement, rows)

        self._attempt(work)

    def _attempt(self, work: Callable[[sqlite3.Connection], Result]) -> Result | None:
        """Work on the file; if it is damaged, on a new one in its place; None if that fails."""
        for _ in range(2):
            if self._connection is not None:
                try:
                    return work(self._connection)
                except sqlite3.Error as error:
                    self.close()
                    self._recover(error)
        return None

    def _open(self, *, retried: bool = False) -> None:
        self._identity = _identity(self._file)
        try:
            self._connection = _connect(self._file)
        except sqlite3.Error as error:
            self._recover(error, retried=retried)

    def _recover(self, error: sqlite3.Error, *, retried: bool = False) -> None:
        """Begin a new file in place of one that is damaged or none of ours, once."""
        if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _DAMAGE:
            self._give_up(f"{self._file} cannot be used ({error})")
        elif not retried:
            self._set_aside(str(error))

    def _set_aside(self, wrong: str) -> None:
        if _identity(self._file) == self._identity:  # else another process has done it already
            aside = self._file.with_name(ASIDE)
            wrong = f"{self._file} is damaged or no cache of parapipe ({wrong})"
            try:
                # first the journal: without it a damaged file is still only a damaged file
                for ending in ("-journal", "-wal", "-shm", ""):
                    with suppress(FileNotFoundError):
                        Path(f"{self._file}{ending}").replace(f"{aside}{ending}")
            except OSError as error:
                self._give_up(f"{wrong} and cannot be moved ({error.strerror}); remove it")
                return
            self._note(f"the cache {wrong}; it was moved to {aside} and a new one begun")
        self._open(retried=True)

    def _give_up(self, wrong: str) -> None:
        self._note(f"solved subgraphs are not kept for the next run: {wrong}")


class _ForeignError(sqlite3.DatabaseError):
    """The file is a database, and another program's or another version's."""

    sqlite_errorcode = sqlite3.SQLITE_NOTADB


def _identity(file: Path) -> int | None:
    """Return what tells a file from a later one of the same name; None if there is none."""
    try:
        return file.stat().st_ino
    except OSError:
        return None


def _digest(key: str, text: str) -> str:
    return sha256(f"{key} {text}".encode()).hexdigest()


def _is_old(used_s: object, now_s: float) -> bool:
    return not isinstance(used_s, float) or abs(now_s - used_s) > DAY_S


def _select_rows(connection: sqlite3.Connection, keys: Iterable[str]) -> list[tuple[Any, ...]]:
    query = "SELECT key, digest, used_s, schedule FROM schedules WHERE key = ?"
    with _transaction(connection, "BEGIN"):
        return [row for key in keys for row in connection.execute(query, (key,))]


def _connect(file: Path) -> sqlite3.Connection:
    """Open a file, which may be new, within its size; sqlite3.Error if it cannot be used."""
    connection = sqlite3.connect(file, LOCK_WAIT_S, isolation_level=None)
    try:
        _prepare(connection)
        _prune(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection) -> None:
    connection.text_factory = lambda value: value.decode(errors="replace")
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
        raise _ForeignError("it holds something else")


def _prune(connection: sqlite3.Connection) -> None:
    """Beyond the limit, forget what was used least recently, down to four fifths of it."""
    pages = _number(connection, "page_count") - _number(connection, "freelist_count")
    if pages * _number(connection, "page_size") <= SIZE_LIMIT_BYTES:
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


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
    """Begin as a writer at once: a reader that becomes one later can deadlock with another."""
    connection.execute(begin)
    try:
        yield
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")

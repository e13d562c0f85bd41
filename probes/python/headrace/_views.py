"""views(): the documented views of a run store (docs/store.md) as tables, read-only: Arrow where pyarrow is installed, else
pandas, else lists of dictionaries."""
import importlib
import os
import sqlite3
import urllib.parse

_APPLICATION = 0x68647263  # in the header of our databases


def _installed(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


class Views:
    """The views of one database. `views["operator_summary"]` is one as a table; arrow(), pandas() and rows() say as what,
    and `run` of which run: an id, a name, or "latest"."""

    def __init__(self, path):
        self.path = os.fspath(path)
        address = f"file:{urllib.parse.quote(os.path.abspath(self.path))}?mode=ro"
        try:
            self._store = sqlite3.connect(address, uri=True)
            self._store.execute("PRAGMA trusted_schema = OFF")
            application = self._store.execute("PRAGMA application_id").fetchone()[0]
        except sqlite3.Error as error:
            raise ValueError(f"{self.path}: {error}") from None
        if application != _APPLICATION:
            raise ValueError(f"{self.path}: is not a run store of headrace")
        # Names come from other programs.
        self._store.text_factory = lambda text: text.decode("utf-8", "replace")

    def names(self):
        """The views there are."""
        found = self._store.execute("SELECT name FROM sqlite_master WHERE type = 'view' ORDER BY name")
        return [name for name, in found]

    def _run(self, run):
        if run == "latest":
            found = self._store.execute("SELECT MAX(run_id) FROM run_summary")
        else:
            found = self._store.execute("SELECT MAX(run_id) FROM run_summary WHERE run_id = ? OR name = ?",
                                        (run if isinstance(run, int) else None, str(run)))
        number = found.fetchone()[0]
        if number is None:
            raise KeyError(f"{self.path}: no run {run!r}")
        return number

    def _read(self, name, run):
        if name not in self.names():
            raise KeyError(f"{self.path}: no view {name!r}; names() has them")
        columns = [column[0] for column in self._store.execute(f"SELECT * FROM {name} LIMIT 0").description]
        if run is None:
            rows = self._store.execute(f"SELECT * FROM {name}")
        elif "run_id" in columns:
            rows = self._store.execute(f"SELECT * FROM {name} WHERE run_id = ?", (self._run(run),))
        else:
            raise KeyError(f"view {name!r} is of no single run")
        return columns, rows.fetchall()

    def _columns(self, name, run):
        """Column -> values of one type; None is not measured."""
        columns, rows = self._read(name, run)
        values = dict(zip(columns, zip(*rows))) if rows else {column: () for column in columns}
        for column, cells in values.items():
            if any(isinstance(cell, float) for cell in cells):  # SQLite keeps whole numbers of a REAL column as such
                values[column] = tuple(float(cell) if isinstance(cell, int) else cell for cell in cells)
        return values

    def rows(self, name, run=None):
        """A dictionary for each row."""
        columns, rows = self._read(name, run)
        return [dict(zip(columns, row)) for row in rows]

    def arrow(self, name, run=None):
        """A pyarrow.Table. Whole numbers stay exact."""
        arrow = importlib.import_module("pyarrow")
        return arrow.table({column: arrow.array(cells) for column, cells in self._columns(name, run).items()})

    def pandas(self, name, run=None):
        """A pandas.DataFrame. Whole numbers stay exact: a column with gaps is of the type Int64."""
        pandas = importlib.import_module("pandas")

        def column(cells):
            present = [cell for cell in cells if cell is not None]
            whole = present and all(isinstance(cell, int) for cell in present)
            return pandas.Series(list(cells), dtype="Int64" if whole else None)

        return pandas.DataFrame({name: column(cells) for name, cells in self._columns(name, run).items()})

    def __getitem__(self, name):
        if _installed("pyarrow"):
            return self.arrow(name)
        return self.pandas(name) if _installed("pandas") else self.rows(name)

    def __contains__(self, name):
        return name in self.names()

    def close(self):
        self._store.close()


def views(db=None):
    """The views of the database `db` ($HEADRACE_DB, else ./headrace.db). Raises ValueError where it is none of ours."""
    return Views(db if db is not None else os.environ.get("HEADRACE_DB") or "headrace.db")

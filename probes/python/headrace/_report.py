"""report(): the page of a recorded run, in a notebook or as data. The program `headrace` makes it."""
import html
import json
import os
import pathlib
import subprocess

from headrace._program import ProgramMissing, program

_DECIDED, _UNDECIDED = 0, 4  # exit codes with which there is a page


class ReportError(RuntimeError):
    """There is no page; says why and what to do."""


def _page(run, db, form):
    try:
        found = program()
    except ProgramMissing as error:
        raise ReportError(str(error)) from None
    command = [found, "report", str(run), "--format", form, "--color", "never"]
    if db is not None:
        command += ["--db", os.fspath(db)]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except OSError as error:
        raise ReportError(f"{command[0]}: {error.strerror}") from None
    if done.returncode not in (_DECIDED, _UNDECIDED):
        text = done.stderr.decode("utf-8", "replace").strip()
        raise ReportError(text or f"headrace report ended with {done.returncode}")
    return done.stdout.decode("utf-8", "replace")


class Report:
    """The report of one run. A notebook shows its page; `data` is what `headrace report --json` says, `text` what
    `headrace report` prints, `html` the page as one file."""

    def __init__(self, run, db):
        self._db, self._pages = db, {}
        self.data = json.loads(_page(run, db, "json"))
        # The same run in every form, also where "latest" is another one by now.
        self._run = self.data.get("run", {}).get("id", run)

    def _form(self, form):
        if form not in self._pages:
            self._pages[form] = _page(self._run, self._db, form)
        return self._pages[form]

    @property
    def text(self):
        return self._form("text")

    @property
    def html(self):
        return self._form("html")

    def save(self, path):
        """Writes the page as one HTML file, which needs no network."""
        pathlib.Path(path).write_text(self.html, encoding="utf-8")

    def __repr__(self):
        return self.text

    def _repr_html_(self):
        # A frame of its own: neither do the page's styles reach the notebook's, nor its scripts the notebook.
        return (f'<iframe srcdoc="{html.escape(self.html)}" sandbox="allow-scripts" '
                'frameborder="0" style="width:100%;height:900px" title="headrace report"></iframe>')


def report(run="latest", db=None):
    """The report of a run: an id, a name, or "latest", of the database `db` ($HEADRACE_DB, else ./headrace.db). Raises
    ReportError."""
    return Report(run, db)

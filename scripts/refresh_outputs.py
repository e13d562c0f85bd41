#!/usr/bin/env python3
"""Refreshes the outputs that README.md and documents show: refresh_outputs.py HEADRACE [FILE...]

README.md has the first page of a demo between two marks. In docs/*.md, what a block shows below a line "$ headrace ..." is what that
command prints; a command below which a block shows nothing is run, and shows nothing. The commands of one document run in order in one
folder. Without FILE all that have outputs are refreshed, but the tutorial, which scripts/tutorial.py types into an empty system.
Wants a machine that does nothing else.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
MARKED = re.compile(r"(<!-- page: demo -->\n```\n).*?(```\n<!-- /page: demo -->)", re.DOTALL)
BLOCK = re.compile(r"^```\n(\$ headrace .*?)^```$", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^\$ (headrace .*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
MOST_COLUMNS = 118


class Folder:
    """Where the commands run, with a database of their own and the pipelines of the tree."""

    def __init__(self, headrace, folder):
        self.folder = pathlib.Path(folder)
        # Pages name the program as it was called: by its name, as where it is installed.
        self.environment = {**os.environ, "NO_COLOR": "1", "LC_ALL": "C.UTF-8", "PATH": f"{headrace.parent}:{os.environ['PATH']}"}
        self.environment.pop("HEADRACE_DB", None)
        shutil.copytree(ROOT / "workloads", self.folder / "workloads")

    def printed(self, command, columns):
        """What a terminal of that width would show."""
        done = subprocess.run(command, shell=True, cwd=self.folder, env={**self.environment, "COLUMNS": str(columns)}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
        if done.returncode:
            sys.exit(f"refresh_outputs.py: {command}: ended with {done.returncode}: {done.stdout.strip()}")
        return done.stdout


def demo_page(folder):
    folder.printed("headrace demo", 80)
    page = folder.printed("headrace report 1", 80)
    if "'demo'" not in page.splitlines()[0] or " fix " not in page:
        sys.exit(f"refresh_outputs.py: this is no demo with a fix:\n{page}")
    if "BUSY MACHINE" in page:
        sys.exit("refresh_outputs.py: other programs had the cores; run it on a quiet machine")
    return page


def shortened(line):
    """A line that would be too long on a page ends at a word."""
    return line if len(line) <= MOST_COLUMNS else line[:MOST_COLUMNS - 4].rsplit(" ", 1)[0] + " ..."


def refreshed(text, folder):
    """The document with what its commands print now."""
    def command(found):
        printed = folder.printed(found[1], MOST_COLUMNS)
        if found[2].strip():
            printed = "".join(shortened(line.rstrip()) + "\n" for line in printed.strip("\n").splitlines())
        else:
            printed = found[2]
        return f"$ {found[1]}\n{printed}"

    return BLOCK.sub(lambda block: "```\n" + COMMAND.sub(command, block[1]) + "```", text)


def has_outputs(text):
    return any(command[2].strip() for block in BLOCK.finditer(text) for command in COMMAND.finditer(block[1]))


def main(headrace, *files):
    headrace = pathlib.Path(headrace).resolve()
    for file in map(pathlib.Path, files or [README, *sorted((ROOT / "docs").glob("*.md"))]):
        text = file.read_text(encoding="utf-8")
        if not MARKED.search(text) and not has_outputs(text):
            continue
        with tempfile.TemporaryDirectory() as scratch:
            folder = Folder(headrace, scratch)
            new = refreshed(text, folder)
            if MARKED.search(new):
                page = demo_page(folder)
                new = MARKED.sub(lambda found: found[1] + page + found[2], new)
        file.write_text(new, encoding="utf-8")
        print(f"{file.name}: {'refreshed' if new != text else 'as it was'}")


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    main(*sys.argv[1:])

#!/usr/bin/env python3
"""Puts the first page of a demo into README.md, between its two marks: readme_demo.py HEADRACE [DATABASE]

Without DATABASE, runs the demo first, in a folder of its own: on a machine that does nothing else. DATABASE has a demo as run 1.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

README = pathlib.Path(__file__).resolve().parent.parent / "README.md"
MARKED = re.compile(r"(<!-- page: demo -->\n```\n).*?(```\n<!-- /page: demo -->)", re.DOTALL)


def main(headrace, database=None):
    headrace = pathlib.Path(headrace).resolve()
    with tempfile.TemporaryDirectory() as folder:
        # The page names the program as it was called: by its name, as where it is installed.
        environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "LC_ALL": "C.UTF-8", "PATH": f"{headrace.parent}:{os.environ['PATH']}"}
        environment.pop("HEADRACE_DB", None)
        if database:
            for suffix in ("", "-wal", "-shm"):
                if (file := pathlib.Path(database + suffix)).exists():
                    (pathlib.Path(folder) / f"headrace.db{suffix}").write_bytes(file.read_bytes())
        else:
            subprocess.run(["headrace", "demo"], cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
        page = subprocess.run(["headrace", "report", "1"], cwd=folder, env=environment, check=True, text=True, stdout=subprocess.PIPE).stdout
    if "'demo'" not in page.splitlines()[0] or " fix " not in page:
        sys.exit(f"readme_demo.py: this is no demo with a fix:\n{page}")
    if "BUSY MACHINE" in page:
        sys.exit("readme_demo.py: other programs had the cores; run it on a quiet machine")
    text, count = MARKED.subn(lambda found: found[1] + page + found[2], README.read_text(encoding="utf-8"))
    if count != 1:
        sys.exit("readme_demo.py: README.md lacks its marks")
    README.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(*sys.argv[1:])

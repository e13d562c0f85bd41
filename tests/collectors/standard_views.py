#!/usr/bin/env python3
"""The views of the run store are standard SQL: PostgreSQL takes them as well as SQLite does.

usage: standard_views.py FOLDER        FOLDER: collectors/store

SQLite forgives what other databases refuse: a subquery without a name, a column outside GROUP BY, MAX of two
values, functions of its own. Another database takes such a view only after it is written anew, so none may come in.
PostgreSQL runs once, without a server, in a folder that is removed. Where it is not installed the text alone is searched
for what can be seen in it, and the exit code is 77.
"""
import glob
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def programs():
    """The folder of initdb and postgres, or None."""
    folders = sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)
    return next((f for f in folders if os.access(f + "/initdb", os.X_OK) and os.access(f + "/postgres", os.X_OK)), None)


def owner():
    """PostgreSQL refuses to run as root."""
    if os.getuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    return None


def statements(text):
    """Each on one line; a statement ends where its line does."""
    code = re.sub(r"--[^\n]*", "", text)
    return [" ".join(part.split()) for part in code.split(";") if part.strip()]


def tables(folder):
    """The migrations, with the words of table definitions that are SQLite's own in PostgreSQL's."""
    found = []
    for path in sorted(glob.glob(folder + "/schema/*.sql")):
        for statement in statements(read(path)):
            for word, other in ((r"\)[ ]*STRICT(, WITHOUT ROWID)?$", ")"), (r" AUTOINCREMENT\b", ""),
                                (r"\bINTEGER\b", "BIGINT"), (r"\bREAL\b", "DOUBLE PRECISION")):
                statement = re.sub(word, other, statement)
            found.append(statement)
    return found


def views(folder):
    """What a view reads comes before it; SQLite does not ask for that."""
    texts = {os.path.basename(path)[:-4]: read(path) for path in glob.glob(folder + "/views/*.sql")}
    created = {name: next(s for s in statements(text) if s.startswith("CREATE VIEW")) for name, text in texts.items()}
    ordered = []

    def add(name):
        for other in created:
            if other != name and other not in ordered and re.search(rf"\b{other}\b", created[name]):
                add(other)
        if name not in ordered:
            ordered.append(name)

    for name in sorted(created):
        add(name)
    return [(name, created[name]) for name in ordered]


def whole(sql, begin):
    """What stands between the parenthesis at `begin` and its end, and where that is."""
    depth = 0
    for i in range(begin, len(sql)):
        depth += {"(": 1, ")": -1}.get(sql[i], 0)
        if depth == 0:
            return sql[begin + 1:i], i
    return sql[begin + 1:], len(sql)


def outermost(sql):
    """The text outside of its parentheses."""
    kept, depth = "", 0
    for letter in sql:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        kept += letter if depth == 0 else ""
    return kept


def lenient(sql):
    """What the text shows of SQLite's leniency: all but columns outside GROUP BY, and types."""
    sql = re.sub(r"'[^']*'", "''", sql)
    faults = [f"{m[1]} is SQLite's own" for m in re.finditer(r"\b(instr|ifnull|iif|printf|group_concat|total)\s*\(", sql, re.I)]
    for match in re.finditer(r"\b(MIN|MAX)\(", sql, re.I):
        if "," in outermost(whole(sql, match.end() - 1)[0]):
            faults.append(f"{match[1]} of several values: write CASE")
    for match in re.finditer(r"\b(FROM|JOIN)\s*\(", sql, re.I):
        after = sql[whole(sql, match.end() - 1)[1] + 1:]
        if not re.match(r"\s*AS\s+\w", after, re.I):
            faults.append("a subquery without a name: write AS")
    return faults


def refused(run, as_user, folder, sql):
    """The errors PostgreSQL printed for these statements, each with the statement."""
    result = subprocess.run([run + "/postgres", "--single", "-j", "-F", "-D", folder + "/data", "postgres"],
                            input="".join(f"{s};\n\n" for s in sql), capture_output=True, text=True, cwd=folder, **as_user)
    if result.returncode != 0:
        sys.exit(f"postgres ended with {result.returncode}:\n{result.stderr}")
    lines = result.stderr.splitlines()
    return [line for line in lines if re.search(r"\b(ERROR|FATAL|STATEMENT|HINT|LINE \d+):", line)]


def main():
    store = sys.argv[1]
    wanted = views(store)
    seen = [f"{name}: {fault}" for name, sql in wanted for fault in lenient(sql)]
    if seen:
        sys.exit("not standard SQL:\n" + "\n".join(seen))
    samples = ("SELECT instr(a, '/') FROM t", "SELECT MAX(0, f(a, b)) FROM t", "SELECT x FROM (SELECT 1 AS x) WHERE x > 0")
    if any(len(lenient(sample)) != 1 for sample in samples):
        sys.exit("the search of the text finds nothing")
    run, as_user = programs(), owner()
    if run is None or as_user is None:
        print(f"the text of {len(wanted)} views shows nothing; skipped: PostgreSQL is not installed (Debian package postgresql)")
        sys.exit(SKIPPED)
    folder = tempfile.mkdtemp(prefix="headrace-standard-")
    try:
        if as_user:
            os.chown(folder, as_user["user"], as_user["group"])
        subprocess.run([run + "/initdb", "-D", folder + "/data", "--no-sync", "--encoding=UTF8", "--locale=C", "-A", "trust"],
                       check=True, stdout=subprocess.DEVNULL, cwd=folder, **as_user)
        # The last statement is refused: else this would pass where PostgreSQL says nothing at all.
        control = "CREATE VIEW not_standard AS SELECT MAX(1, 2) AS x"
        errors = refused(run, as_user, folder, tables(store) + [sql for _, sql in wanted] + [control])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if not any("max(integer, integer)" in line for line in errors):
        sys.exit("PostgreSQL took MAX of two values, so it did not check the views:\n" + "\n".join(errors))
    faults = sum(" ERROR: " in line or line.startswith("ERROR:") for line in errors)
    if faults != 1:
        sys.exit("not standard SQL:\n" + "\n".join(errors))
    print(f"{len(wanted)} views are taken by PostgreSQL")


main()

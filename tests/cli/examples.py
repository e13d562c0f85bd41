#!/usr/bin/env python3
"""Runs the command lines that headrace shows to people, as they are written: those of README.md and of the documents, and the
examples of every command's --help.

usage: examples.py run WORK DOCUMENT...  the lines of these documents, in folders made below WORK
       examples.py run WORK a..b         the examples of the commands from letter a to letter b, and of `headrace --help`
       examples.py stale                 fails for an exception below that no line needs any more
       examples.py links                 fails for a link to a file that is not there, or a document that the index lacks

What the lines name is made once for each HEADRACE, in the folder `examples` beside it.

A line fails when it is refused (exit 2), finds its input bad (5), or fails (1, 126, 127, a signal). A busy machine may leave a
verdict open (4), and a gate may fail (3). HEADRACE is the executable.
"""
import atexit
import fcntl
import functools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
HEADRACE = os.path.abspath(os.environ.get("HEADRACE", SOURCE / "build/headrace"))
DOCUMENTS = ["README.md", *sorted(str(file.relative_to(SOURCE)) for file in SOURCE.glob("docs/*.md"))]
GOOD = {0, 3, 4}
# Only a hang takes as long.
LIMIT_S = 600

# Lines that do not end by themselves, or not soon: Ctrl-C once they work, which must end them with 130 or 0.
INTERRUPTED = {
    r"^headrace profile -p \d+ --name before": "records until the process ends",
    r"^headrace tune \S+ --continuous": "goes on until it is stopped",
    r"^headrace collect --discover": "a service",
    r"^headrace collect --pid": "records until the process ends",
    r"^headrace serve(?!ice)": "answers until it is stopped",
    r"^headrace doctor --calibrate": "measures the machine for 16 s; tests/cli/doctor.bats",
    r"^headrace service (up|dispatcher|worker|pool|lend)": "its parts wait for each other; service.bats and service_pool.bats play them",
    r"^headrace characterize rm1 rm2 rm3": "takes ten minutes; tests/cli/characterize.bats makes whole studies of small tables",
    r"^headrace characterize rm1 --quick": "takes a minute and more; tests/cli/characterize.bats",
    r"^headrace characterize rm1 --ladder-only": "takes minutes; tests/cli/characterize_ladder.bats",
    r"^headrace characterize TABLE": "the ladder takes minutes; tests/cli/characterize.bats",
}
# Lines that are not run.
LEFT_OUT = {
    r"^headrace (tune .*--cache|run .*--plan plan.json --checkpoint)": "measures caches for minutes; tests/cli/tune_cache.bats",
    r"--feed unix:": "needs a listener; tests/cli/tune_feed.bats",
    r"^headrace export .*(--endpoint|/var/lib/)": "needs a collector, or a folder of another program; tests/cli/export.bats",
    r"^headrace completion zsh >": "names a folder as zsh alone does; tests/cli/manners.bats",
    r"^headrace profile -- \./reader": "needs a program that is compiled first; tests/python/test_install.py",
    r"^headrace consume|^headrace profile -- headrace consume|delivery\.to=unix":
        "two terminals; tests/cli/delivery.bats runs both ends",
    r"^headrace characterize rm2 --json": "takes minutes, and its pipe hides the interrupt; tests/cli/characterize.bats",
    r"^headrace apply": "needs the latest run to be one of a pipeline file, and half a minute; tests/cli/apply.bats",
    r"^headrace top(?!.*--(once|json))": "needs a terminal; tests/cli/top.bats",
    r"^headrace service (status|drain|end|submit)": "asks a job that runs in another terminal; tests/cli/service.bats",
    r"^headrace service .*/shared/ctr": "a job of several machines; tests/cli/service_network.bats",
    r"^headrace (report|serve|plan) .*(--fleet |headrace-fleet\.db)": "needs the file of a job; tests/cli/fleet_report.bats",
    r"^ssh ": "needs another machine",
    r"^headrace tune -p ": "needs a pipeline whose knobs a command sets; tests/cli/tune_feed.bats",
}
# What is made shorter or smaller, so that a line takes seconds.
SHORTER = [
    (r"--rows 1000000\b", "--rows 2000"),
    (r"^headrace generate (rm\d)(?!.*--rows)", r"headrace generate \1 --rows 2000"),
    (r"(--duration|-d) \d+s", r"\1 1s"),
    (r"^(headrace generate .*-o )(\S+)", r"\1generated/\2"),  # where nothing is yet
    (r"^(headrace compare )((?!.*--(a|b)-cmd).*(\.toml|--a ).*)", r"\1--duration 300ms \2"),
    (r"^(headrace compare --duration 300ms .*?) --duration \d+s", r"\1"),
    (r"^(headrace compare )((?!.*--pairs)(?=.*(\.toml|--a )).*)", r"\1--pairs 2 \2"),
    (r"--pairs \d+\b", "--pairs 2"),
    (r"^(headrace compare )((?!.*--pairs)(?=.*-cmd ).*)", r"\1--pairs 2 \2"),
    (r"--split 30s", "--split 600ms"),
    (r"^headrace compare (\d)@10s-(20s)? (\d)@(40s-50s|10s-)", r"headrace compare \1@0s-600ms \3@600ms-"),
    (r"^(headrace export .*--since) 5s --until 8s", r"\1 0s --until 1s"),
    (r"^(headrace compare )((?!.*--level).*(-cmd|\.toml))", r"\1--level 2 \2"),  # begins a run a second sooner
    # Of a run that ends before the first change is verified; tests/cli/tune.bats waits for more.
    (r"^headrace tune (?!.*--(continuous|dry-run|duration))rm1/pipeline\.toml", r"headrace tune --duration 2s before.toml"),
    (r"^headrace tune rm1/pipeline\.toml --dry-run", r"headrace tune before.toml --dry-run"),
    (r"^headrace run (rm1/pipeline\.toml)(?!.*(--duration|--epochs))", r"headrace run \1 --duration 1500ms"),
    (r"^(headrace run .*--duration) 1s", r"\1 1500ms"),  # a run shorter than that has no verdict
    (r"^headrace demo", r"headrace demo --duration 2s"),
    (r"outside\.py 8 ", "outside.py 6 "),
    (r"^headrace serve(?!ice)(?!.*--port)", r"headrace serve --port 0"),  # another test may have the usual one
]

SLOW_PIPELINE = """pipeline = { name = "%s" }
source = { synthetic = { rows = 8, bytes = "16KiB" }, epochs = 0 }
consumer = { step = "1ms" }
stage = [{ name = "load", operators = [{ sleep = "%s" }] }, { name = "pack", operators = [{ sleep = "200us" }] }]
"""

# A training loop of two seconds, with operators where the Python package's library is built.
TRAIN = """import time
import headrace
def batches():
    for _ in range(400):
        with headrace.operator("load") as op:
            time.sleep(0.004)
            op.rows(8)
        yield [0] * 8
for batch in headrace.wrap(batches()):
    time.sleep(0.001)
"""


@functools.cache
def runtime_folder():
    """Short, as sockets lie below it."""
    folder = tempfile.mkdtemp(prefix="hr-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def run(*arguments, folder):
    environment = {name: value for name, value in os.environ.items() if name != "HEADRACE_DB"}
    subprocess.run([HEADRACE, *arguments], cwd=folder, check=True, capture_output=True, timeout=LIMIT_S, env=environment)


def prepared():
    """The folder with what the lines name. Others that want it meanwhile wait."""
    place = pathlib.Path(HEADRACE).parent / "examples"
    place.mkdir(exist_ok=True)
    made = place / "made"
    with open(place / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        newest = max(os.path.getmtime(HEADRACE), os.path.getmtime(__file__))
        if not made.exists() or made.stat().st_mtime <= newest:
            shutil.rmtree(place / "prepared", ignore_errors=True)
            prepare(place / "prepared")
            made.touch()
    return place / "prepared"


def prepare(folder):
    """What the lines name: tables, pipelines, programs, and a database with runs."""
    folder.mkdir()
    (folder / "bin").mkdir()
    (folder / "bin/headrace").symlink_to(HEADRACE)
    (folder / "bin/python").symlink_to(sys.executable)
    (folder / "docs").symlink_to(SOURCE / "docs")
    (folder / "workloads").symlink_to(SOURCE / "workloads")
    (folder / "generated").mkdir()
    (folder / "data").mkdir()
    (folder / "tmp").mkdir()
    (folder / ".config/fish/completions").mkdir(parents=True)
    small = ["--rows", "2048", "--features", "0.02", "--stripe-rows", "512", "--seed", "1"]
    run("generate", "rm1", "-o", "rm1", *small, folder=folder)
    for name in ("table", "t", "TABLE", "maps"):
        shutil.copytree(folder / "rm1", folder / name)
    part = (folder / "rm1/part-00000.dwrf").read_bytes()
    (folder / "part-00000.dwrf").write_bytes(part)
    middle = len(part) // 2
    (folder / "damaged.dwrf").write_bytes(part[:middle] + bytes(64) + part[middle + 64:])
    pipeline = (folder / "rm1/pipeline.toml").read_text()
    here = pipeline.replace('table = "."', f'table = "{folder}/rm1"')
    for name in ("p.toml", "train.toml"):
        (folder / name).write_text(here)
    for name, sleep in (("before", "4ms"), ("after", "1ms"), ("base", "4ms"), ("new", "1ms")):
        (folder / f"{name}.toml").write_text(SLOW_PIPELINE % (name, sleep))
    (folder / "my.toml").write_text('name = "mine"\n[table]\ndense_features = 40\nsparse_features = 8\n')
    (folder / "keys.txt").write_text("k1 000102030405060708090a0b0c0d0e0f\n")
    (folder / "keys.txt").chmod(0o600)
    (folder / "train.py").write_text(TRAIN)
    for name in ("old.py", "new.py"):
        (folder / name).write_text("import time\ntime.sleep(0.3)\n")
    run("run", "rm1/pipeline.toml", "--no-record", "-q", "--epochs", "1", "--log-reads", "reads.jsonl", folder=folder)
    shutil.copy(folder / "reads.jsonl", folder / "jobs.jsonl")
    for number in range(4):  # 1 to 4
        run("run", "rm1/pipeline.toml", "-q", "--duration", "1500ms", "--name", "nightly" if number == 3 else f"run{number}",
            folder=folder)
    for number in range(4):
        run("runs", "tag", str(number + 1), "before" if number < 2 else "after", folder=folder)
    run("plan", "latest", "-o", "plan.json", folder=folder)


def lines_of(document):
    """The lines of a document's code blocks that start headrace."""
    inside = False
    for line in (SOURCE / document).read_text(encoding="utf-8").splitlines():
        if line.startswith("```"):
            inside = not inside
        elif inside and re.match(r"(\$ )?headrace ", line):
            yield line.removeprefix("$ ")


def commands():
    text = subprocess.run([HEADRACE, "--help"], capture_output=True, text=True, check=True).stdout
    listed = text.split("commands:\n")[1].split("\n\n")[0]
    names = [line.split()[0] for line in listed.splitlines() if not line.startswith("   ")]  # others go on
    return names + ["collect"]  # of the service; not in the list


def examples_of(command):
    words = [HEADRACE, command, "--help"] if command else [HEADRACE, "--help"]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    if "examples:\n" not in text:
        return
    for line in text.split("examples:\n")[1].splitlines():
        if not line.startswith("  "):
            break
        yield line.strip()


def all_lines(what):
    for word in what:
        if re.fullmatch("[a-z]\\.\\.[a-z]", word):
            for command in [""] * (word[0] == "a") + [c for c in commands() if word[0] <= c[0] <= word[3]]:
                yield from ((f"{command or 'headrace'} --help", line) for line in examples_of(command))
        else:
            yield from ((word, line) for line in lines_of(word))


def exception(line):
    for table in (LEFT_OUT, INTERRUPTED):
        for pattern in table:
            if re.search(pattern, line):
                return table, pattern
    return None, None


def shortened(line):
    for pattern, text in SHORTER:
        line = re.sub(pattern, text, line)
    return line


def let_work(process, said, seconds=3):
    """Until it has said something, and half a second more; so long if it says nothing; or until it ends. How far a line got in it
    is another test's affair."""
    end, speaks = time.monotonic() + seconds, False
    while process.poll() is None and time.monotonic() < end:
        if not speaks and os.fstat(said.fileno()).st_size:
            end, speaks = time.monotonic() + 0.5, True
        time.sleep(0.05)


def run_line(line, folder):
    """Runs one line in the folder: its exit status (None: left out), and what is wrong with it, or nothing."""
    table, _ = exception(line)
    if table is LEFT_OUT:
        return None, None
    line = shortened(line)
    for made in re.findall(r" -o (\S+)", line):  # by an earlier line, or in `prepare` for another one
        if (folder / made).is_file():
            (folder / made).unlink()
    target = None
    if re.search(r"\b(4242|PID)\b", line):
        target = subprocess.Popen([str(folder / "bin/python"), "-c", "import time\nfor _ in range(6000): time.sleep(0.1)"])
        line = re.sub(r"\b(4242|PID)\b", str(target.pid), line)
    environment = dict(os.environ, PATH=f"{folder}/bin:{os.environ['PATH']}", NO_COLOR="1", HEADRACE_CONFIG="")
    environment.pop("HEADRACE_DB", None)
    environment["HOME"] = str(folder)
    environment["XDG_RUNTIME_DIR"] = runtime_folder()  # jobs of the service found by name are those of this test
    environment["PYTHONPATH"] = str(SOURCE / "probes/python")
    environment["HEADRACE_ACCOUNT_LIBRARY"] = str(pathlib.Path(HEADRACE).parent / "libheadrace_account.so.1")
    said = tempfile.TemporaryFile()
    process = subprocess.Popen(["bash", "-o", "pipefail", "-c", re.sub(r"(?<= )/(data|tmp)\b", rf"{folder}/\1", line)], cwd=folder,
                               env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT, start_new_session=True)
    good, late = GOOD, ""
    try:
        if table is INTERRUPTED:
            good = {0, 130, -signal.SIGINT}
            let_work(process, said)
            if process.poll() is None:  # what ended by itself says how
                os.killpg(process.pid, signal.SIGINT)
        process.wait(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        late = f"\nstill ran after {LIMIT_S} s"
    finally:
        if target:
            target.kill()
            target.wait()
    if process.returncode in good:
        return process.returncode, None
    said.seek(0)
    text = said.read().decode(errors="replace")
    return process.returncode, f"exit {process.returncode}: {line}\n{text[-1500:]}{late}"


def run_lines(work, what):
    """Those of one place run one after the other in one folder: later ones use what earlier ones made."""
    made = prepared()
    failed, count, place_before, folder = 0, 0, None, None
    for place, line in all_lines(what):
        if place != place_before:
            folder = work / re.sub(r"\W+", "_", place)
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(made, folder, symlinks=True)
            if place == "rewrite --help":  # whose example makes it
                shutil.rmtree(folder / "maps")
            place_before = place
        count += 1
        started = time.monotonic()
        status, wrong = run_line(line, folder)
        word = "FAILED" if wrong else "left out" if status is None else f"exit {status}"
        print(f"{word:8} {time.monotonic() - started:5.1f} s  {place}: {line}", flush=True)
        if wrong:
            failed += 1
            print(wrong, flush=True)
    print(f"{count} lines, {failed} failed")
    return 1 if failed or not count else 0


def stale():
    used = {exception(line)[1] for _, line in all_lines([*DOCUMENTS, "a..z"])}
    unused = [pattern for pattern in [*INTERRUPTED, *LEFT_OUT] if pattern not in used]
    for pattern in unused:
        print(f"no line matches the exception {pattern}: remove it")
    return 1 if unused else 0


def links():
    wrong = []
    documents = [*sorted(SOURCE.glob("*.md")), *sorted(SOURCE.glob("docs/*.md"))]
    for document in documents:
        for target in re.findall(r"\]\((?![a-z]+:)([^)#\s]+)", document.read_text(encoding="utf-8")):
            if not (document.parent / target).exists():
                wrong.append(f"{document.relative_to(SOURCE)}: there is no {target}")
    index = (SOURCE / "docs/index.md").read_text(encoding="utf-8")
    wrong += [f"docs/index.md lacks {document.name}" for document in documents
              if document.parent.name == "docs" and document.name != "index.md" and f"({document.name})" not in index]
    print("\n".join(wrong))
    return 1 if wrong else 0


def main():
    action, *what = sys.argv[1:]
    if action in ("stale", "links"):
        return stale() if action == "stale" else links()
    return run_lines(pathlib.Path(what[0]).resolve(), what[1:])


sys.exit(main())

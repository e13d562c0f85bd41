#!/usr/bin/env python3
"""The tutorial, typed into a Debian 12 that has nothing: tutorial.py WHEEL [-o FILE] [--update]

Makes the system by debootstrap (as root, once; FOLDER keeps it), types the command lines of docs/tutorial.md there as they stand, on a
terminal of 100 columns, and writes what the terminal showed, with the seconds of each line. The program that the tutorial shows is
saved as train.py. At the end it says how long it took from the wheel to the first verdict, and fails where that is not the verdict that
the tutorial explains.

  -o FILE        write the transcript there (docs/examples/tutorial.txt is one); default: stdout
  --update       put the outputs into docs/tutorial.md; the figures in its text are for the writer
  --columns N    of the terminal
  --skip TEXT    leave out command lines that contain TEXT, such as "compare"
"""
import argparse
import datetime
import os
import pathlib
import pty
import re
import select
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parent.parent
ROOT = SOURCE / "tests/packaging/root.sh"
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")
LIMIT = r"limit  .*operator getitem"  # what limits the tutorial's program, and the page's words for it
MOST_SECONDS = 60  # from the wheel to the first verdict


def blocks():
    """The tutorial's blocks in order: (language, text)."""
    text = (SOURCE / "docs/tutorial.md").read_text(encoding="utf-8")
    return re.findall(r"^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def lines():
    """The command lines in order, and the program that is saved before the first that uses it."""
    program = next(text for language, text in blocks() if language == "python" and "DataLoader" in text)
    commands = []
    for language, text in blocks():
        if language == "sh" or (not language and text.startswith("headrace ")):
            commands += [line for line in text.splitlines() if line.strip()]
    return program, commands


def shown(raw):
    """What stays on the screen: of a line that is redrawn, its last state."""
    kept = []
    for line in ESCAPE.sub("", raw).replace("\r\n", "\n").split("\n"):
        kept.append(next((part for part in reversed(line.split("\r")) if part.strip()), ""))
    while kept and not kept[-1].strip():
        kept.pop()
    return "\n".join(line.rstrip() for line in kept)


def typed(inside, command, columns):
    """Runs a command line on a terminal: (seconds, exit code, what it showed)."""
    pid, terminal = pty.fork()
    if pid == 0:
        shell = f"stty cols {columns} rows 40; {command}"
        os.execvp(inside[0], [*inside, "env", "TERM=xterm", "PAGER=cat", "bash", "-c", shell])
    start, raw = time.monotonic(), b""
    while True:
        select.select([terminal], [], [])
        try:
            part = os.read(terminal, 65536)
        except OSError:  # the last process that had the terminal is gone
            break
        if not part:
            break
        raw += part
    _, status = os.waitpid(pid, 0)
    return time.monotonic() - start, os.waitstatus_to_exitcode(status), shown(raw.decode("utf-8", "replace"))


def machine():
    model = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    return f"{os.cpu_count()} cores ({model[1] if model else os.uname().machine}), Linux {os.uname().release.split('-')[0]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--suite", default="bookworm")
    parser.add_argument("--root", type=pathlib.Path, default=SOURCE / "build/roots", help="keep the system here, below SUITE")
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--skip", action="append", default=[])
    options = parser.parse_args()
    if not options.wheel.is_file():
        sys.exit(f"tutorial.py: {options.wheel}: no such wheel; make wheel")

    kept = options.root / options.suite
    made = subprocess.run(["sh", ROOT, "make", options.suite, kept], stdout=subprocess.PIPE, text=True, check=False)
    if made.returncode != 0:
        print(made.stdout.strip() or "the system could not be made", file=sys.stderr)
        return made.returncode
    system = pathlib.Path(tempfile.mkdtemp(prefix="tutorial.", dir=options.root))
    try:
        subprocess.run(["cp", "-a", f"{kept}/root/.", system], check=True)
        return record(system, options)
    finally:
        shutil.rmtree(system, ignore_errors=True)


def record(system, options):
    program, commands = lines()
    home = system / "root"
    (home / "dist").mkdir()
    shutil.copy(options.wheel, home / "dist")
    (home / "train.py").write_text(program, encoding="utf-8")
    network = system / "etc/resolv.conf"
    network.unlink(missing_ok=True)
    shutil.copy("/etc/resolv.conf", network)
    # Each line runs in a shell of its own; what `activate` does is kept as the environment's PATH. Where an index or its certificate is
    # set for pip here, it is there, too.
    settings = [f"{name}={os.environ[name]}" for name in ("PIP_INDEX_URL", "PIP_CERT", "PIP_DEFAULT_TIMEOUT") if name in os.environ]
    if certificate := os.environ.get("PIP_CERT"):
        (system / certificate.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(certificate, system / certificate.lstrip("/"))
    inside = ["sh", str(ROOT), "in", str(system), "env", "-C", "/root", "PATH=/root/env/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
              "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_ROOT_USER_ACTION=ignore", *settings]

    text, seconds, outputs = [], {}, {}
    for command in commands:
        if any(skip in command for skip in options.skip):
            continue
        print(f"$ {command}", file=sys.stderr, flush=True)
        took, code, output = typed(inside, command, options.columns)
        seconds[command], outputs[command] = took, output
        if command.startswith("pip ") and code == 0:  # one line for each package it looks at
            output = "..." + "\n" + output.rsplit("\n", 1)[-1]
        text.append(f"$ {command}\n{output}\n[{took:.1f} s]\n" if output else f"$ {command}\n[{took:.1f} s]\n")
        if code not in (0, 4):
            print("\n".join(text), file=sys.stderr)
            print(f"tutorial.py: '{command}' ended with {code}", file=sys.stderr)
            return 1
    of = lambda *words: sum(took for command, took in seconds.items() if any(word in command for word in words))  # noqa: E731
    verdict, torch = of(".whl", "profile"), of("torch", "venv")
    head = (f"{datetime.date.today().isoformat()}, Debian 12 made by debootstrap, {machine()}. From the wheel to the first verdict: "
            f"{verdict:.1f} s (installing it {of('.whl'):.1f} s, recording and judging {of('profile'):.1f} s). An environment with torch took "
            f"{torch:.0f} s before that.")
    body = "\n".join(text)
    if options.output:
        options.output.write_text(f"{PREFACE}\n{wrapped(head)}\n\n{body}", encoding="utf-8")
    else:
        print(body)
    print(head, file=sys.stderr)
    if options.update:
        update(outputs)
    page = next((output for command, output in outputs.items() if " profile " in command), "")
    if not re.search(LIMIT, page):
        print(f"tutorial.py: the first verdict does not say: {LIMIT}", file=sys.stderr)
        return 1
    if verdict > MOST_SECONDS:
        print(f"tutorial.py: more than {MOST_SECONDS} s from the wheel to the first verdict", file=sys.stderr)
        return 1
    return 0


def update(outputs):
    """Puts what command lines printed into the blocks that follow them in the tutorial."""
    document = SOURCE / "docs/tutorial.md"
    parts = re.split(r"(^```\w*\n.*?^```$)", document.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    command = ""
    for i in range(1, len(parts), 2):
        text = parts[i].removeprefix("```\n").removesuffix("```").rstrip("\n")
        if text in outputs:
            command = text
        elif command and parts[i].startswith("```\n"):
            # Of a comparison the verdict and the figures.
            output = re.sub(r"\n\nWhat carries the change\n.*", "\n...", outputs[command], flags=re.DOTALL)
            parts[i] = f"```\n{output}\n```"
            command = ""
    document.write_text("".join(parts), encoding="utf-8")


PREFACE = """Every command line of the tutorial (docs/tutorial.md), typed into a fresh Debian 12 by
"python3 scripts/tutorial.py dist/headrace-*.whl -o docs/examples/tutorial.txt", which also checks the verdict.
The seconds in brackets are what each line took.
"""


def wrapped(text, width=100):
    import textwrap
    return "\n".join(textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False))


if __name__ == "__main__":
    sys.exit(main())

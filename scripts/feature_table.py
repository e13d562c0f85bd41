#!/usr/bin/env python3
"""What headrace has of what tools of this kind have: docs/features.md, checked on the built program.

usage: feature_table.py HEADRACE [-o FILE | --compare FILE]   --compare: fails where FILE says something else, but for the version

Each row is checked in one of four ways, and says which:
  run      a command is run on a small recorded run, and its output or exit code looked at
  served   a page or an answer of `headrace serve` is fetched
  tree     a file is in the tree, or holds a text
  test     a test that takes longer, or needs more than this script, checks it; that it exists is looked at
A row that is not done has the reason in place of a check. A check that fails makes its row "FAILED" and the exit code 1.
"""
import difflib
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import urllib.request

SOURCE = pathlib.Path(__file__).resolve().parent.parent


class Built:
    """The built program in a folder with a demo's run and one seen from outside."""

    def __init__(self, headrace, folder):
        self.headrace, self.folder, self.outputs, self.pages = headrace, folder, {}, None
        self.environment = dict(os.environ, HEADRACE_CONFIG="", NO_COLOR="1", COLUMNS="100")
        self.environment.pop("HEADRACE_DB", None)
        (folder / "train.py").write_text("import time\nfor _ in range(250):\n    time.sleep(0.01)\n", encoding="utf-8")
        self.output("demo --duration 3s")
        self.output(f"profile -q --name outside -- {sys.executable} train.py")

    def output(self, arguments):
        """What a command prints and its exit code, once."""
        if arguments not in self.outputs:
            done = subprocess.run(f'"{self.headrace}" {arguments}', shell=True, cwd=self.folder, env=self.environment, timeout=300,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.outputs[arguments] = (done.stdout.decode(errors="replace"), done.returncode)
        return self.outputs[arguments]

    def served(self, address):
        if self.pages is None:
            self.pages = subprocess.Popen([self.headrace, "serve", "--port", "0"], cwd=self.folder, env=self.environment,
                                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.root = next(re.search(r"http://[\d.:]+", line).group() for line in self.pages.stdout if "http://" in line)
        with urllib.request.urlopen(self.root + address, timeout=60) as answer:
            return answer.read().decode(errors="replace")

    def end(self):
        if self.pages is not None:
            self.pages.send_signal(signal.SIGTERM)
            self.pages.wait(timeout=30)


def run(arguments, pattern=None, code=None):
    def check(built):
        text, status = built.output(arguments)
        return (pattern is None or re.search(pattern, text) is not None) and (status == code if code is not None else status in (0, 4))
    return f"run: `headrace {arguments}`", check


def served(address, pattern):
    return f"served: `{address}`", lambda built: re.search(pattern, built.served(address)) is not None


def tree(path, text=""):
    return f"tree: `{path}`", lambda built: (SOURCE / path).exists() and (not text or text in (SOURCE / path).read_text(encoding="utf-8"))


def test(path, name):
    found, check = tree(path, name)
    return found.replace("tree", "test"), check


def no(reason):
    return reason, None


def partly(reason, check):
    return f"{check[0]}. {reason}", check[1], "partly"


# (section, [(what, check)])
FEATURES = [
    ("Command line", [
        ("one program with subcommands", run("--help", r"profile +records")),
        ("a program after `--` is started and recorded", run("profile -q -- true", code=0)),
        ("its exit code is kept", run("profile -q -- sh -c 'exit 7'", code=7)),
        ("duration, process and rate have the usual options", partly("No option for a sampling rate: it follows the cost.", run("profile --help", r"-p, --pid[\s\S]*-d, --duration"))),
        ("JSON from every command that reads, with a schema's name", run("report 1 --json", r'"schema": *"headrace.report/1"')),
        ("text, Markdown, HTML, JSON, CSV, NDJSON", run("export 1 --format ndjson --view operator_summary", r'"operator"')),
        ("documented exit codes", run("--help", "exit codes:")),
        ("stdout is data, stderr is talk", test("tests/cli/export.bats", "data goes to standard output, talk to standard error")),
        ("progress on a terminal, with the time left where it can be known", tree("dashboards/terminal/progress.cc", "s left")),
        ("colours that can be switched off; `NO_COLOR`", test("tests/cli/apply.bats", "colours: --color, NO_COLOR, pipes")),
        ("completion for bash, zsh, fish", run("completion bash", "complete ")),
        ("manual pages", run("man report", r"\.TH")),
        ("a configuration file, below environment and options", run("config", "HEADRACE_DB")),
        ("`--version` with commit, features, formats", run("--version", r"commit[\s\S]*features[\s\S]*store schema")),
        ("a mistyped word gets the nearest one", run("reprot", "Did you mean 'report'", code=2)),
        ("a dry run", run("tune --help", "--dry-run")),
    ]),
    ("Recording", [
        ("a running process, without changing it", run("profile --help", "-p, --pid")),
        ("children and worker processes", test("tests/cli/profile.bats", "the whole tree is recorded, from the first fork")),
        ("all ranks of a job at once", partly("Ranks of the preprocessing service, in one report (`report --fleet`); other jobs are recorded node by node.",
                                            test("tests/cli/fleet_report.bats", "a job is reported in every format, and its members are runs"))),
        ("keep the last seconds; keep detail around a stall", run("profile --help", "--ring[\\s\\S]*--trigger")),
        ("a schedule of steps to skip and to record", no("warm-up is recognised by itself; there is no option for it")),
        ("a program without any marker", run("report outside", "seen from outside")),
        ("its own cost, measured", run("report 1", r"cost +recording took")),
        ("lost events are counted and shown", run("report 1", "events? lost")),
        ("all runs in one portable file", run("query \"SELECT name FROM run_summary\"", r"demo[\s\S]*outside")),
        ("a part of a run, reported later", run("report 1 --since 1s --until 3s", "a part of the run")),
        ("what the machine was like is kept with the run", run("report 1 --full", r"\nMachine")),
        ("fewer privileges: less detail, and it says what is missing", test("tests/cli/doctor.bats", "doctor as an unprivileged user says what each probe lacks")),
        ("traces of other programs are read", no("headrace reads only what it recorded")),
    ]),
    ("Terminal dashboard", [
        ("live, once a second, first figures within a second", test("tests/cli/top.bats", "the first figures of a recording are there at once")),
        ("keys as in other monitors", test("tests/cli/top.bats", '"keys"')),
        ("an interval that can be set", run("top --help", "--interval")),
        ("80x24, without colours, ASCII only", test("tests/cli/top.bats", '"ASCII only"')),
        ("one screen as text, for logs", run("top 1 --once --width 80", "OUTPUT QUEUE")),
    ]),
    ("Pages", [
        ("live without a reload", tree("dashboards/web/live.ts", "EventSource")),
        ("all charts zoom together", test("tests/web/behaviour.spec.ts", "zoom")),
        ("what changed in this window", run("compare 1 --split 1500ms", r"parts of one run[\s\S]*LIMIT +of")),
        ("the verdict in the words of the command", served("/api/runs/1/report", "The trainer waited")),
        ("the pipeline as a picture, its limit marked", tree("dashboards/web/cards/pipeline.ts")),
        ("where a step's time goes", served("/api/runs/1/course?from=0&to=3000000000&px=100", r'"steps":\{"')),
        ("how full queues are, over time", served("/api/runs/1/course?from=0&to=3000000000&px=100", r'"fill":\[\d')),
        ("who waits for whom", tree("dashboards/web/charts/states.ts")),
        ("requests by size and latency", tree("dashboards/web/cards/io_latency.ts")),
        ("what each resource would allow", served("/api/runs/1/report", "bound_batches_per_second")),
        ("flame graphs on and off the CPU, by operator", served("/api/runs/1/stacks?kind=cpu", r'"frames":\["')),
        ("two runs in one flame graph", tree("dashboards/web/cards/stacks_diff.ts")),
        ("machine: CPU, pressure, memory, disk, network, accelerator", tree("dashboards/web/cards/machine.ts")),
        ("a bill of memory", partly("`/dev/shm` and caches of a plan; the shared part of a worker's memory is not split off.", run("plan 1", "memory of queues"))),
        ("comparisons with intervals and a verdict", tree("dashboards/web/charts/forest.ts")),
        ("what-if with sliders", tree("dashboards/web/pages/what_if.ts")),
        ("hosts beside each other", partly("Ranks and workers of a job of the preprocessing service, with their hosts; hosts of other jobs are in files of their own.",
                                          tree("dashboards/web/pages/fleet.ts", "host: string"))),
        ("runs: search and tags", test("tests/web/behaviour.spec.ts", "a tag is a search")),
        ("runs: trends", served("/api/trends", "headrace.trends/")),
        ("read-only SQL", run("query \"DELETE FROM run\"", "read-only", code=2)),
        ("the address is the view; downloads of each chart", tree("dashboards/web/download.ts", "svg")),
        ("one HTML file to send", run("report 1 --format html", "<html")),
        ("dark and light, keyboard, a table behind each chart", test("tests/web/behaviour.spec.ts", "keyboard")),
        ("listens at this machine alone; a token for others", test("tests/cli/serve.bats", "other addresses than this machine's own need the token")),
    ]),
    ("Other tools", [
        ("Perfetto", run("export 1 --format perfetto --estimate", r"about [\d.]+ [KM]iB")),
        ("Chrome's trace format", run("export 1 --format chrome --since 1s --until 2s", "traceEvents")),
        ("pprof", run("export --list", "pprof")),
        ("folded stacks", run("export --list", "folded")),
        ("speedscope", run("export 1 --format speedscope", "speedscope")),
        ("Prometheus and OpenMetrics", run("export 1 --format openmetrics", "# EOF")),
        ("OTLP metrics over HTTP", test("tests/cli/export.bats", "otlp: a collector takes it")),
        ("Prometheus remote write", no("a Prometheus server can scrape `/metrics`, or an OpenTelemetry collector writes on")),
        ("CSV and NDJSON of any table", run("export 1 --format csv --view step_interval", "run_id,start_ns,")),
        ("Parquet", partly("Arrow instead, which pandas, Polars and DuckDB read and can write as Parquet.", run("export --list", "arrow"))),
        ("a dashboard for Grafana and alerts", tree("packaging/grafana/alerts.yml", "alert:")),
        ("a button that opens Perfetto", no("Perfetto's page would have to be allowed to fetch from headrace")),
    ]),
    ("Python and frameworks", [
        ("a wheel with program, package and library", test("tests/packaging/wheel.bats", "every CPython at hand installs the wheel")),
        ("one line around a loader", test("tests/python/test_wrap.py", "test_waits_steps_and_rows")),
        ("PyTorch without a change", test("tests/abroad/abroad.py", '"slow_item"')),
        ("a C interface without a compiler for Python", tree("probes/python/account_library.h")),
        ("torch.profiler's traces are joined", no("neither read nor written")),
        ("idle time of an accelerator against the trainer's wait", test("tests/cli/accelerator.bats", "idles while the consumer waits")),
        ("from the batch to the first kernel of an accelerator", partly("The accelerator's utilisation is shown; kernels are not.", tree("probes/metrics/host.def", "gpu_use_ratio"))),
        ("tf.data and Keras without a change", test("tests/python/test_frameworks.py", "test_fit_waits_inside_of_its_step")),
        ("Ray Data without a change", test("tests/python/test_frameworks.py", "test_tasks_of_ray_have_stages")),
        ("Hugging Face, webdataset", partly("By PyTorch's DataLoader; a loop without one needs `headrace.wrap()`.", test("tests/abroad/abroad.py", "hf_map"))),
        ("pages in notebooks", tree("probes/python/headrace/_report.py", "_repr_html_")),
        ("programs on the CPU alone, of one process", run("report outside", "in one thread")),
    ]),
    ("Comparison", [
        ("repeated runs, warm-up, preparation", run("compare --help", "--warmup[\\s\\S]*--prepare")),
        ("sides in turn, in drawn order", run("compare --help", "--pairs")),
        ("an interval for the difference", test("tests/analysis/comparison/comparison_test.cc", "WordsOfARate")),
        ("a rank test", test("tests/analysis/statistics/paired_test.cc", "SignedRank")),
        ("the smallest change it could have seen; how many more runs", test("tests/analysis/comparison/comparison_test.cc", "SaysHowManyPairsAreMissing")),
        ("words: faster, slower, same, cannot tell", test("tests/analysis/comparison/comparison_test.cc", "WordsOfARate")),
        ("several metrics are corrected for", test("tests/analysis/statistics/paired_test.cc", "HolmTest")),
        ("batches are not taken for independent samples", test("tests/analysis/statistics/block_comparison_test.cc", "NoPairIsSurerThanItsWindowsAre")),
        ("odd pairs are explained", test("tests/analysis/comparison/comparison_test.cc", "FirstPairsThatFoundAColdCacheAreLeftOut")),
        ("other conditions are refused", test("tests/analysis/comparison/comparability_test.cc", "RefusalIsOneLineOfAllThatRefuses")),
        ("a gate for CI", run("compare --help", "--fail-on")),
        ("any grouping of runs", partly("By tags and by SQL; no grouping by one command.", run("runs --help", "tag"))),
    ]),
    ("Advice", [
        ("advice for the kind of limit", run("report 1", "fix ")),
        ("a plan for programs", run("plan 1 --json", r'"schema": *"headrace.plan/')),
        ("applied to DataLoader, tf.data, the reference reader", test("tests/cli/apply.bats", "apply runs the plan")),
        ("within cores and memory", run("plan 1 --cores 2 --memory 1MiB", "memory budget: no plan fits", code=4)),
        ("caches, threads, placement and hosts in one model", run("plan --help", "--cache[\\s\\S]*--nodes|--nodes[\\s\\S]*--cache")),
        ("verified by measuring", test("tests/cli/tune.bats", "gets them, verified, stored and explained")),
        ("what limits next, and how far away that is", run("report 1", "next ")),
    ]),
    ("Getting it", [
        ("Debian packages, lintian without a word, service", test("tests/packaging/packages.bats", "lintian finds no error")),
        ("installed in an empty system, purged without a trace", test("tests/packaging/clean_root.bats", "leave nothing when purged")),
        ("one file without libraries of its own", test("tests/packaging/wheel.bats", "they need no library but the C library's")),
        ("a container", partly("Its file is there; no test builds it.", tree("packaging/Dockerfile", "FROM"))),
        ("without root", test("tests/packaging/clean_root.bats", "as nobody in particular")),
        ("CMake package and pkg-config", test("tests/packaging/packages.bats", "builds with the CMake package and with pkg-config")),
        ("other processors than x86-64", partly("The wheel and the Debian packages for 64-bit ARM, by cross compilation; tried in emulation only.",
                                                   test("tests/packaging/wheel_arm64.bats", "byte for byte"))),
    ]),
    ("Documents", [
        ("a tutorial that ends in a measured gain", tree("docs/tutorial.md", "VERDICT  B is faster")),
        ("every command line in the documents is run", partly("Those that are not run, are shortened or are interrupted are listed with reasons in `tests/cli/examples.py`; lines of other programs in `tests/docs/documents.py`.",
                                                              test("tests/docs/examples.bats", "command lines of documents"))),
        ("how to read each chart, beside it", test("tests/web/behaviour.spec.ts", "a card opens its explanation")),
        ("every metric with unit, source and cost", partly("Costs are said by level and by option (`docs/collector.md`), not by metric.", tree("docs/metrics.md", "| metric | unit | source | needs |"))),
        ("what to do, by message", test("tests/docs/documents.py", "def messages")),
        ("how it measures, and its errors", tree("docs/accuracy.md", "predicted rate, median error")),
        ("schemas of files and outputs", partly("Nine schemas; outputs say their version, and only the run store promises to read old ones.", tree("docs/schema/plan.schema.json"))),
    ]),
]


def rows(built):
    """One row of the page each: (section, what, state, how)."""
    for section, features in FEATURES:
        for what, check in ((what, check) for what, check in features):
            how, look, state = (*check, "yes")[:3]
            if look is None:
                yield section, what, "no", how
                continue
            try:
                good = look(built)
            except (OSError, ValueError, subprocess.SubprocessError) as error:
                good, how = False, f"{how}: {error}"
            yield section, what, state if good else "FAILED", how


def page(found, version):
    states = [state for _, _, state, _ in found]
    lines = ["# What headrace does and does not do", "",
             "What tools of this kind do, and whether headrace does it, checked on the built program by `python3 scripts/feature_table.py build/headrace -o docs/features.md`.",
             "The last column says how: a command was run, a page fetched, a file or a longer test looked for; or why it is not done.", "",
             f"{states.count('yes')} of {len(states)} are done, {states.count('partly')} partly, {states.count('no')} not. Checked with {version}."]
    section = None
    for name, what, state, how in found:
        if name != section:
            section = name
            lines += ["", f"## {name}", "", "| | | how it was checked, or why not |", "|---|---|---|"]
        lines.append(f"| {what} | {state} | {how.replace('|', chr(92) + '|')} |")
    return "\n".join(lines) + "\n"


def compared(file, text):
    """Whether the file says something else; prints what. The program's version is no difference."""
    old, new = (re.sub(r"Checked with .*", "Checked.", each).splitlines() for each in (file.read_text(encoding="utf-8"), text))
    lines = list(difflib.unified_diff(old, new, str(file), "as checked", n=0, lineterm=""))
    print("\n".join([*lines, f"{file} is to be made again: feature_table.py HEADRACE -o {file}"] if lines else ["the table is as checked"]))
    return bool(lines)


def main():
    if len(sys.argv) not in (2, 4) or (len(sys.argv) == 4 and sys.argv[2] not in ("-o", "--compare")):
        sys.exit(__doc__.split("\n\n")[1])
    with tempfile.TemporaryDirectory() as folder:
        built = Built(os.path.abspath(sys.argv[1]), pathlib.Path(folder))
        try:
            stacks = built.output("query 'SELECT COUNT(*) AS stacks FROM stack_summary WHERE run_id = 1'")[0].split()[-1:]
            if sys.argv[2:3] == ["--compare"] and stacks == ["0"]:
                print("stacks cannot be sampled on this machine (headrace doctor says why): the table cannot be compared")
                sys.exit(77)
            found = list(rows(built))
            version = built.output("--version")[0].splitlines()[0]
        finally:
            built.end()
    text = page(found, version)
    differs = False
    if sys.argv[2:3] == ["--compare"]:
        differs = compared(pathlib.Path(sys.argv[3]), text)
    elif len(sys.argv) == 4:
        pathlib.Path(sys.argv[3]).write_text(text, encoding="utf-8")
    else:
        print(text, end="")
    failed = [(what, how) for _, what, state, how in found if state == "FAILED"]
    for what, how in failed:
        print(f"FAILED: {what} ({how})", file=sys.stderr)
    return 1 if failed or differs else 0


sys.exit(main())

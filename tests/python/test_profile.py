"""`headrace profile -- python program.py`: operators of all processes as one, and the planted limit by name. What is
planted sleeps, so that other load on the machine does not move it."""
import json
import os
import resource
import subprocess
import unittest

from programs import HEADRACE, ProgramTest

LOADER = """
import sys, time
import fake_loader, headrace

ITEM_S, STEP_S = {"workers": (0.02, 0.002), "trainer": (0.0005, 0.03), "uneven": (0.01, 0.002)}[sys.argv[1]]

class Items:
    def __len__(self): return 1 << 20
    def __getitem__(self, i):
        short = sys.argv[1] == "uneven" and i // 4 % 2  # all batches of every second worker
        with headrace.operator("decode"): time.sleep(ITEM_S / 5 if short else ITEM_S)
        return i

if __name__ == "__main__":
    loader = headrace.wrap(fake_loader.DataLoader(Items(), batch_size=4, num_workers=int(sys.argv[2]),
                                                  context=sys.argv[3]))
    end = time.monotonic() + float(sys.argv[4])
    for batch in loader:
        time.sleep(STEP_S)
        if time.monotonic() > end: break
    if loader.num_workers: loader._iterator.shutdown()
"""

POOL = """
import multiprocessing, sys, time
import headrace

ITEM_S, STEP_S = {"workers": (0.03, 0.002), "trainer": (0.001, 0.02)}[sys.argv[1]]

@headrace.operator("decode")
def decode(i):
    time.sleep(ITEM_S)
    return [i] * 8

if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[3]).Pool(int(sys.argv[2])) as pool:
        end = time.monotonic() + float(sys.argv[4])
        n = int(float(sys.argv[4]) / min(STEP_S, ITEM_S / 2))
        for rows in headrace.wrap(pool.imap(decode, range(n))):
            time.sleep(STEP_S)
            if time.monotonic() > end: break
"""

# Ranks that step together; the second reads its shard slowly.
RANKS = """
import multiprocessing, sys, time
import headrace

def shard(seconds):
    while True:
        time.sleep(seconds)
        yield [0]

def rank(number, barrier, seconds):
    steps = int(seconds / 0.024)
    for batch in headrace.wrap(shard(0.012 if number == 1 and sys.argv[1] == "slow" else 0.001)):
        time.sleep(0.01)
        barrier.wait(10)
        steps -= 1
        if steps == 0: break

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(3)
    ranks = [context.Process(target=rank, args=(n, barrier, float(sys.argv[2]))) for n in range(3)]
    for each in ranks: each.start()
    for each in ranks: each.join(30)
    for each in ranks: each.kill()
"""


def busy_seconds():
    """CPU time that all programs but this one and its children have used."""
    with open("/proc/stat") as file:
        fields = [int(field) for field in file.readline().split()[1:9]]
    idle = fields[3] + fields[4]
    own = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return (sum(fields) - idle) / os.sysconf("SC_CLK_TCK") - own


class Profile(ProgramTest):
    seconds = 2.5

    def profile(self, code, *arguments):
        if not os.path.exists(HEADRACE):
            self.skipTest(f"{HEADRACE} is not built")
        database = str(self.folder / "runs.db")
        done = subprocess.run([HEADRACE, "profile", "--db", database, "--name", "run", "--quiet", "--", self.python,
                               self.script(code), *map(str, arguments), str(self.seconds)], capture_output=True, text=True,
                              timeout=120, env=self.environment(), cwd=self.folder)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr[-2000:])
        self.assertEqual(os.listdir(self.accounts), [])
        report = subprocess.run([HEADRACE, "report", "run", "--db", database, "--json"], capture_output=True, text=True)
        self.assertTrue(report.stdout, report.stderr)
        query = subprocess.run([HEADRACE, "query", "--db", database, "--json",
                                "SELECT operator, stage, completions_count FROM operator_summary"],
                               capture_output=True, text=True)
        self.assertEqual(query.returncode, 0, query.stderr)
        rows = json.loads(query.stdout)
        rows = rows if isinstance(rows, list) else rows["rows"]
        return json.loads(report.stdout), rows

    def check(self, code, arguments, kinds, stage, operators):
        """Other load on the machine can be the true limit: then once more, and the answer is not judged."""
        for attempt in range(2):
            before = busy_seconds()
            report, rows = self.profile(code, *arguments)
            others = busy_seconds() - before
            verdict = report["verdict"]
            counted = {(row["stage"], row["operator"]): row["completions_count"] for row in rows}
            limit = verdict.get("limit", {})
            right = limit.get("kind") in kinds and (limit["kind"] != "stage" or limit["name"] == stage)
            if right and rows:
                break
            self.folder.joinpath("runs.db").unlink()
        self.assertTrue(rows, "no accounts were recorded")
        for operator in operators:
            # Without workers a batch takes 0.12 s and more, so that there are some twenty.
            self.assertGreater(counted.get((stage, operator), 0), 10, counted)
        self.assertGreater(counted.get(("trainer", "step"), 0), 10, counted)
        if not right and others > 0.3 * self.seconds:
            self.skipTest(f"limited by {limit.get('name')}: other programs used {others:.1f} s of CPU meanwhile")
        self.assertTrue(right, verdict)

    def test_loader_limited_by_its_workers(self):
        self.check(LOADER, ("workers", 2, "fork"), {"stage"}, "workers", ["decode", "getitem", "collate"])

    def test_spawned_loader_limited_by_its_trainer(self):
        self.check(LOADER, ("trainer", 2, "spawn"), {"consumer"}, "workers", ["decode", "getitem", "collate"])

    def test_one_of_two_workers_has_the_long_items(self):
        self.check(LOADER, ("uneven", 2, "fork"), {"uneven workers"}, "workers", ["decode", "getitem", "collate"])

    def test_loader_without_workers(self):
        # One thread loads and computes in turn: it is the limit itself, or its larger part is.
        self.check(LOADER, ("workers", 0, "fork"), {"stage", "thread"}, "loader", ["decode", "getitem", "collate"])

    def test_one_rank_holds_up_the_others(self):
        """Over all three the wait is a quarter of a step; the job waits half of each."""
        for attempt in range(2):
            report, _ = self.profile(RANKS, "slow")
            verdict, ranks = report["verdict"], report["ranks"]
            self.folder.joinpath("runs.db").unlink()
            self.assertEqual(len(ranks), 3, ranks)
            if verdict["state"] == "undecided" and verdict["stall_ratio"] > 0.4:
                break
        slow = ranks[0]
        self.assertEqual(verdict["state"], "undecided", verdict)
        self.assertEqual(verdict["grade"], "high")
        self.assertAlmostEqual(verdict["stall_ratio"], slow["wait_ratio"], places=6)
        self.assertGreater(slow["wait_ratio"], 2 * ranks[1]["wait_ratio"])
        limit = next(line["text"] for line in report["page"]["lines"] if line["label"] == "limit")
        self.assertIn(f"pid {slow['pid']} (", limit)
        self.assertIn("the slowest of 3 ranks", limit)

    def test_ranks_that_are_alike(self):
        report, _ = self.profile(RANKS, "alike")
        self.assertEqual(len(report["ranks"]), 3)
        self.assertNotIn("slow", report)
        limit = next(line["text"] for line in report["page"]["lines"] if line["label"] == "limit")
        self.assertNotIn("ranks", limit)

    def test_spawned_pool_limited_by_its_workers(self):
        self.check(POOL, ("workers", 2, "spawn"), {"stage"}, "Pool", ["decode", "send"])


if __name__ == "__main__":
    unittest.main()

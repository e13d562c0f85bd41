"""`headrace profile -- python program.py` over stand-ins of tf.data and Keras: the planted limit by name, and whose CPU time it is.
What is planted sleeps, so that other load on the machine does not move it."""
import json
import os
import subprocess
import unittest

import fake_frameworks
from programs import HEADRACE, ProgramTest
from test_profile import busy_seconds

LOOP = """
import sys, time
import tensorflow.data as data
ITEM_S, STEP_S = {"map": (0.02, 0.002), "trainer": (0.001, 0.03)}[sys.argv[1]]
def decode(x):
    time.sleep(ITEM_S)
    return x
end = time.monotonic() + float(sys.argv[2])
for batch in data.Range(1 << 20).map(decode, num_parallel_calls=2).batch(4).prefetch(2):
    time.sleep(STEP_S)
    if time.monotonic() > end: break
"""

FIT = LOOP[:LOOP.index("for batch")] + """
from keras.src.backend.tensorflow.trainer import TensorFlowTrainer
class Over(Exception): pass
def step(batch):
    time.sleep(STEP_S)
    if time.monotonic() > end: raise Over
try: TensorFlowTrainer(step).fit(data.Range(1 << 20).map(decode, num_parallel_calls=2).batch(4).prefetch(2))
except Over: pass
"""


class Frameworks(ProgramTest):
    seconds = 3

    def profile(self, code, planted):
        if not os.path.exists(HEADRACE):
            self.skipTest(f"{HEADRACE} is not built")
        fake_frameworks.write(self.folder)
        database = str(self.folder / "runs.db")
        done = subprocess.run([HEADRACE, "profile", "--db", database, "--name", "run", "--quiet", "--", self.python,
                               self.script(code), planted, str(self.seconds)], capture_output=True, text=True, timeout=120,
                              env=self.environment(), cwd=self.folder)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        report = subprocess.run([HEADRACE, "report", "run", "--db", database, "--json"], capture_output=True, text=True)
        self.assertTrue(report.stdout, report.stderr)
        query = subprocess.run([HEADRACE, "query", "--db", database, "--json",
                                "SELECT operator, stage, busy_ns, on_cpu_ns FROM operator_summary"], capture_output=True, text=True)
        rows = json.loads(query.stdout)
        rows = rows if isinstance(rows, list) else rows["rows"]
        self.folder.joinpath("runs.db").unlink()
        return json.loads(report.stdout)["verdict"], {(row["stage"], row["operator"]): row for row in rows}

    def check(self, code, planted, kind, name):
        for _ in range(2):  # other load on the machine can be the true limit: then once more, and the answer is not judged
            before = busy_seconds()
            verdict, rows = self.profile(code, planted)
            others = busy_seconds() - before
            limit = verdict.get("limit", {})
            right = limit.get("kind") == kind and (name is None or limit.get("name") == name)
            if right:
                break
        self.assertIn(("tf.data map", "map"), rows)
        self.assertIn(("trainer", "step"), rows)
        if not right and others > 0.3 * self.seconds:
            self.skipTest(f"limited by {limit.get('name')}: other programs used {others:.1f} s of CPU meanwhile")
        self.assertTrue(right, verdict)
        return rows

    def test_a_map_that_sleeps_limits_and_uses_no_cpu(self):
        rows = self.check(LOOP, "map", "stage", "tf.data map")
        row = rows["tf.data map", "map"]
        self.assertGreater(row["busy_ns"], 2e9)
        # Nobody enters it, so the kernel's split, where there is one, has nothing on it: that is not all CPU time.
        if row["on_cpu_ns"] is not None:
            self.assertLess(row["on_cpu_ns"], 0.5 * row["busy_ns"])

    def test_a_loop_limited_by_its_trainer(self):
        self.check(LOOP, "trainer", "consumer", None)

    def test_fit_limited_by_its_map(self):
        self.check(FIT, "map", "stage", "tf.data map")

    def test_fit_limited_by_its_trainer(self):
        self.check(FIT, "trainer", "consumer", None)


if __name__ == "__main__":
    unittest.main()

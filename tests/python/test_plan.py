"""apply(): a plan's settings as arguments of a DataLoader, with a stand-in for torch's and with torch's own where there is one."""
import json
import os
import pathlib
import subprocess
import sys
import unittest

from programs import HEADRACE, SOURCE, ProgramTest
from test_profile import LOADER

TORCH = os.environ.get("HEADRACE_TEST_PYTHON", "")


def plan(settings, **changes):
    emitted = {"target": "torch.utils.data.DataLoader", "settings": settings,
               "lines": [{"name": name, "why": f"because of {name}"} for name in settings]}
    emitted.update(changes.pop("emit", {}))
    return {"schema": "headrace.plan/1", "emit": emitted, **changes}


PRELUDE = """
import io, json, sys
from contextlib import redirect_stderr
import headrace
from fake_loader import DataLoader

def applied(*a, **k):
    said = io.StringIO()
    with redirect_stderr(said):
        result = headrace.apply(*a, **k)
    return result, said.getvalue().splitlines()
"""


class Apply(ProgramTest):
    def answer(self, code, given, **more):
        path = os.path.join(self.folder, "plan.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write(given if isinstance(given, str) else json.dumps(given))
        result = self.run_program(PRELUDE + f"PLAN = {path!r}\n" + code, **more)
        self.assertEqual(result.stderr, "")
        return result.answer

    def test_arguments_of_a_class_and_what_is_said(self):
        answer = self.answer("""
before = dict(batch_size=8, num_workers=2)
got, said = applied(PLAN, DataLoader, **before)
print(json.dumps([got, said, before]))
""", plan({"num_workers": 6, "persistent_workers": True}))
        self.assertEqual(answer[0], {"batch_size": 8, "num_workers": 6, "persistent_workers": True})
        self.assertEqual(answer[1], ["headrace: by the plan", "  num_workers: 2 -> 6  (because of num_workers)",
                                     "  persistent_workers: False -> True  (because of persistent_workers)"])
        self.assertEqual(answer[2], {"batch_size": 8, "num_workers": 2})

    def test_arguments_of_a_loader_make_one_that_gives_the_same(self):
        answer = self.answer("""
loader = DataLoader(list(range(20)), batch_size=4, num_workers=1, prefetch_factor=3)
got, said = applied(json.load(open(PLAN)), loader)
again = DataLoader(**got)
answer = [again.num_workers, again.prefetch_factor, list(again) == list(loader), loader.num_workers, said]
again._iterator.shutdown(); loader._iterator.shutdown()
wrapped, said = applied(PLAN, headrace.wrap(loader))
assert wrapped["num_workers"] == 2 and wrapped["dataset"] is loader.dataset, wrapped
print(json.dumps(answer))
""", plan({"num_workers": 2}))
        self.assertEqual(answer, [2, 3, True, 1, ["headrace: by the plan", "  num_workers: 1 -> 2  (because of num_workers)"]])

    def test_what_the_plan_leaves_is_left(self):
        answer = self.answer("""
got, said = applied(PLAN, DataLoader, num_workers=4, context="spawn")
quiet, nothing = applied(PLAN, DataLoader, quiet=True, num_workers=1)
print(json.dumps([got, said, quiet, nothing]))
""", plan({"num_workers": 4}))
        self.assertEqual(answer, [{"num_workers": 4, "context": "spawn"}, ["headrace: the plan changes nothing"],
                                  {"num_workers": 4}, []])

    def test_nothing_that_needs_workers_without_workers_and_nothing_that_is_not_taken(self):
        answer = self.answer("""
class Old:
    def __init__(self, dataset, num_workers=0): pass
got, said = applied(PLAN, DataLoader, num_workers=3, prefetch_factor=4)
old, older = applied(PLAN, Old, num_workers=3)
print(json.dumps([got, said, old, older]))
""", plan({"num_workers": 0, "persistent_workers": True}))
        self.assertEqual(answer[0], {"num_workers": 0})
        self.assertIn("  persistent_workers: left out, as there are no workers", answer[1])
        self.assertEqual(answer[2], {"num_workers": 0})
        self.assertIn("  persistent_workers: Old does not take it, left out", answer[3])

    def test_what_is_no_plan_is_refused_with_what_to_do(self):
        cases = ["no", "[]", "{}", json.dumps({"schema": "headrace.plan/1"}), json.dumps(plan({}, emit={"target": "tf.data"})),
                 json.dumps(plan({"num_workers": -1})), json.dumps(plan({"num_workers": True})), json.dumps(plan({"num_workers": "4"})),
                 json.dumps(plan({"persistent_workers": 1})), json.dumps(plan({"dataset": 4}))]
        for given in cases:
            with self.subTest(given):
                answer = self.answer("""
try:
    headrace.apply(PLAN, DataLoader)
    print(json.dumps(None))
except headrace.PlanError as error:
    print(json.dumps(str(error)))
""", given)
                self.assertIsNotNone(answer)
                self.assertIn("plan.json: ", answer)
                self.assertNotIn("\n", answer)

    def test_works_with_accounts_switched_off(self):
        code = "print(json.dumps(applied(PLAN, DataLoader)[0]))"
        self.assertEqual(self.answer(code, plan({"num_workers": 5}), HEADRACE_ACCOUNTS="off"), {"num_workers": 5})

    @unittest.skipUnless(TORCH, "HEADRACE_TEST_PYTHON names no interpreter with torch")
    def test_with_torch(self):
        answer = self.answer("""
import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, SequentialSampler
class Items(Dataset):
    def __len__(self): return 20
    def __getitem__(self, i): return i
class Stream(IterableDataset):
    def __iter__(self): return iter(range(20))
def values(loader): return [b.tolist() if hasattr(b, "tolist") else b for b in loader]
out = []
for loader in (DataLoader(Items(), batch_size=4), DataLoader(Items(), batch_size=3, drop_last=True, num_workers=1, prefetch_factor=3),
               DataLoader(Items(), batch_sampler=BatchSampler(SequentialSampler(range(20)), 5, False)),
               DataLoader(Stream(), batch_size=4, num_workers=1), DataLoader(Items(), batch_size=None),
               headrace.wrap(DataLoader(Items(), batch_size=4))):
    got, said = applied(PLAN, loader)
    if isinstance(loader.dataset, Stream): got["num_workers"] = 1
    again = DataLoader(**got)
    out.append([again.num_workers, again.prefetch_factor, again.persistent_workers, values(again) == values(loader)])
print(json.dumps(out))
""", plan({"num_workers": 2, "persistent_workers": True}), python=TORCH)
        self.assertEqual(answer, [[2, 2, True, True], [2, 3, True, True], [2, 2, True, True], [1, 2, True, True],
                                  [2, 2, True, True], [2, 2, True, True]])


class FromARun(ProgramTest):
    """profile, plan --emit, apply: of a loader whose two workers sleep, and of one that its trainer keeps waiting."""

    def emitted(self, planted, workers):
        database = str(self.folder / f"{planted}.db")
        environment = self.environment(HEADRACE_DB=database)
        command = [HEADRACE, "profile", "-q", "--", sys.executable, self.script(LOADER), planted, str(workers), "fork", "3"]
        subprocess.run(command, check=True, timeout=120, env=environment, cwd=self.folder, capture_output=True)
        plan_path = self.folder / f"{planted}.json"
        subprocess.run([HEADRACE, "plan", "latest", "--emit", "dataloader", "-o", str(plan_path), "--cores", "8"], check=True,
                       timeout=120, env=environment, cwd=self.folder, capture_output=True)
        check = subprocess.run([sys.executable, str(SOURCE / "tests/cli/schema.py"), str(SOURCE / "docs/schema/plan.schema.json"),
                                str(plan_path)], capture_output=True, text=True, timeout=60)
        self.assertEqual(check.returncode, 0, check.stdout)
        return plan_path, json.loads(pathlib.Path(plan_path).read_text())["emit"]

    def test_slow_workers_get_more_and_apply_gives_them(self):
        path, emitted = self.emitted("workers", 2)
        self.assertGreater(emitted["settings"]["num_workers"], 2)
        self.assertGreater(emitted["predicted"]["batches_per_second"], 1.3 * emitted["now_batches_per_second"])
        memory = emitted["memory"]
        if memory["worker_bytes"] is None:  # a busy machine: no worker's memory was read within the three seconds
            self.assertIn("measured", memory["note"])
        else:
            self.assertGreater(memory["worker_bytes"], 1 << 20)
        self.assertIn("pin_memory", [one["name"] for one in emitted["not_recommended"]])
        result = self.run_program(PRELUDE + f"print(json.dumps(applied({str(path)!r}, DataLoader, num_workers=2)[0]))")
        self.assertEqual(result.answer["num_workers"], emitted["settings"]["num_workers"])

    def test_workers_that_wait_for_the_trainer_become_fewer(self):
        _, emitted = self.emitted("trainer", 4)
        self.assertLess(emitted["settings"]["num_workers"], 4)


if __name__ == "__main__":
    unittest.main()

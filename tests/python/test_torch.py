"""wrap() with torch's own DataLoader. Needs HEADRACE_TEST_PYTHON, an interpreter that can import torch."""
import os
import subprocess
import unittest

from programs import ProgramTest
from test_profile import Profile

PYTHON = os.environ.get("HEADRACE_TEST_PYTHON", "")

PRELUDE = """
import json, os, sys, time
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, get_worker_info
import headrace, segments

class Items(Dataset):
    def __init__(self, n): self.n = n
    def __len__(self): return self.n
    def __getitem__(self, i):
        info = get_worker_info()
        assert info is None or type(info.dataset) is Items
        with headrace.operator("decode"): time.sleep(0.002)
        return {"x": torch.full((3,), float(i)), "y": i}

class Stream(IterableDataset):
    def __init__(self, n): self.begin, self.end = 0, n
    def __iter__(self):
        for i in range(self.begin, self.end):
            time.sleep(0.002)
            yield torch.full((3,), float(i)), i

def split(number):  # as torch's manual does it
    info = get_worker_info()
    part = (info.dataset.end - info.dataset.begin) // info.num_workers
    info.dataset.begin, info.dataset.end = number * part, (number + 1) * part

def values(batch):
    return (batch["y"] if isinstance(batch, dict) else batch[1]).tolist()
"""

MEASURE = """
if __name__ == "__main__":
    torch.set_num_threads(1)
    arguments = dict({arguments})
    loader = headrace.wrap(DataLoader({dataset}, batch_size=4, **arguments))
    assert isinstance(loader, DataLoader)
    got = []
    for epoch in range({epochs}):
        for batch in loader:
            got += values(batch)
    merged = segments.merged()
    workers = sum(one.parallelism.get("workers", 0) for one in segments.everybody())
    s = segments.mine()
    print(json.dumps({{"operators": {{"/".join(k): v for k, v in merged.items()}}, "got": sorted(got), "workers": workers,
                      "steps": s.steps, "rows": s.step_rows, "queues": s.queues}}))
"""

LOADER = """
import sys, time
import torch
from torch.utils.data import DataLoader, Dataset
import headrace
torch.set_num_threads(1)
ITEM_S, STEP_S = {"workers": (0.02, 0.002), "trainer": (0.0005, 0.03)}[sys.argv[1]]

class Items(Dataset):
    def __len__(self): return 1 << 20
    def __getitem__(self, i):
        with headrace.operator("decode"): time.sleep(ITEM_S)
        return torch.full((8,), float(i))

if __name__ == "__main__":
    workers = int(sys.argv[2])
    loader = headrace.wrap(DataLoader(Items(), batch_size=4, num_workers=workers,
                                      multiprocessing_context=sys.argv[3] if workers else None))
    began = None
    for batch in loader:
        began = began or time.monotonic()
        time.sleep(STEP_S)
        if time.monotonic() > began + float(sys.argv[4]): break
"""


def why_not():
    if not PYTHON:
        return "HEADRACE_TEST_PYTHON is not set: name an interpreter that can import torch"
    done = subprocess.run([PYTHON, "-c", "import torch"], capture_output=True, text=True)
    return "" if done.returncode == 0 else f"{PYTHON}: {done.stderr.strip().splitlines()[-1]}"


REASON = why_not()


@unittest.skipIf(REASON, REASON)
class Torch(ProgramTest):
    python = PYTHON

    def check(self, dataset, arguments, workers, stage, source="getitem", epochs=1, items=40):
        answer = self.run_program(PRELUDE + MEASURE.format(dataset=dataset, arguments=arguments, epochs=epochs)).answer
        self.assertEqual(answer["got"], sorted(list(range(items)) * epochs))
        operators = answer["operators"]
        self.assertEqual(operators[f"{stage}/{source}"]["completions"], items * epochs)
        self.assertEqual(operators[f"{stage}/collate"]["rows"], items * epochs)
        self.assertEqual((answer["steps"], answer["rows"]), (operators["trainer/step"]["completions"], items * epochs))
        self.assertEqual(answer["workers"], workers)
        if workers:
            # The ends of the workers' parts pass through the queue as well.
            self.assertIn(answer["queues"]["batches"]["gets"] - answer["steps"], range(workers + 1))
        return answer

    def test_no_worker(self):
        self.check("Items(40)", "num_workers=0", 0, "loader")
        self.check("Stream(40)", "num_workers=0", 0, "loader", source="next")

    # Workers that are not persistent end with the epoch, and their segments with them: these are read before.
    def test_one_worker(self):
        self.check("Items(40)", "num_workers=1, persistent_workers=True", 1, "workers")

    def test_four_workers(self):
        self.check("Items(40)", "num_workers=4, persistent_workers=True", 4, "workers", epochs=2)

    def test_spawned_workers(self):
        self.check("Items(40)", "num_workers=2, persistent_workers=True, multiprocessing_context='spawn'", 2, "workers")

    def test_iterable_dataset(self):
        self.check("Stream(40)", "num_workers=2, persistent_workers=True, worker_init_fn=split", 2, "workers",
                   source="next")

    def test_data_pipes_tensor_datasets_and_samplers(self):
        answer = self.run_program(PRELUDE + """
from torch.utils.data import RandomSampler, BatchSampler, Subset, ConcatDataset
try:
    from torch.utils.data.datapipes.iter import IterableWrapper
except ImportError:
    IterableWrapper = None
def count(loader): return sum(len(b[0] if isinstance(b, (list, tuple)) else b) for b in headrace.wrap(loader))
if __name__ == "__main__":
    numbers = TensorDataset(torch.arange(40))
    got = [count(DataLoader(numbers, batch_size=8, shuffle=True, num_workers=w)) for w in (0, 2)]
    got.append(count(DataLoader(Subset(ConcatDataset([numbers, numbers]), range(40)), batch_size=8, num_workers=1)))
    got.append(count(DataLoader(numbers, batch_sampler=BatchSampler(RandomSampler(numbers), 5, True))))
    got.append(sum(1 for _ in headrace.wrap(DataLoader(numbers, batch_size=None, num_workers=1))))
    got += [count(DataLoader(IterableWrapper(range(40)), batch_size=8, num_workers=w)) if IterableWrapper else 40 for w in (0, 1)]
    print(json.dumps(got))
""").answer
        self.assertEqual(answer, [40] * 7)

    def test_same_random_numbers_as_without(self):
        answer = self.run_program(PRELUDE + """
class Noise(Dataset):
    def __len__(self): return 16
    def __getitem__(self, i): return torch.rand(2)
def draw(wrap):
    torch.manual_seed(7)
    loader = DataLoader(Noise(), batch_size=4, shuffle=True, num_workers=2)
    return [b.tolist() for b in (headrace.wrap(loader) if wrap else loader)]
print(json.dumps(draw(True) == draw(False)))
""").answer
        self.assertTrue(answer)

    def test_exceptions_of_workers(self):
        result = self.run_program(PRELUDE + """
class Bad(Items):
    def __getitem__(self, i): raise KeyError("bad item")
for workers in (0, 1):
    try:
        for batch in headrace.wrap(DataLoader(Bad(8), num_workers=workers)): pass
    except KeyError as error: print("bad item" in str(error))
""")
        self.assertEqual(result.stdout, "True\nTrue\n")


@unittest.skipIf(REASON, REASON)
class TorchProfile(Profile):
    python = PYTHON

    def test_loader_limited_by_its_workers(self):
        self.check(LOADER, ("workers", 2, "fork"), {"stage"}, "workers", ["decode", "getitem", "collate"])

    def test_spawned_loader_limited_by_its_trainer(self):
        self.check(LOADER, ("trainer", 2, "spawn"), {"consumer"}, "workers", ["decode", "getitem", "collate"])

    def test_loader_without_workers(self):
        self.check(LOADER, ("workers", 0, "fork"), {"thread"}, "loader", ["decode", "getitem", "collate"])

    test_spawned_pool_limited_by_its_workers = None


del Profile  # its own tests are run where it is

if __name__ == "__main__":
    unittest.main()

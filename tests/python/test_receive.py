"""What the trainer's thread does for batches of workers, and the hook that accounts for programs as they are: with a
stand-in for torch's loader (torch_like)."""
import os
import shutil
import subprocess
import sys
import unittest

from programs import HEADRACE, HERE, LIBRARY, SOURCE, ProgramTest

HOOK = str(SOURCE / "probes/python/headrace/hook")

PRELUDE = """
import json, time
import headrace, segments, torch_like

class Items:
    def __init__(self, n, size=1, slow=None): self.n, self.size, self.slow = n, size, slow
    def __len__(self): return self.n
    def __getitem__(self, i):
        time.sleep(0.3 if i == self.slow else 0.002)
        return bytes(self.size)

def show(**more):
    s = segments.mine()
    print(json.dumps({"operators": {"/".join(k): v for k, v in s.operators.items()}, "steps": s.steps,
                      "wait_s": s.step_wait_ns / 1e9, "tps": s.ticks_per_second, **more}))
"""

# A program that knows nothing of headrace.
PLAIN = """
import sys, time
from torch.utils.data import dataloader
class Items:
    def __len__(self): return 40
    def __getitem__(self, i): return i
if __name__ == "__main__":
    loader = dataloader.DataLoader(Items(), batch_size=4, num_workers=2, context=sys.argv[1])
    iterator = iter(loader)
    print(sum(len(batch) for batch in iterator), isinstance(iterator, dataloader.Iterator), len(loader),
          "sitecustomize" in sys.modules, any(path.endswith("headrace/hook") for path in sys.path))
    if "headrace" in sys.modules and len(sys.argv) < 3:
        sys.path.insert(0, "HERE")
        import segments
        print(sorted("/".join(key) for key in segments.mine().operators))
""".replace("HERE", str(HERE))


class Receive(ProgramTest):
    def measured(self, code, **environment):
        result = self.run_program(PRELUDE + code, **environment)
        self.assertEqual(result.stderr, "")
        self.assertEqual(result.left, [])
        return result.answer

    def seconds(self, answer, operator, what="busy"):
        return answer["operators"][operator][what] / answer["tps"]

    def test_bytes_and_unpickling_are_the_receivers(self):
        answer = self.measured("""
if __name__ == "__main__":
    loader = headrace.wrap(torch_like.DataLoader(Items(16, 1 << 20), batch_size=4, num_workers=1, persistent_workers=True))
    for batch in loader: pass
    show()
    loader._iterator.shutdown()
""")
        receive = answer["operators"]["receiver/receive"]
        self.assertEqual(answer["steps"], 4)
        self.assertGreater(receive["in_bytes"], 16 << 20)
        self.assertLess(receive["in_bytes"], 17 << 20)
        self.assertEqual(answer["operators"]["receiver/unpickle"]["completions"], 4)
        self.assertGreater(self.seconds(answer, "receiver/receive"), 0)
        # The request is a wait of the step, whatever part of it was work.
        self.assertGreater(answer["wait_s"], 0.02)

    def test_tensors_that_are_shared_by_name_are_told_apart(self):
        answer = self.measured("""
import sys, types
sys.modules["torch.multiprocessing"] = types.SimpleNamespace(get_sharing_strategy=lambda: "file_system")
if __name__ == "__main__":
    loader = headrace.wrap(torch_like.DataLoader(Items(8), batch_size=4, num_workers=1, persistent_workers=True))
    for batch in loader: pass
    show()
    loader._iterator.shutdown()
""")
        self.assertEqual(answer["operators"]["receiver/unpickle_by_name"]["completions"], 2)
        self.assertNotIn("receiver/unpickle", answer["operators"])

    def test_the_thread_that_pins_batches_is_a_stage(self):
        answer = self.measured("""
if __name__ == "__main__":
    loader = headrace.wrap(torch_like.DataLoader(Items(80), batch_size=4, num_workers=3, pin_memory=True))
    taken = sum(len(batch) for batch in loader)
    mine = segments.mine()
    show(taken=taken, stages=mine.parallelism, queues=sorted(mine.queues))
""")
        self.assertEqual(answer["taken"], 80)
        self.assertEqual(answer["stages"], {"workers": 3, "pin_memory": 1, "receiver": 0, "trainer": 1})
        self.assertEqual(answer["queues"], ["batches", "pinned"])
        pin = answer["operators"]["pin_memory/pin_memory"]
        # The thread may have waited for the first batch already when it was found.
        self.assertGreaterEqual(pin["completions"], 18)
        self.assertGreater(self.seconds(answer, "pin_memory/pin_memory"), 18 * 0.02)
        self.assertGreater(answer["operators"]["pin_memory/receive"]["in_bytes"], 0)
        self.assertGreaterEqual(answer["operators"]["pin_memory/unpickle"]["completions"], 18)

    def test_the_workers_are_those_of_the_loaders_in_use(self):
        for together, expected in ((False, 3), (True, 4)):
            answer = self.measured("""
if __name__ == "__main__":
    headrace._batches._PERIOD_NS = 50_000_000
    loaders = [headrace.wrap(torch_like.DataLoader(Items(400), batch_size=4, num_workers=n, persistent_workers=True)) for n in (1, 3)]
    if %s:
        for pair in zip(*loaders): time.sleep(0.005)
    else:
        for loader in loaders:  # the first one's workers stay
            for batch in loader: time.sleep(0.005)
    show(stages=segments.mine().parallelism)
    for loader in loaders: loader._iterator.shutdown()
""" % together)
            self.assertEqual(answer["stages"]["workers"], expected)

    def test_waits_for_the_batch_that_is_due(self):
        answer = self.measured("""
if __name__ == "__main__":
    loader = headrace.wrap(torch_like.DataLoader(Items(16, slow=5), batch_size=1, num_workers=2, persistent_workers=True))
    for batch in loader: pass
    show()
    loader._iterator.shutdown()
""")
        self.assertGreater(self.seconds(answer, "receiver/in_order", "wait_in"), 0.15)

    def test_the_sampler_is_work_of_the_trainers_thread(self):
        for workers, stage in ((1, "receiver"), (0, "loader")):
            answer = self.measured("""
if __name__ == "__main__":
    class Slow(list):
        def __iter__(self):
            for indices in list.__iter__(self):
                end = time.monotonic() + 0.02
                while time.monotonic() < end: pass
                yield indices
    plain = torch_like.DataLoader(Items(40), batch_size=4, num_workers=%d, persistent_workers=True)
    plain.batch_sampler = Slow(plain.batch_sampler)
    loader = headrace.wrap(plain)
    iterator = iter(loader)
    taken = sum(len(batch) for batch in iterator)
    assert taken == 40 and isinstance(iterator, (torch_like.Iterator, torch_like.fake_loader.SingleProcessIterator))
    show()
    if plain.num_workers: loader._iterator.shutdown()
""" % workers)
            sampler = answer["operators"][stage + "/sampler"]
            # With workers, the first indices are sent before the first batch is asked for.
            self.assertGreaterEqual(sampler["completions"], 8)
            self.assertGreater(self.seconds(answer, stage + "/sampler"), 0.15)
            self.assertEqual(answer["steps"], 10)

    def test_workers_that_start_again_cost_the_trainer(self):
        answer = self.measured("""
if __name__ == "__main__":
    loader = headrace.wrap(torch_like.DataLoader(Items(8), batch_size=4, num_workers=2))
    for epoch in range(3):
        for batch in loader: pass
    show()
""")
        # The first start is that of the program.
        self.assertEqual(answer["operators"]["receiver/start_workers"]["completions"], 2)
        self.assertGreater(self.seconds(answer, "receiver/start_workers"), 0.004)
        self.assertGreater(self.seconds(answer, "receiver/end_workers"), 0)
        self.assertGreaterEqual(answer["wait_s"] + 0.001, self.seconds(answer, "receiver/start_workers"))

    def test_each_loader_starts_once(self):
        answer = self.measured("""
if __name__ == "__main__":
    loaders = [headrace.wrap(torch_like.DataLoader(Items(8), batch_size=4, num_workers=1)) for _ in range(6)]
    for loader in loaders:
        for batch in loader: pass
    show()
""")
        self.assertNotIn("receiver/start_workers", answer["operators"])

    def test_loaders_that_are_made_anew_for_each_epoch_start_again(self):
        answer = self.measured("""
if __name__ == "__main__":
    for epoch in range(6):
        for batch in headrace.wrap(torch_like.DataLoader(Items(8), batch_size=4, num_workers=1)): pass
    show()
""")
        # Three of a kind may be those for training, validation and tests.
        self.assertEqual(answer["operators"]["receiver/start_workers"]["completions"], 3)

    def test_time_between_epochs_is_counted_once(self):
        answer = self.measured("""
if __name__ == "__main__":
    class SlowToStart(torch_like.DataLoader):
        def _get_iterator(self):
            time.sleep(0.1)
            return super()._get_iterator()
    class Iterator(torch_like.Iterator):
        def _shutdown_workers(self):
            time.sleep(0.05)
            super()._shutdown_workers()
    torch_like.Iterator = Iterator
    begin = time.monotonic()
    train = headrace.wrap(SlowToStart(Items(12), batch_size=4, num_workers=1))
    validate = headrace.wrap(SlowToStart(Items(4), batch_size=4, num_workers=1))
    for batch in train:
        for other in validate: pass  # inside a step of the training
    s = segments.mine()
    show(all_s=(s.step_wait_ns + s.step_compute_ns) / 1e9, compute_s=s.step_compute_ns / 1e9, took_s=time.monotonic() - begin)
""")
        self.assertLess(answer["all_s"], 1.02 * answer["took_s"])
        # Of validation, the workers that start twice more, and those that end before another step.
        self.assertGreater(answer["wait_s"], 2 * (0.1 + 0.05))
        self.assertAlmostEqual(answer["compute_s"], self.seconds(answer, "trainer/step"), delta=0.05)

    def test_an_iterator_that_is_left_ends_its_workers(self):
        answer = self.measured("""
import gc, multiprocessing
if __name__ == "__main__":
    gc.disable()
    class Iterator(torch_like.Iterator):
        def __del__(self): self._shutdown_workers()
    torch_like.Iterator = Iterator
    for batch in headrace.wrap(torch_like.DataLoader(Items(80), batch_size=4, num_workers=2)): break
    del batch
    show(left=len(multiprocessing.active_children()))
""")
        self.assertEqual(answer["left"], 0, "kept alive by a cycle")


class Hook(ProgramTest):
    def setUp(self):
        super().setUp()
        package = self.folder / "plain/torch/utils/data"
        package.mkdir(parents=True)
        for folder in (package, package.parent, package.parent.parent):
            (folder / "__init__.py").touch()
        (package / "dataloader.py").write_text("from torch_like import DataLoader, Iterator\n")

    def run_plain(self, *arguments, context="fork", path=(), **environment):
        folders = [HOOK, *path, str(self.folder / "plain"), str(HERE)]
        return subprocess.run([sys.executable, self.script(PLAIN), context, *arguments], capture_output=True, text=True,
                              timeout=120, env=self.environment(PYTHONPATH=os.pathsep.join(folders), **environment))

    def test_accounts_for_a_program_as_it_is(self):
        for context in ("fork", "spawn"):
            done = self.run_plain(context=context)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            says, operators = done.stdout.splitlines()
            self.assertEqual(says.split()[:3], ["40", "True", "10"])
            self.assertEqual(says.split()[4], "False", "the program's path is as it was")
            self.assertIn("receiver/receive", operators)
            self.assertIn("trainer/step", operators)

    def test_a_sitecustomize_that_was_there_runs(self):
        other = self.folder / "other"
        other.mkdir()
        (other / "sitecustomize.py").write_text("import sys\nsys.stderr.write('the other one\\n')\n")
        done = self.run_plain(path=[str(other)])
        self.assertEqual(done.returncode, 0)
        self.assertIn("the other one", done.stderr.splitlines())

    def test_leaves_alone_what_it_is_told_to(self):
        done = self.run_plain(HEADRACE_ACCOUNTS="off")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(len(done.stdout.splitlines()), 1, "no accounts, no package")

    def test_a_version_made_differently_is_said_and_works(self):
        module = self.folder / "plain/torch/utils/data/dataloader.py"
        module.write_text("import torch_like\nIterator = torch_like.Iterator\n"
                          "def DataLoader(*a, **b): return torch_like.DataLoader(*a, **b)\n")
        done = self.run_plain("no accounts")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("seen from outside", done.stderr)
        self.assertEqual(done.stdout.split()[0], "40")

    def test_a_folder_of_that_name_is_not_the_package(self):
        (self.folder / "headrace").mkdir()  # beside the program, as a clone of the repository may be
        done = self.run_plain()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("receiver/receive", done.stdout)

    def test_a_package_of_another_version_is_said(self):
        other = self.folder / "own/headrace"
        shutil.copytree(SOURCE / "probes/python/headrace", other)
        done = self.run_plain(path=[str(other.parent)])
        self.assertEqual((done.returncode, done.stderr), (0, ""), "of the same version")
        init = other / "__init__.py"
        init.write_text(init.read_text().replace('__version__ = "', '__version__ = "0.0.'))
        done = self.run_plain(path=[str(other.parent)])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("has its own headrace package 0.0.", done.stderr)
        self.assertIn(str(other), done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertIn("receiver/receive", done.stdout)

    def test_two_hooks_count_once(self):
        other = self.folder / "copy/headrace"
        shutil.copytree(SOURCE / "probes/python/headrace", other)
        done = self.run_plain(path=[str(other / "hook")])
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("receiver/receive", done.stdout)

    def test_spawned_workers_that_cannot_have_it_are_left_alone(self):
        (self.folder / "plain/torch/utils/data/dataloader.py").write_text(
            "import os\nfrom torch_like import DataLoader, Iterator\nos.environ['PYTHONPATH'] = ''\n"
            "DataLoader.multiprocessing_context = __import__('multiprocessing').get_context('spawn')\n")
        done = self.run_plain(context="spawn", PYTHONSAFEPATH=None)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.split()[0], "40")

    def test_profile_puts_it_in_and_leaves_it_out(self):
        for options, operators in (([], True), (["--no-hook"], False)):
            database = str(self.folder / f"hook{len(options)}.db")
            path = os.pathsep.join([str(self.folder / "plain"), str(HERE)])
            done = subprocess.run([HEADRACE, "profile", "-q", *options, "--db", database, "--", sys.executable,
                                   self.script(PLAIN), "fork"], capture_output=True, text=True, timeout=120,
                                  env=self.environment(PYTHONPATH=path, HEADRACE_ACCOUNT_LIBRARY=None))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual("receiver/receive" in done.stdout, operators, done.stdout)


if __name__ == "__main__":
    unittest.main()

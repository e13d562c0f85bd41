"""tf.data, Keras and Ray Data in programs that know nothing of headrace, over stand-ins: what is accounted for, as what, and
that everything else stays as it was."""
import ast
import os
import unittest

import fake_frameworks
from programs import HERE, SOURCE, ProgramTest

HOOK = str(SOURCE / "probes/python/headrace/hook")

PRELUDE = """
import gc, os, sys, threading, time, weakref
sys.path.insert(0, "FOLDER")

def show(got):
    if "headrace" not in sys.modules:
        return print((got, {}, {}, 0, (0, 0, 0)))
    sys.path.insert(0, "HERE")
    import segments
    try:
        mine = segments.mine()
    except FileNotFoundError:
        return print((got, {}, {}, 0, (0, 0, 0)))
    every = segments.merged()
    counted = {"/".join(key): sums["completions"] for key, sums in every.items()}
    busy = {"/".join(key): round(mine.seconds(sums["busy"]), 3) for key, sums in every.items()}
    print((got, counted, busy, mine.steps,
           (mine.step_wait_ns / 1e9, mine.step_compute_ns / 1e9, mine.step_rows)))

def slow(x):
    time.sleep(0.005)
    return x + 1

def heavy(x):
    time.sleep(0.03)
    return x
""".replace("HERE", str(HERE))

LOOP = """
import tensorflow.data as data
got = []
for batch in {dataset}:
    got.append(batch)
    time.sleep({step})
show(got)
"""


class Frameworks(ProgramTest):
    def setUp(self):
        super().setUp()
        fake_frameworks.write(self.folder)

    def plain(self, code, **environment):
        """(what the program got, completions and busy seconds by stage and operator, steps, (waited, computed) seconds)"""
        code = PRELUDE.replace("FOLDER", str(self.folder)) + code
        result = self.run_program(code, **{"PYTHONPATH": HOOK, **environment})
        self.assertEqual(result.stderr, "")
        return ast.literal_eval(result.stdout.strip().splitlines()[-1])

    def check_loop(self, dataset, step, expected):
        got, counted, busy, steps, times = self.plain(LOOP.format(dataset=dataset, step=step))
        unhooked = self.plain(LOOP.format(dataset=dataset, step=step), PYTHONPATH="")
        if "num_parallel_calls" in dataset:  # threads of the stand-in keep no order
            got, unhooked = sorted(sum(got, [])), (sorted(sum(unhooked[0], [])),)
        self.assertEqual(got, unhooked[0])
        self.assertEqual({key for key in counted if key != "trainer/step"}, set(expected), counted)
        return counted, busy, steps, times

    def test_a_pipeline_in_the_trainers_own_thread(self):
        counted, busy, steps, (waited, computed, rows) = self.check_loop(
            "data.Range(400).map(slow).batch(4)", 0.002, ["tf.data/map", "tf.data/batch"])
        self.assertEqual(steps, 99, "the first batch shows how it is made")
        self.assertEqual(rows, 99 * 4)
        self.assertGreater(counted["tf.data/map"], 300)
        self.assertGreater(waited, 99 * 0.02)
        self.assertGreater(busy["tf.data/map"], 0.8 * waited)
        self.assertLess(busy["tf.data/map"], 1.1 * waited)

    def test_the_first_batch_of_a_later_iterator_is_waited_for(self):
        code = """
import tensorflow.data as data
got = []
dataset = data.Range(80).map(slow).batch(4).prefetch(2)
for epoch in range(4):
    time.sleep(0.01)
    for batch in dataset:
        got.append(batch)
show(got)
"""
        got, counted, busy, steps, (waited, _, rows) = self.plain(code)
        self.assertEqual(got, self.plain(code, PYTHONPATH="")[0])
        self.assertEqual(counted["receiver/first_batch"], 3, "that of the first is of the start")
        self.assertGreater(busy["receiver/first_batch"], 3 * 4 * 0.005)
        self.assertLess(busy["receiver/first_batch"], 0.5 * waited)
        self.assertEqual((steps, rows), (4 * 20 - 1, 4 * (4 * 20 - 1)))

    def test_what_runs_beside_the_trainer_has_a_stage_for_each_kind_of_thread(self):
        counted, busy, steps, (waited, computed, rows) = self.check_loop(
            "data.Range(400).map(slow, num_parallel_calls=2).batch(4).prefetch(2)", 0.03,
            ["tf.data map/map", "tf.data batch/batch"])
        self.assertEqual(steps, 99)
        self.assertGreater(computed, 99 * 0.03)
        self.assertGreater(counted["tf.data map/map"], 300)
        self.assertGreater(counted["tf.data batch/batch"], 75)
        self.assertGreater(busy["tf.data map/map"], 300 * 0.005)

    def test_what_the_trainers_thread_does_behind_others_is_a_stage_if_it_is_much(self):
        made = "data.Range(400).map(slow, num_parallel_calls=2).batch(4).prefetch(2)"
        counted, busy, _, (waited, _, _) = self.check_loop(
            made + ".map(heavy)", 0.002, ["tf.data map/map", "tf.data batch/batch", "tf.data after batch/map"])
        self.assertGreater(counted["tf.data after batch/map"], 75)
        self.assertGreater(busy["tf.data after batch/map"], 0.7 * waited)
        self.assertLess(busy["tf.data after batch/map"], 1.1 * waited)
        self.check_loop(made + ".map(lambda batch: batch)", 0.002, ["tf.data map/map", "tf.data batch/batch"])

    def test_threads_of_a_stage_run_at_once_and_prefetch_is_a_queue(self):
        got = self.plain("""
import tensorflow.data as data
for batch in data.Range(200).map(slow, num_parallel_calls=3).batch(4).prefetch(2): pass
sys.path.insert(0, "%s")
import segments
show((segments.mine().parallelism, segments.mine().queues["batches"]))
""" % HERE)[0]
        threads, queue = got
        self.assertEqual((threads["tf.data map"], threads["tf.data batch"], threads["trainer"]), (3, 1, 1))
        self.assertGreaterEqual(queue["capacity"], 2)
        self.assertGreater(queue["gets"], 20)

    def test_a_stage_has_no_more_threads_than_the_pool_of_its_calls(self):
        cores = min(5, len(os.sched_getaffinity(0)))
        for private, expected in ((2, 2), (4, 4), (0, cores), (None, cores), ("'made differently'", cores)):
            with self.subTest(private=private):
                threads, _ = self.plain("""
import tensorflow.data as data
data.Dataset.pool = %s
for batch in data.Range(200).map(slow, num_parallel_calls=5).batch(4).prefetch(2): pass
sys.path.insert(0, "%s")
import segments
show((segments.mine().parallelism, 0))
""" % (private, HERE))[0]
                self.assertEqual(threads["tf.data map"], expected)

    def test_without_a_model_only_the_trainers_own_thread_is_seen(self):
        for dataset, expected in (("data.Range(80).map(slow).batch(4)", ["tf.data/fetch"]),
                                  ("data.Range(80).map(slow).batch(4).prefetch(2)", [])):
            with self.subTest(dataset):
                code = LOOP.format(dataset=dataset, step=0).replace("got = []", "got = []\ndata.Dataset.autotune = False")
                got, counted, _, steps, _ = self.plain(code)
                self.assertEqual(len(got), 20)
                self.assertEqual([key for key in counted if key != "trainer/step"], expected)
                self.assertEqual(steps, 19 if expected else 0)

    def test_models_of_another_format_are_left_alone(self):
        for change in ("lambda iterator: 1 / 0", "lambda iterator: None", "lambda iterator: type('M', (), {'nodes': {}, 'output': 7})"):
            with self.subTest(change):
                got, counted, _, _, _ = self.plain("""
import tensorflow.data as data
from tensorflow.python.data.experimental.ops import iterator_model_ops
iterator_model_ops.get_model_proto = %s
show(list(data.Range(40).map(slow).batch(4).prefetch(2)))
""" % change)
                self.assertEqual(len(got), 10)
                self.assertEqual(counted, {})

    def test_versions_that_lack_something_are_said_and_left_alone(self):
        path = self.folder / "tensorflow/python/data/ops/iterator_ops.py"
        path.write_text(path.read_text().replace("from tensorflow.python.eager import context", ""))
        path = self.folder / "keras/src/backend/tensorflow/trainer.py"
        path.write_text(path.read_text().replace("make_train_function", "make_function"))
        path = self.folder / "ray/data/_internal/execution/operators/map_operator.py"
        path.write_text(path.read_text().replace("_map_task", "_task"))
        code = PRELUDE.replace("FOLDER", str(self.folder)) + """
import tensorflow.data as data
import ray.data._internal.execution.operators.map_operator
from keras.src.backend.tensorflow.trainer import TensorFlowTrainer
show((list(data.Range(8).batch(4)), TensorFlowTrainer(sum).fit(data.Range(8).batch(4))))
"""
        result = self.run_program(code, PYTHONPATH=HOOK)
        self.assertEqual(ast.literal_eval(result.stdout)[0], ([[0, 1, 2, 3], [4, 5, 6, 7]], [6, 22]))
        self.assertEqual([line.split()[1] for line in result.stderr.splitlines()], [
            "tensorflow.python.data.ops.iterator_ops", "ray.data._internal.execution.operators.map_operator",
            "keras.src.backend.tensorflow.trainer"])

    def test_a_model_that_goes_away_ends_what_is_seen(self):
        got, counted, _, steps, _ = self.plain("""
import tensorflow.data as data
from tensorflow.python.data.experimental.ops import iterator_model_ops
made, looks = iterator_model_ops.get_model_proto, []
def once(iterator):
    looks.append(1)
    if len(looks) > 2: raise RuntimeError("gone")
    return made(iterator)
iterator_model_ops.get_model_proto = once
show((len(list(data.Range(400).map(slow).batch(4).prefetch(2))), len(looks)))
""")
        self.assertEqual(got, (100, 3))
        self.assertLess(steps, 40)

    def test_the_iterator_lives_as_long_as_the_program_keeps_it(self):
        got = self.plain("""
import tensorflow.data as data
gc.disable()
iterator = iter(data.Range(4000).map(slow).batch(4))
for _ in range(60): next(iterator)
gone = weakref.ref(iterator)
del iterator
show(gone() is None)
""")[0]
        self.assertIs(got, True)

    def test_errors_and_ends_are_the_programs_own(self):
        got, counted, _, _, _ = self.plain("""
import tensorflow.data as data
def odd(x):
    if x == 9: raise ValueError("nine")
    return x
seen = []
iterator = iter(data.Range(20).map(odd).batch(2))
for _ in range(12):
    try: seen.append(iterator.get_next())
    except Exception as error: seen.append(type(error).__name__)
show(seen)
""")
        self.assertEqual(got[:5], [[0, 1], [2, 3], [4, 5], [6, 7], "ValueError"])
        self.assertEqual(got[5:], ["OutOfRange"] * 7)

    def test_other_threads_and_sources_inside_of_others_are_left_alone(self):
        for name, code in (("another thread", """
got = []
other = threading.Thread(target=lambda: got.extend(data.Range(40).batch(4))); other.start(); other.join()
show(got)
"""), ("inside of a loader", """
sys.path.insert(0, "PACKAGE")
import headrace
def batches():
    yield from data.Range(40).batch(4)
show(list(headrace.wrap(batches())))
""".replace("PACKAGE", str(SOURCE / "probes/python")))):
            with self.subTest(name):
                got, counted, _, _, _ = self.plain("import tensorflow.data as data\n" + code)
                self.assertEqual(len(got), 10)
                self.assertFalse([key for key in counted if key.startswith("tf.data")], counted)

    def test_accounts_that_are_off_change_nothing(self):
        got, counted, _, _, _ = self.plain(LOOP.format(dataset="data.Range(40).batch(4)", step=0), HEADRACE_ACCOUNTS="off")
        self.assertEqual((len(got), counted), (10, {}))

    FIT = """
import tensorflow.data as data
from keras.src.backend.tensorflow.trainer import TensorFlowTrainer
def step(batch):
    time.sleep({step})
    return sum(batch)
trainer = TensorFlowTrainer(step, {each})
show(trainer.fit({dataset}))
"""

    def test_fit_waits_inside_of_its_step(self):
        for each, step, parts in ((1, 0.001, "waits"), (1, 0.03, "computes"), (2, 0.03, "computes")):
            with self.subTest(each=each, step=step):
                code = self.FIT.format(dataset="data.Range(480).map(slow).batch(4).prefetch(2)", step=step, each=each)
                got, counted, busy, steps, (waited, computed, rows) = self.plain(code)
                self.assertEqual(got, self.plain(code, PYTHONPATH="")[0])
                self.assertGreater(steps, 75 / each)
                self.assertLess(steps, 120 / each)
                self.assertGreater(counted["tf.data map/map"], 200)
                share = waited / (waited + computed)
                if parts == "waits":
                    self.assertGreater(share, 0.7)
                else:
                    self.assertLess(share, 0.3)

    def test_short_epochs_of_fit_are_seen_to_their_ends(self):
        code = self.FIT.format(dataset="data.Range(40).map(slow).batch(4).prefetch(2), 5", step=0.001, each=1)
        got, counted, busy, steps, (waited, computed, rows) = self.plain(code)
        self.assertEqual(len(got), 50)
        self.assertEqual(steps, 5 * 9)
        self.assertGreater(waited, computed)

    def test_fit_over_what_has_no_model_is_left_alone(self):
        code = self.FIT.format(dataset="data.Range(40).batch(4)", step=0, each=1)
        got, counted, _, _, _ = self.plain(code.replace("def step", "data.Dataset.autotune = False\ndef step"))
        self.assertEqual((len(got), counted), (10, {}))

    RAY = """
import ray.data.iterator as ray_data
def decode(rows):
    time.sleep({task})
    return rows
got = []
for batch in ray_data.DataIterator(decode, "MapBatches(decode)", 60).iter_batches(batch_size=8):
    got.append(batch["id"][0])
    time.sleep({step})
show(got)
"""

    def test_tasks_of_ray_have_stages(self):
        code = self.RAY.format(task=0.02, step=0.002)
        got, counted, busy, steps, (waited, computed, rows) = self.plain(code)
        self.assertEqual(got, self.plain(code, PYTHONPATH="")[0])
        self.assertEqual(got, list(range(0, 480, 8)))
        self.assertIn(steps, (58, 59))
        self.assertGreater(waited, computed)
        self.assertEqual(set(counted), {"trainer/step"}, "the process of the tasks is gone with its accounts")

    def test_the_first_batch_of_a_later_pass_of_ray_is_waited_for(self):
        code = """
import ray.data.iterator as ray_data
def decode(rows):
    time.sleep(0.1)
    return rows
got = []
for epoch in range(3):
    for batch in ray_data.DataIterator(decode, "MapBatches(decode)", 4).iter_batches(batch_size=8):
        got.append(batch["id"][0])
show(got)
"""
        got, _, _, steps, (waited, _, _) = self.plain(code)
        self.assertEqual(got, 3 * list(range(0, 32, 8)))
        self.assertIn(steps, (3 * 4 - 1, 3 * 4 - 2))
        self.assertGreater(waited, (steps - 1) * 0.1)

    def test_pools_that_ray_makes_for_itself_are_no_batches(self):
        code = """
import types
module = types.ModuleType("NAME")
exec('''
import concurrent.futures
def read(count):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return [call.result() for call in [pool.submit(abs, number) for number in range(count)]]
''', module.__dict__)
show(module.read(40))
"""
        got, counted, _, steps, _ = self.plain(code.replace("NAME", "ray.data.reads"))
        self.assertEqual((got, counted, steps), (list(range(40)), {}, 0))
        self.assertGreater(self.plain(code.replace("NAME", "reads"))[3], 30)
        trained = """
import types
ray_train = types.ModuleType("ray.train.worker")
exec("def run(function): return function()", ray_train.__dict__)
import concurrent.futures
def loop():
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return [call.result() for call in [pool.submit(abs, number) for number in range(40)]]
show(ray_train.run(loop))
"""
        self.assertGreater(self.plain(trained)[3], 30, "a function of the program that Ray calls")

    def test_threads_of_ray_that_collate_are_a_stage(self):
        code = """
import ray.data.iterator as ray_data
class Collate:
    width = 3
    def __call__(self, batch):
        time.sleep(0.01)
        return {"sum": sum(batch["id"])}
collate = Collate()
got = []
for batch in ray_data.DataIterator(list, "MapBatches(list)", 60).iter_torch_batches(batch_size=8, collate_fn=collate):
    got.append(batch["sum"])
    time.sleep(0.001)
show(got)
"""
        got, counted, busy, steps, (waited, computed, rows) = self.plain(code)
        self.assertEqual(got, self.plain(code, PYTHONPATH="")[0])
        self.assertEqual(counted["ray.data collate/collate"], 60)
        self.assertGreater(busy["ray.data collate/collate"], 0.5)
        self.assertGreater(waited, computed)

    def test_what_ray_makes_differently_is_left_alone(self):
        got, counted, _, steps, _ = self.plain("""
import ray.data.iterator as ray_data
made = ray_data.DataIterator._iter_batches
def other(self, *, batch_size=4):
    return range(10)
ray_data.DataIterator._iter_batches = other
show(list(ray_data.DataIterator(None, "x", 1).iter_batches()))
""")
        self.assertEqual((got, counted), (list(range(10)), {}))


if __name__ == "__main__":
    unittest.main()

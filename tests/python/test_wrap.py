"""wrap(): the consumer's waits, batches, rows and steps; workers of a DataLoader, with a stand-in for torch's."""
import unittest

from programs import ProgramTest

PRELUDE = """
import json, os, sys, time
import headrace, segments, fake_loader

def show(merged=None, **more):
    s = segments.mine()
    print(json.dumps({"operators": {"/".join(k): v for k, v in (merged or s.operators).items()}, "stages": s.stages,
                      "steps": s.steps, "rows": s.step_rows, "wait_s": s.step_wait_ns / 1e9, "queues": s.queues,
                      "compute_s": s.step_compute_ns / 1e9, "tps": s.ticks_per_second,
                      "depths": [x["depth"] for x in s.slots], **more}))

class Items:
    def __init__(self, n): self.n, self.offset = n, 0
    def __len__(self): return self.n
    def __getitem__(self, i):
        with headrace.operator("decode"): time.sleep(0.002)
        if i == 13 and self.offset: raise KeyError("thirteen")
        return i

class ItemLists(Items):
    def __getitems__(self, indices): return [self[i] for i in indices]

class Stream(fake_loader.IterableDataset):
    def __init__(self, n): self.n = n
    def __iter__(self):
        for i in range(self.n):
            time.sleep(0.002)
            yield i

def init(number):
    open(os.path.join(os.path.dirname(segments.folder()), f"init-{number}-{os.getpid()}"), "w").close()

def shut(loader):
    if loader.num_workers: loader._iterator.shutdown()
"""

# The library makes no functions of the interpreter's own kind.
BY_CTYPES = """
import ctypes
class Library(ctypes.PyDLL):
    def __getattr__(self, name):
        if name != "hrx_python_calls": return super().__getattr__(name)
        self.hrx_python_calls = lambda calls: 1
        return self.hrx_python_calls
ctypes.PyDLL = Library
"""


class Iterables(ProgramTest):
    def measured(self, code):
        result = self.run_program(PRELUDE + code)
        self.assertEqual(result.stderr, "")
        self.assertEqual(result.left, [])
        return result.answer

    def test_waits_steps_and_rows(self):
        answer = self.measured("""
def batches():
    for i in range(6):
        time.sleep(0.02)
        yield [i] * 10
for batch in headrace.wrap(batches()): time.sleep(0.01)
show()
""")
        self.assertEqual((answer["steps"], answer["rows"]), (6, 60))
        self.assertGreater(answer["wait_s"], 0.12)
        self.assertGreater(answer["compute_s"], 0.06)
        self.assertLess(answer["compute_s"], answer["wait_s"] + 0.05)
        step = answer["operators"]["trainer/step"]
        self.assertEqual((step["kind"], step["completions"]), ("consumer", 6))
        self.assertGreater(step["wait_in"] / answer["tps"], 0.12)
        self.assertEqual(answer["depths"], [0])

    def test_steps_that_are_told(self):
        answer = self.measured("""
for batch in headrace.wrap([[1, 2]] * 9):
    if batch[0] and (step := globals().get("n", 0)) % 3 == 2: headrace.step()
    globals()["n"] = globals().get("n", 0) + 1
headrace.step(rows=5)
headrace.step(rows=5)
show()
""")
        # Inferred up to the first call: 2; told: 3 of the loop and the last one, for the one before it only began.
        self.assertEqual((answer["steps"], answer["rows"]), (6, 23))

    def test_steps_without_wrap(self):
        answer = self.measured("""
for i in range(4): headrace.step(rows=2)
show()
""")
        self.assertEqual((answer["steps"], answer["rows"]), (3, 6))  # when the first began is not known

    def test_two_sources_make_one_step(self):
        answer = self.measured("""
a, b = headrace.wrap([[1]] * 5), headrace.wrap([[2, 3]] * 5)
for x, y in zip(a, b): pass
show()
""")
        self.assertEqual((answer["steps"], answer["rows"]), (5, 15))

    def test_broken_off_and_several_epochs(self):
        answer = self.measured("""
loader = headrace.wrap([[1]] * 10)
for epoch in range(3):
    for i, x in enumerate(loader):
        if i == 3: break
time.sleep(0.05)
show()
""")
        self.assertEqual(answer["steps"], 12)
        self.assertLess(answer["compute_s"] + answer["wait_s"], 0.05)

    def test_what_follows_the_last_batch_is_no_step(self):
        answer = self.measured("""
batches = iter(headrace.wrap([[1]] * 30))
for i, x in enumerate(batches):
    time.sleep(0.001)
    if i == 20: break
time.sleep(2)
del batches
show()
""")
        self.assertEqual((answer["steps"], answer["rows"]), (20, 20))
        self.assertLess(answer["compute_s"], 1.5)

    def test_operators_in_a_request_are_no_part_of_the_trainer(self):
        answer = self.measured("""
@headrace.operator("read")
def read():
    for i in range(3): yield [i]
for b in headrace.wrap(read()):
    with headrace.operator("forward"): pass
show()
""")
        self.assertEqual({k: v["completions"] for k, v in answer["operators"].items()},
                         {"trainer/step": 3, "loader/read": 3, "trainer/forward": 3})

    def test_nested_wraps_count_once(self):
        answer = self.measured("""
inner = headrace.wrap([[1], [2]])
assert headrace.wrap(inner) is inner
outer = headrace.wrap(x for x in inner)
assert headrace.wrap(outer) is outer
assert list(outer) == [[1], [2]]
show()
""")
        self.assertEqual((answer["steps"], answer["rows"]), (2, 2))
        self.assertEqual(answer["depths"], [0])

    def test_what_is_wrapped_looks_as_before(self):
        answer = self.measured("""
class Loader:
    sampler = "s"
    def __init__(self): self.epoch = 0
    def __iter__(self): return iter([1, 2, 3])
    def __len__(self): return 3
    def __getitem__(self, i): return i
    def set_epoch(self, e): self.epoch = e
class Endless:
    def __iter__(self): return iter([1])
w = headrace.wrap(Loader())
w.set_epoch(4)
errors = []
for attempt in (lambda: len(headrace.wrap(Endless())), lambda: w.nothing):
    try: attempt()
    except (TypeError, AttributeError) as e: errors.append(type(e).__name__)
def gen():
    got = yield 1
    yield got
g = headrace.wrap(gen())
import pickle, copy
copied = pickle.loads(pickle.dumps(headrace.wrap([1, 2])))
show(len=len(w), sampler=w.sampler, epoch=w.epoch, errors=errors, item=w[7], sent=[next(g), g.send(5)],
     copied=list(copied))
""")
        self.assertEqual([answer[k] for k in ("len", "sampler", "epoch", "errors", "item", "sent", "copied")],
                         [3, "s", 4, ["TypeError", "AttributeError"], 7, [1, 5], [1, 2]])

    def test_exceptions_pass_unchanged(self):
        answer = self.measured("""
error = ValueError("v")
def batches():
    yield [1]
    raise error
seen = []
try:
    for b in headrace.wrap(batches()): seen.append(b)
except ValueError as e: seen.append(e is error and e.__context__ is None)
show(seen=seen)
""")
        self.assertEqual(answer["seen"], [[1], True])
        self.assertEqual(answer["depths"], [0])

    def test_rows_of_a_batch(self):
        answer = self.run_program(PRELUDE + """
from headrace._batches import rows_of
class Tensor:
    def __init__(self, *shape): self.shape = shape
    def __len__(self): return self.shape[0]
t = Tensor(32, 3)
class Odd:
    def __len__(self): return 7
cases = [(t, False), ([t, Tensor(32)], True), ((t, t), False), ({"x": t}, False), ([Tensor(3, 3)] * 5, False),
         ([1, 2, 3], True), ((1, 2), False), ("abc", False), (5, False), (None, False), ([], True),
         ([{"x": 1}] * 4, False), (Odd(), False), ({"x": [t, t]}, False)]
print(json.dumps([rows_of(batch, collated) for batch, collated in cases]))
""").answer
        self.assertEqual(answer, [32, 32, 32, 32, 5, 3, 2, 0, 0, 0, 0, 4, 7, 32])

    def test_rows_that_are_told(self):
        answer = self.measured("""
def odd(batch): raise RuntimeError
class Scalar:
    shape = ()
    def __len__(self): return self.shape[0]
scalar = Scalar()
assert list(headrace.wrap([scalar])) == [scalar]
assert list(headrace.wrap([1, 2], rows=8)) == [1, 2]
assert list(headrace.wrap([1, 2], rows=lambda b: b)) == [1, 2]
assert list(headrace.wrap([1, 2], rows=odd)) == [1, 2]
assert list(headrace.wrap([1, 2], rows=-5)) == [1, 2]
show()
""")
        self.assertEqual((answer["steps"], answer["rows"]), (9, 19))

    def test_forked_in_a_request(self):
        answer = self.measured("""
def batches():
    yield [0]
    if os.fork() == 0:
        yield [1]
        headrace.close()
        os._exit(0)
    os.wait()
    yield [2]
got = list(headrace.wrap(batches()))
show(got=got)
""")
        self.assertEqual(answer["got"], [[0], [2]])
        self.assertEqual(answer["steps"], 2)


class Loaders(ProgramTest):
    """Every way of having workers must give the same batches and the same counts."""

    def check(self, arguments, items=40, epochs=1, dataset="Items", source="getitem"):
        result = self.run_program(PRELUDE + f"""
if __name__ == "__main__":
    dataset = {dataset}({items})
    plain = fake_loader.DataLoader(dataset, batch_size=4, num_batches={items} // 4)
    loader = headrace.wrap(fake_loader.DataLoader(dataset, batch_size=4, worker_init_fn=init, {arguments}))
    assert isinstance(loader, fake_loader.DataLoader) and loader.dataset is dataset and len(loader) == len(plain)
    assert loader.collate_fn is fake_loader.default_collate and loader.worker_init_fn is init
    expected = sorted(map(str, plain))
    merged = {{}}
    for epoch in range({epochs}):
        batches = []
        for batch in loader:
            batches.append(str(batch))
            merged = segments.merged()
        if loader.num_workers < 2 or {dataset} is Items: assert sorted(batches) == expected, (batches, expected)
    stages = {{s: p for one in segments.everybody() for s, p in one.parallelism.items() if p}}
    workers = sum(one.parallelism.get("workers", 0) for one in segments.everybody())
    segments_before = len(segments.everybody())
    merged = segments.merged()
    shut(loader)
    show(merged=merged, workers=workers, inits=len([f for f in os.listdir(os.path.dirname(segments.folder()))
         if f.startswith("init-")]))
""")
        self.assertEqual(result.stderr, "")
        self.assertEqual(result.left, [], "segments of workers that ended")
        return result.answer

    def check_counts(self, answer, stage, workers, batches, items, source="getitem"):
        operators = answer["operators"]
        self.assertEqual(operators[f"{stage}/{source}"]["completions"], items)
        self.assertEqual(operators[f"{stage}/collate"]["completions"], batches)
        self.assertEqual(operators[f"{stage}/collate"]["rows"], items)
        self.assertEqual(operators["trainer/step"]["completions"], batches)
        self.assertEqual((answer["steps"], answer["rows"]), (batches, items))
        self.assertEqual(answer["inits"], workers)
        if workers:
            self.assertEqual(answer["workers"], workers)
            self.assertEqual(answer["queues"]["batches"]["capacity"], 2 * workers)
            self.assertEqual(answer["queues"]["batches"]["gets"], batches)
            self.assertEqual([s for s in answer["stages"] if s != "main"], ["workers", "trainer"])

    def test_no_worker(self):
        answer = self.check("num_workers=0")
        self.check_counts(answer, "loader", 0, 10, 40)
        self.assertEqual(answer["operators"]["loader/fetch"]["completions"], 10)
        self.assertEqual(answer["operators"]["loader/decode"]["completions"], 40)

    def test_one_forked_worker(self):
        self.check_counts(self.check("num_workers=1"), "workers", 1, 10, 40)

    def test_four_forked_workers(self):
        answer = self.check("num_workers=4")
        self.check_counts(answer, "workers", 4, 10, 40)
        self.assertEqual(answer["operators"]["workers/decode"]["completions"], 40)

    def test_spawned_workers(self):
        self.check_counts(self.check("num_workers=2, context='spawn'"), "workers", 2, 10, 40)

    def test_workers_of_a_fork_server(self):
        self.check_counts(self.check("num_workers=2, context='forkserver'"), "workers", 2, 10, 40)

    def test_persistent_workers(self):
        answer = self.check("num_workers=2, persistent_workers=True", epochs=3)
        self.check_counts(answer, "workers", 2, 30, 120)

    def test_all_items_of_a_batch_at_once(self):
        self.check_counts(self.check("num_workers=2", dataset="ItemLists"), "workers", 2, 10, 40)

    def test_iterable_datasets(self):
        answer = self.check("num_workers=1, num_batches=10", dataset="Stream")
        self.check_counts(answer, "workers", 1, 10, 40, source="next")
        answer = self.check("num_workers=0, num_batches=10", dataset="Stream")
        self.assertEqual(answer["operators"]["loader/next"]["completions"], 40)

    def test_spawned_iterable(self):
        answer = self.check("num_workers=1, num_batches=10, context='spawn'", dataset="Stream")
        self.check_counts(answer, "workers", 1, 10, 40, source="next")

    def test_idle_workers_wait_for_room(self):
        result = self.run_program(PRELUDE + """
loader = headrace.wrap(fake_loader.DataLoader(Items(24), batch_size=4, num_workers=1))
for batch in loader: time.sleep(0.05)
show(merged=segments.merged())
shut(loader)
""")
        collate = result.answer["operators"]["workers/collate"]
        self.assertGreater(collate["wait_out"] / result.answer["tps"], 0.1)

    def test_exceptions_of_workers_reach_the_consumer(self):
        for workers in (0, 2):
            answer = self.run_program(PRELUDE + f"""
items = Items(40); items.offset = 1
loader = headrace.wrap(fake_loader.DataLoader(items, batch_size=4, num_workers={workers}))
got = []
try:
    for batch in loader: got.append(batch)
except KeyError as error: got.append(repr(error))
shut(loader)
show(got=got)
""").answer
            self.assertEqual(answer["got"], [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], "KeyError('thirteen')"])

    def test_changes_of_the_users_dataset_reach_the_workers(self):
        answer = self.run_program(PRELUDE + """
class Offset(Items):
    def __getitem__(self, i): return i + self.offset
items = Offset(4)
loader = headrace.wrap(fake_loader.DataLoader(items, batch_size=4, num_workers=1))
got = list(loader); shut(loader)
items.offset = 100
got += list(loader); shut(loader)
show(got=got)
""").answer
        self.assertEqual(answer["got"], [[0, 1, 2, 3], [100, 101, 102, 103]])

    def test_pickled_loaders_stay_accounted(self):
        answer = self.run_program(PRELUDE + """
import copy, pickle
loader = headrace.wrap(fake_loader.DataLoader(Items(8), batch_size=4))
del loader.context
other = pickle.loads(pickle.dumps(loader))
third = copy.copy(loader)
assert type(other) is type(loader) is type(third) and headrace.wrap(other) is other
show(got=list(other) + list(third))
""").answer
        self.assertEqual(len(answer["got"]), 4)
        self.assertEqual(answer["operators"]["loader/getitem"]["completions"], 16)

    def test_functions_that_readers_of_stacks_know(self):
        # By these analysis/outside/python_places.cc tells what is called for the operator.
        code = PRELUDE + """
def caller():
    frame = sys._getframe(1)
    while os.path.basename(frame.f_code.co_filename) != "_loader.py": frame = frame.f_back
    return type(frame.f_locals["self"]).__name__ + "." + frame.f_code.co_name
class One:
    def __len__(self): return 8
    def __getitem__(self, i): return caller()
class Slow(One):
    def __getitem__(self, i):
        time.sleep(0.001)
        return caller()
class Lists(One):
    def __getitems__(self, indices): return [caller() for i in indices]
seen = []
for kind in One, Slow, Lists:
    loader = headrace.wrap(fake_loader.DataLoader(kind(), batch_size=4, collate_fn=list))
    seen.append([batch[0] for batch in loader])
show(seen=seen)
"""
        one, all_items, lists = "_MapItems.__getitem__", "_MapItems.__getitems__", "_MapItemLists.__getitems__"
        for prelude, seen in (("", [[all_items] * 2] * 2), (BY_CTYPES, [[one, all_items], [one] * 2])):
            answer = self.run_program(prelude + code).answer
            self.assertEqual(answer["seen"], seen + [[lists] * 2])
            self.assertEqual(answer["operators"]["loader/getitem"]["completions"], 24)

    def test_interpreter_that_keeps_its_functions_to_itself(self):
        code = PRELUDE + """
class Odd(Items):
    def __getitem__(self, i):
        if i == 13: raise KeyError("thirteen")
        with headrace.operator("decode"): time.sleep(0.0005)
        return i
def counts():
    return {k: (v["enters"], v["completions"], v["rows"]) for k, v in
            {"/".join(k): v for k, v in segments.mine().operators.items()}.items()}
loader = headrace.wrap(fake_loader.DataLoader(Odd(16), batch_size=4, collate_fn=list))
got = []
try:
    for batch in loader: got += batch
except KeyError: pass
from headrace import _loader
show(got=got, counts=counts(), fast=_loader._items is not None)
"""
        fast, slow = self.run_program(code).answer, self.run_program(BY_CTYPES + code).answer
        self.assertEqual((fast["fast"], slow["fast"]), (True, False))
        self.assertEqual(fast["got"], list(range(12)))
        for key in "got", "counts", "steps", "rows", "depths":
            self.assertEqual(fast[key], slow[key], key)
        self.assertEqual(fast["counts"]["loader/getitem"], [14, 13, 13])

    def test_rows_are_the_same_by_the_library_and_by_python(self):
        code = PRELUDE + """
class Shaped:
    def __init__(self, *shape): self.shape = shape
class Tensor(Shaped):
    def __len__(self): return self.shape[0]
class Odd:
    def __len__(self): return 7
class Wrong:
    @property
    def shape(self): raise RuntimeError
kinds = [lambda b: b, tuple, lambda b: [Tensor(32, 3), Tensor(32)], lambda b: (Tensor(5), 1), lambda b: Tensor(6, 2), lambda b: {"x": Tensor(9)},
         lambda b: [Shaped(224, 224)] * 3, lambda b: Shaped(11), lambda b: [], lambda b: None, lambda b: [None] * 2, lambda b: Odd(), lambda b: "abc",
         lambda b: [[1, 2, 3], [4, 5, 6]], lambda b: Wrong(), lambda b: [Wrong()], lambda b: Tensor(-3), lambda b: 1 << 40]
rows = []
for kind in kinds:
    for batch in headrace.wrap(fake_loader.DataLoader(Items(16), batch_size=4, collate_fn=kind)): pass
    rows.append(segments.mine().step_rows)
show(by_kind=rows)
"""
        fast, slow = self.run_program(code).answer, self.run_program(BY_CTYPES + code).answer
        self.assertEqual((fast["steps"], fast["rows"], fast["by_kind"]), (slow["steps"], slow["rows"], slow["by_kind"]))
        self.assertEqual((fast["steps"], fast["rows"]), (18 * 4, 4 * (4 + 4 + 32 + 5 + 6 + 9 + 3 + 11 + 2 + 7 + 3 + 1)))

    def test_iterator_that_is_let_go_while_it_is_asked(self):
        self.run_program(PRELUDE + """
import itertools
class Inside:
    asked = 0
    def __iter__(self): return self
    def __next__(self):
        Inside.asked += 1
        if Inside.asked == 3: next(chain, None)  # ends it: the chain lets it go
        if Inside.asked > 3: raise StopIteration
        return [Inside.asked]
from headrace._batches import LoaderBatches
chain = itertools.chain(LoaderBatches(Inside()))
show(got=list(chain))
""")

    def test_items_before_an_error_are_counted(self):
        answer = self.run_program(PRELUDE + """
class Broken:
    def __len__(self): return 8
    def __getitem__(self, i):
        if i == 6: raise KeyError(i)
        return i
got = []
try:
    for batch in headrace.wrap(fake_loader.DataLoader(Broken(), batch_size=4, collate_fn=list)): got += batch
except KeyError as error:
    got.append(str(error))
show(got=got)
""").answer
        self.assertEqual(answer["got"], [0, 1, 2, 3, "6"])
        self.assertEqual(answer["operators"]["loader/getitem"]["completions"], 6)

    def test_killed_worker_changes_nothing_else(self):
        result = self.run_program(PRELUDE + """
import signal
loader = headrace.wrap(fake_loader.DataLoader(Items(400), batch_size=4, num_workers=2))
it = iter(loader); next(it)
os.kill(loader._iterator._workers[0].pid, signal.SIGKILL)
loader._iterator._workers[1].terminate()
for w in loader._iterator._workers: w.join()
show()
""")
        self.assertEqual(result.answer["steps"], 0)


if __name__ == "__main__":
    unittest.main()

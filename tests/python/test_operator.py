"""operator(): what is counted, what is passed through."""
import unittest

from programs import ProgramTest

PRELUDE = """
import json, os, sys, threading, time
import headrace, segments
def show(**more):
    s = segments.mine()
    print(json.dumps({"operators": {"/".join(k): v for k, v in s.operators.items()}, "stages": s.stages,
                      "depths": [x["depth"] for x in s.slots], "tps": s.ticks_per_second, **more}))
"""


class Operator(ProgramTest):
    def measured(self, code, **environment):
        result = self.run_program(PRELUDE + code, **environment)
        self.assertEqual(result.stderr, "")
        self.assertEqual(result.left, [], "the segment outlived its process")
        return result.answer

    def test_context_manager_counts_and_times(self):
        answer = self.measured("""
decode = headrace.operator("decode", kind="codec")
for i in range(5):
    with decode as op:
        time.sleep(0.01)
        op.rows(3)
        op.bytes(read=10, made=20)
with headrace.operator("decode", kind="codec"):
    headrace.rows(1)
    headrace.bytes(read=1)
show(same=headrace.operator("decode", kind="codec") is decode)
""")
        decode = answer["operators"]["main/decode"]
        self.assertEqual([decode[k] for k in ("enters", "completions", "rows", "in_bytes", "out_bytes", "kind")],
                         [6, 6, 16, 51, 100, "codec"])
        self.assertGreater(decode["busy"] / answer["tps"], 0.05)
        self.assertTrue(answer["same"])
        self.assertEqual(answer["depths"], [0])

    def test_nested_operators_stop_the_outer_clock(self):
        answer = self.measured("""
with headrace.operator("outer"):
    with headrace.operator("inner"):
        time.sleep(0.05)
show()
""")
        operators = answer["operators"]
        self.assertGreater(operators["main/inner"]["busy"] / answer["tps"], 0.05)
        self.assertLess(operators["main/outer"]["busy"], operators["main/inner"]["busy"])

    def test_decorated_functions_keep_result_name_and_signature(self):
        answer = self.measured("""
import inspect
@headrace.operator("add")
def add(a, b=2, *, c=3):
    "Adds."
    return a + b + c
class Some:
    @headrace.operator("method")
    def method(self, x): return (self, x)
some = Some()
assert some.method(1) == (some, 1)
show(sum=add(1, c=4), name=add.__name__, doc=add.__doc__, signature=str(inspect.signature(add)))
""")
        self.assertEqual([answer[k] for k in ("sum", "name", "doc", "signature")],
                         [7, "add", "Adds.", "(a, b=2, *, c=3)"])
        self.assertEqual(answer["operators"]["main/add"]["completions"], 1)
        self.assertEqual(answer["operators"]["main/method"]["completions"], 1)

    def test_exceptions_pass_unchanged_and_are_no_completions(self):
        answer = self.measured("""
class Mine(Exception): pass
error = Mine("x")
seen = []
op = headrace.operator("fail")
@op
def fail(): raise error
for call in range(3):
    try:
        with op: fail()
    except Mine as caught: seen.append(caught is error and caught.__context__ is None)
try:
    with op: raise SystemExit(3)
except SystemExit as e: seen.append(e.code == 3)
show(seen=seen)
""")
        self.assertEqual(answer["seen"], [True] * 4)
        fail = answer["operators"]["main/fail"]
        self.assertEqual((fail["enters"], fail["completions"]), (7, 0))
        self.assertEqual(answer["depths"], [0])

    def test_generators_count_elements_and_stop_between_them(self):
        answer = self.measured("""
log = []
@headrace.operator("read")
def read(n):
    try:
        for i in range(n):
            time.sleep(0.002)
            got = yield i
            if got: log.append(got)
    finally:
        log.append("closed")
    return "end"
a = list(read(4))
def outer():
    log.append((yield from read(2)))
list(outer())
g = read(5); next(g); time.sleep(0.05); g.send("sent"); g.close()
g = read(5); next(g)
try: g.throw(KeyError("k"))
except KeyError: log.append("thrown")
show(a=a, log=log)
""")
        self.assertEqual(answer["a"], [0, 1, 2, 3])
        self.assertEqual(answer["log"], ["closed", "closed", "end", "sent", "closed", "closed", "thrown"])
        read = answer["operators"]["main/read"]
        self.assertEqual(read["completions"], 4 + 2 + 2 + 1)
        self.assertLess(read["busy"] / answer["tps"], 0.05)

    def test_coroutines_count_the_time_they_run(self):
        answer = self.measured("""
import asyncio
@headrace.operator("fetch")
async def fetch(n):
    await asyncio.sleep(0.05)
    return n
async def main():
    return await asyncio.gather(*[fetch(i) for i in range(4)])
r = asyncio.run(main())
errors = []
async def wrong():
    async with headrace.operator("fetch"): pass
try: asyncio.run(wrong())
except TypeError as e: errors.append(str(e))
show(r=r, errors=errors)
""")
        self.assertEqual(answer["r"], [0, 1, 2, 3])
        self.assertEqual(answer["operators"]["main/fetch"]["completions"], 4)
        self.assertLess(answer["operators"]["main/fetch"]["busy"] / answer["tps"], 0.05)
        self.assertIn("await", answer["errors"][0])

    def test_threads_have_slots_and_stages_of_their_own(self):
        answer = self.measured("""
from concurrent.futures import ThreadPoolExecutor
@headrace.operator("decode")
def decode(x): time.sleep(0.005); return x
decode(0)
with ThreadPoolExecutor(3, thread_name_prefix="reader") as pool:
    list(pool.map(decode, range(30)))
    show(parallelism=segments.mine().parallelism)
""")
        self.assertEqual(answer["operators"]["reader/decode"]["completions"], 30)
        self.assertEqual(answer["operators"]["main/decode"]["completions"], 1)
        self.assertEqual(answer["parallelism"], {"main": 1, "reader": 3})

    def test_stages_can_be_given(self):
        answer = self.measured("""
with headrace.stage("parse", parallelism=2, max_parallelism=4):
    with headrace.operator("split"): pass
with headrace.operator("split"): pass
with headrace.operator("write", stage="sink"): pass
show()
""")
        self.assertEqual({k: v["completions"] for k, v in answer["operators"].items()},
                         {"parse/split": 1, "main/split": 1, "sink/write": 1})

    def test_forked_children_keep_accounts_of_their_own(self):
        answer = self.measured("""
import multiprocessing
def work(n):
    for i in range(n):
        with headrace.operator("decode"): pass
    return os.getpid()
if __name__ == "__main__":
    work(5)
    before = segments.mine().operators[("main", "decode")]["completions"]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pids = pool.map(work, [7] * 8, chunksize=1)
        merged = segments.merged()
        pool.close(); pool.join()
    work(1)
    show(own=before, workers=merged[("ForkPoolWorker", "decode")]["completions"], left=sorted(os.listdir(segments.folder())),
         pid=os.getpid())
""")
        self.assertEqual((answer["own"], answer["workers"]), (5, 56))
        self.assertEqual(answer["operators"]["main/decode"]["completions"], 6)
        self.assertEqual(answer["left"], [f"headrace.{answer['pid']}"])

    def test_fork_inside_an_operator(self):
        answer = self.measured("""
op = headrace.operator("outer")
with op:
    pid = os.fork()
    if pid == 0:
        with headrace.operator("child"): pass
        s = segments.mine()
        ok = ("forked", "child") in s.operators and ("main", "outer") not in s.operators
        headrace.close()
        os._exit(0 if ok else 1)
    status = os.waitpid(pid, 0)[1]
show(status=status)
""")
        self.assertEqual(answer["status"], 0)
        self.assertEqual(answer["operators"]["main/outer"]["completions"], 1)

    def test_close_and_open_begin_a_new_segment(self):
        answer = self.measured("""
op = headrace.operator("decode")
with op: pass
headrace.close()
gone = os.listdir(segments.folder())
with op: pass
still = os.listdir(segments.folder())
assert headrace.open("again")
with op: pass
assert headrace.open("again")
show(gone=gone, still=still, program=segments.mine().program)
""")
        self.assertEqual((answer["gone"], answer["still"], answer["program"]), ([], [], "again"))
        self.assertEqual(answer["operators"]["main/decode"]["completions"], 1)

    def test_more_than_there_is_room_for(self):
        result = self.run_program(PRELUDE + """
deep = headrace.operator("deep")
with deep: pass
for i in range(1500):
    with headrace.operator(f"operator {i}") as op: op.count(rows=1)
def nest(n):
    if n:
        with deep: nest(n - 1)
nest(100)
with headrace.operator("operator 0"): pass
s = segments.mine()
print(json.dumps([len(s.operators), s.losses[1], s.losses[5], s.slots[0]["depth"],
                  s.operators[("main", "operator 0")]["completions"]]))
""")
        operators, operators_lost, frames_lost, depth, completions = result.answer
        self.assertEqual((operators, depth, completions), (256, 0, 2))
        self.assertGreaterEqual(operators_lost, 700)
        self.assertEqual(frames_lost, 100 - 24)

    def test_misuse_is_said_at_once(self):
        answer = self.run_program(PRELUDE + """
errors = []
def attempt(f):
    try: f()
    except TypeError as e: errors.append(str(e))
async def stream(): yield 1
attempt(lambda: headrace.operator(len))
attempt(lambda: headrace.operator("x")(3))
attempt(lambda: headrace.operator("x")(stream))
attempt(lambda: headrace.wrap(3))
print(json.dumps(errors))
""").answer
        self.assertEqual(len(answer), 4)

    def test_operators_can_be_pickled(self):
        answer = self.run_program(PRELUDE + """
import pickle
op = headrace.operator("decode", kind="k", stage="s")
print(json.dumps(pickle.loads(pickle.dumps(op)) is op))
""").answer
        self.assertTrue(answer)

    def test_names_of_any_kind(self):
        answer = self.measured("""
for name in ("", "ü" * 100, "a\\0b", "x" * 500):
    with headrace.operator(name): pass
show()
""")
        self.assertEqual(sum(o["completions"] for o in answer["operators"].values()), 4)


if __name__ == "__main__":
    unittest.main()

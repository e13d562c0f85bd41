"""Pools of multiprocessing and concurrent.futures in programs that know nothing of headrace: whose results are accounted
for, as what, and that everything else stays as it was."""
import ast
import tempfile
import unittest

from programs import HERE, SOURCE, ProgramTest

HOOK = str(SOURCE / "probes/python/headrace/hook")

PRELUDE = """
import concurrent.futures as futures, functools, multiprocessing, multiprocessing.pool, os, sys, threading, time

def fetch(i, more=0):
    time.sleep(0.004)
    if i < 0: raise ValueError("below zero")
    return [i + more] * 3

def many():
    with futures.ThreadPoolExecutor(2) as pool: return [one[0] for one in pool.map(fetch, range(10))]

def show(got, leave=()):
    if "headrace" not in sys.modules:
        return print((got, {}, 0, 0))
    sys.path.insert(0, "HERE")
    import segments
    try:
        mine = segments.mine()
    except FileNotFoundError:
        return print((got, {}, 0, 0))
    counted = {"/".join(key): sums["completions"] for key, sums in segments.merged().items() if key[1] not in leave}
    print((got, counted, mine.steps, mine.queues.get("results", {}).get("gets", 0)))

if __name__ == "__main__":
    context = multiprocessing.get_context("CONTEXT")
""".replace("HERE", str(HERE))

POOL = """
    with context.Pool(2) as pool:
        got = [one[0] for one in {take}]
        show(got)
"""
THREADS = """
    with futures.ThreadPoolExecutor(2) as pool:
        got = [one[0] for one in {take}]
        show(got)
"""
PROCESSES = """
    with futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        got = [one[0] for one in {take}]
        show(got)
"""


class Concurrent(ProgramTest):
    def plain(self, code, context="fork", **environment):
        """(what the program got, completions by stage and operator, steps, results taken)"""
        # Workers that a pool terminates leave theirs.
        folder = tempfile.mkdtemp(dir=self.folder)
        code = code if "def fetch" in code else PRELUDE + code
        result = self.run_program(code.replace("CONTEXT", context), PYTHONPATH=HOOK, HEADRACE_ACCOUNT_DIR=folder, **environment)
        self.assertEqual(result.stderr, "")
        return ast.literal_eval(result.stdout.strip().splitlines()[-1])

    def check(self, code, operator, got, context="fork", takes=None):
        """Every result came, in order; the calls after the first result was taken have accounts."""
        takes = len(got) if takes is None else takes
        answer, counted, steps, _ = self.plain(code, context)
        self.assertEqual(answer, got)
        stage = operator.split("/")[0]
        self.assertEqual({key.split("/")[0] for key in counted}, {stage, "trainer"}, counted)
        least = takes if context != "fork" else takes - 12  # those that were under way when the first was taken
        self.assertGreater(counted[operator], max(1, least - 1), counted)
        self.assertLessEqual(counted[operator], takes, counted)
        self.assertIn(steps, (takes - 1, takes))  # the last ends when its source is asked again
        return counted

    def test_results_of_pools(self):
        n = list(range(40))
        for name, code, operator, takes in (
                ("imap", POOL.format(take="pool.imap(fetch, range(40))"), "Pool/fetch", None),
                ("a partial", POOL.format(take="pool.imap(functools.partial(fetch, more=0), range(40))"), "Pool/fetch", None),
                ("chunks", POOL.format(take="pool.imap(fetch, range(80), chunksize=2)").replace("one[0] for one", "one[0] // 2 for one"),
                 "Pool/fetch", 40),
                ("one at a time", POOL.format(take="(pool.apply(fetch, (i,)) for i in range(40))"), "Pool/fetch", None),
                ("results asked for ahead", POOL.format(
                    take="(r.get() for r in [pool.apply_async(fetch, (i,)) for i in range(40)])"), "Pool/fetch", None),
                ("threads", POOL.replace("context.Pool", "multiprocessing.pool.ThreadPool").format(
                    take="pool.imap(fetch, range(40))"), "ThreadPool/fetch", None),
                ("executor of threads, map", THREADS.format(take="pool.map(fetch, range(40))"), "ThreadPoolExecutor/fetch",
                 None),
                ("executor of threads, a prefix of its own", THREADS.replace("(2)", "(2, 'loaders')").format(
                    take="pool.map(fetch, range(40))"), "loaders/fetch", None),
                ("executor of processes, map", PROCESSES.format(take="pool.map(fetch, range(40))"),
                 "ProcessPoolExecutor/fetch", None),
                ("executor of processes, submit", PROCESSES.format(
                    take="(f.result() for f in [pool.submit(fetch, i, more=0) for i in range(40)])"),
                 "ProcessPoolExecutor/fetch", None)):
            with self.subTest(name):
                got = [i // 2 for i in range(80)] if name == "chunks" else n
                counted = self.check(code, operator, got, takes=takes)
                if not operator.startswith(("Thread", "loaders")):
                    self.assertGreater(counted[operator.split("/")[0] + "/send"], 1, counted)

    def test_processes_made_anew(self):
        for context in ("spawn", "forkserver"):
            with self.subTest(context):
                self.check(POOL.format(take="pool.imap(fetch, range(20))"), "Pool/fetch", list(range(20)), context)
                self.check(PROCESSES.format(take="pool.map(fetch, range(20))"), "ProcessPoolExecutor/fetch", list(range(20)),
                           context)

    def test_waiting_for_any_of_them_is_waiting_for_the_next(self):
        for each in ("futures.as_completed(all)", "futures.wait(all)[0]"):
            answer, counted, steps, _ = self.plain("""
    sys.path.insert(0, "%s")
    import segments
    with futures.ThreadPoolExecutor(2) as pool:
        pool.submit(fetch, 0).result()
        begin = time.monotonic()
        all = [pool.submit(fetch, i) for i in range(40)]
        got = sorted(f.result()[0] for f in %s)
        took = time.monotonic() - begin
        show((got, segments.mine().step_wait_ns / 1e9 / took))
""" % (HERE, each))
            self.assertEqual(answer[0], list(range(40)))
            self.assertGreater(answer[1], 0.5, "of the time until all were there")
            self.assertGreater(counted["ThreadPoolExecutor/fetch"], 35)

    def test_what_is_ahead_of_the_trainer_is_seen(self):
        answer, counted, steps, taken = self.plain("""
    with context.Pool(2) as pool:
        results = pool.imap(fetch, range(60))
        got = []
        for one in results:
            got.append(one[0])
            time.sleep(0.02)
            if len(got) == 10:
                sys.path.insert(0, "%s")
                import segments
                queue = segments.mine().queues["results"]
                show((got, queue["capacity"], queue["occupancy"]))
                break
""" % HERE)
        got, capacity, occupancy = answer
        self.assertEqual((got, capacity), (list(range(10)), 0))
        self.assertGreater(occupancy, 10)
        self.assertGreater(counted["Pool/fetch"], 20)

    def test_pools_that_feed_no_trainer_are_left_alone(self):
        for name, code in (("taken by another thread", """
    got = []
    other = threading.Thread(target=lambda: got.extend(many())); other.start(); other.join()
    show(got)
"""), ("handed on by a loop", """
    import asyncio
    async def main():
        return [(await asyncio.to_thread(fetch, i))[0] for i in range(10)]
    show(asyncio.run(main()))
"""), ("inside a worker of another", """
    with context.Pool(1) as pool: show(pool.apply(many))
"""), ("nobody takes", """
    with futures.ThreadPoolExecutor(2) as pool:
        for i in range(10): pool.submit(fetch, i)
    show(list(range(10)))
""")):
            with self.subTest(name):
                answer, counted, _, _ = self.plain(code)
                self.assertEqual(answer, list(range(10)))
                self.assertFalse([key for key in counted if key.startswith("ThreadPool")], counted)

    def test_beside_a_loader_a_pool_is_none_of_its_stages(self):
        answer, counted, steps, _ = self.plain("""
    sys.path.insert(0, "%s")
    import headrace
    got = []
    with futures.ThreadPoolExecutor(2) as pool:
        for i in headrace.wrap(range(10)):
            got.append(pool.submit(fetch, i).result()[0])  # a checkpoint, say
    show(got)
""" % (SOURCE / "probes/python"))
        self.assertEqual(answer, list(range(10)))
        self.assertEqual([key for key in counted if key.startswith("ThreadPool")], [])

    def test_a_pool_behind_a_wrapped_loader_is(self):
        answer, counted, steps, _ = self.plain("""
    sys.path.insert(0, "%s")
    import headrace
    with futures.ThreadPoolExecutor(2) as pool:
        got = [one[0] for one in headrace.wrap(pool.map(fetch, range(20)))]
    show(got)
""" % (SOURCE / "probes/python"))
        self.assertEqual(answer, list(range(20)))
        self.assertGreater(counted["ThreadPoolExecutor/fetch"], 5)
        self.assertGreaterEqual(steps, 19)

    def test_an_operator_of_the_programs_own_is_counted_once(self):
        code = PRELUDE.replace("def fetch", "sys.path.insert(0, '%s')\nimport headrace\n@headrace.operator('decode')\ndef fetch" %
                               (SOURCE / "probes/python")) + POOL.format(take="pool.imap(fetch, range(40))")
        _, counted, _, _ = self.plain(code)
        self.assertLessEqual(counted["Pool/decode"], 40)
        self.assertNotIn("Pool/fetch", counted)

    def test_errors_and_timeouts_are_the_programs_own(self):
        for pool, error in (("futures.ThreadPoolExecutor(2)", "ValueError"), ("context.Pool(2)", "ValueError"),
                            ("futures.ProcessPoolExecutor(2)", "ValueError")):
            with self.subTest(pool):
                taken = "pool.apply_async(fetch, (i,)).get()" if "Pool(2)" in pool and "context" in pool else \
                    "pool.submit(fetch, i).result()"
                late = taken.replace("get()", "get(0.0001)").replace("result()", "result(0.0001)")
                answer, _, _, _ = self.plain(f"""
    seen = []
    with {pool} as pool:
        for i in (1, -1, 2):
            try: seen.append({taken}[0])
            except Exception as error: seen.append(type(error).__name__)
        try: {late}
        except Exception as error: seen.append(type(error).__name__)
    show(seen)
""")
                self.assertEqual(answer, [1, error, 2, "TimeoutError"])

    def test_accounts_that_are_off_change_nothing(self):
        answer, counted, _, _ = self.plain(POOL.format(take="pool.imap(fetch, range(10))"), HEADRACE_ACCOUNTS="off")
        self.assertEqual((answer, counted), (list(range(10)), {}))


if __name__ == "__main__":
    unittest.main()

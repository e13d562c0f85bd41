"""What limits each program, written before anything was run: words for a tool that sees inside the program's loader, words for one that sees
only threads, processes and the kernel's waits, and the change of a setting that lifts the limit (None: there is none, or it is code).

coral_counts is a trap: its --fix is popular advice and brings nothing, so no advice is written down. ferry_tracks has all processors in use
(two ranks, a worker each, two processors), so more workers bring nothing there: its --fix is code, as are those of quarry_blasts and TideGauge."""


def sure(words):
    """The words, not right after a denial."""
    return rf"(?<!not )(?<!not the )(?<!not a )(?<!n't )(?<!n't the )(?<!n't a )(?<!\bno )(?<!never )(?:{words})"


def near(one, other, gap=80):
    return rf"(?:{one}).{{0,{gap}}}(?:{other})|(?:{other}).{{0,{gap}}}(?:{one})"


def near_without(one, other, without, gap=70):
    """As near, but none of the words without in between, nor within a few letters after."""
    between = rf"(?:(?!{without}).){{0,{gap}}}?"
    after = rf"(?!.{{0,12}}(?:{without}))"
    return rf"(?:{one}){between}(?:{other}){after}|(?:{other}){between}(?:{one}){after}"


LOOP = r"trainer|training[ _](step|loop|thread|process|code|script)|train(ing)? step|\bsteps?\b|consumer|main (thread|process|loop)|own (thread|process|code)"
MODEL = r"\bmodel|forward|backward|optimi[sz]er|gradient|matmul|attention|\blayers?\b"
NET = r"network|socket|server|\btcp\b|http|remote|connect|\brecv|peer|latency|round.?trip|\bstore\b|download"
HAND = r"hand(s|ed|ing)?.?(over|off)|pickl|seriali[sz]|deseriali[sz]|transfer|\bpipes?\b|\bipc\b|inter-?process|copy|copies|copying|shared.?memory"
WORKER = r"workers?\b|pt_data_worker|data.?loaders?|loaders?\b|loading|data.?set|pre-?process|__getitem__|__iter__"
# The limit itself, or an honest way to say that something computes for as long as it can.
LIMIT = sure(r"\blimit|bottleneck|\bbound\b|\bslow|keep up|too (few|slow)|takes? (the )?(most|longest|nearly all)|dominat|holds? (it |everything |the \w+ )?(up|back)")
BUSY = sure(r"comput|calculat|\bcpus?\b|\bcores?\b|processors?\b|\bbusy|python code|interpreter|\bgil\b|decod")
WAITING = sure(r"\bwait|\blimit|bottleneck|\bbound\b|\bslow|latency|\bblock|answer|\brepl(y|ies)|\bidle|asleep|sleep")
# Whose waiting says that something else is the limit.
HUNGRY = r"wait|starv|hungry|idle|asleep|sleep|blocked|stall|workers?\b|loader|data.?set|fetch|\binput|collat"
# Workers where the program has none.
THEIRS = r"(its|the|loader|all|both|worker|these) workers?\b|workers (are|compute|all)|worker process"
# The machine's processors all in use.
CORES = (r"cpu.?bound|(all|both|every|two|no (free|idle|spare)|out of|too few) (the |its )?(2 )?(cpus?|cores?|processors?)\b"
         r"|(cpus?|cores?|processors?)\b.{0,40}\b(busy|full(y)?|in use|used|saturat\w*|exhaust\w*|taken|occupied|contention|contended|oversubscri\w*)")
# A thread that isn't the main one.
THREAD = (r"\b(reader|reading|parser|parsing|producer|producing|feeder|feeding|other|another|one|1|single|lone|background|loader|loading|worker|helper|input|prefetch\w*)\b"
          r".{0,12}\bthreads?\b|\bthreads? .{0,24}\b(reads?|reader|parses?|parser|produces?|producer|feeds?|feeder|gauge)|\bgauge-in")

WORK = near_without(WORKER, LIMIT + "|" + BUSY, r"collat|main process|(training|trainer'?s?) process|pickl|serializ", 80)
REMOTE = near(NET, WAITING)
STEP = near_without(LOOP + "|" + MODEL, LIMIT + "|" + BUSY, HUNGRY)
OVER = near(HAND, sure(r"\blimit|bottleneck|\bbound\b|\bslow|cost|expens|\bcpus?\b|\btime|\blarge|\bbig|\bbytes|\b[mg]i?b\b|heavy|takes?\b|dominat|\bmost\b"))

CASES = {
    "ferry_tracks": (WORK, WORK + "|" + CORES, None),
    "coral_counts": (STEP, STEP, None),
    "recipe_tags": (
        near_without(r"collat\w*|(in|by|inside) the (main|training|trainer'?s?) process|in.?process|num_workers ?=? ?0|\b(no|without|zero|0) (loader |data.?loader )?workers?|"
                     r"data.?loaders?|\bloading|__getitem__|pre-?process|\bfetch", LIMIT + "|" + BUSY + r"|num_workers", THEIRS),
        near_without(r"trainer|training[ _](loop|thread|process|code|script)|main (thread|process|loop)|own (thread|process|code)|\b(one|single|1) (thread|process)",
                     LIMIT + "|" + BUSY, r"wait|starv|idle|asleep|sleep|blocked|stall|" + THEIRS)
        + "|" + near_without(r"collat\w*|\bloading|pre-?process|data.?loaders?", LIMIT + "|" + BUSY, THEIRS),
        r"num_workers"),
    "tram_logs": (REMOTE + "|" + near(r"interleave|cycle_length|py_function|\bread(s|ing|ers?)?\b|\bsource|\bi/?o\b", WAITING), REMOTE, r"cycle_length"),
    "quarry_blasts": (STEP, STEP, None),
    "glacier_cubes": (OVER, OVER, r"num_workers.{0,12}\b0\b"),
    "stamp_album": (WORK + "|" + near(r"decod|shuffl|augment|\bmap\b", LIMIT + "|" + BUSY), WORK, r"num_workers:? (from )?1 ?(->|→|to) ?[2-4]|num_workers"),
    "kite_postcards": (REMOTE, REMOTE, r"max_workers|more (fetch\w* |prefetch\w* |reader |pool )?threads|threads.{0,12}(2 ?(->|→|to))"),
    "beehive_hum": (
        near_without(r"py.?data.?set|data.?set|__getitem__|generator|pre-?process|loaders?\b|\bloading|\binput", LIMIT + "|" + BUSY + r"|\bpython", THEIRS),
        near_without(r"py.?data.?set|data.?set|__getitem__|generator|pre-?process|\bpython|\bgil\b|interpreter|loaders?\b|\bloading|" + THREAD, LIMIT + "|" + BUSY, THEIRS),
        r"use_multiprocessing"),
    "TideGauge.java": (None, near(THREAD, LIMIT + "|" + BUSY), None),
}
# What each needs beside torch.
NEEDS = {"coral_counts": "accelerate", "recipe_tags": "transformers", "tram_logs": "tensorflow", "quarry_blasts": "ray", "stamp_album": "webdataset",
         "beehive_hum": "keras"}

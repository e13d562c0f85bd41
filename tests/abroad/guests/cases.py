"""What limits each program, written before the tool was tried: words for a tool that sees inside the program's loader, words for one that sees
only threads, processes and the kernel's waits, and the change of a setting that lifts the limit (None: there is none, or it is code).

elastic_batch and shared_budget are traps: their --fix is plausible and brings nothing, so no advice is written down."""
STEP = r"trainer|training[ _](step|loop|thread|process)|train(ing)? step|\bsteps?\b|\bmodel|forward|backward|optimi[sz]er"
MAIN = r"consumer|main thread|own thread"
NET = r"network|socket|server|\btcp\b|http|remote|connect|\brecv|\blink\b|peer|latency|round.?trip"
LOCK = r"\block(s|ed|ing)?\b|mutex|futex|semaphore"
PROC = r"sub-?process|child|helper|other (process|program|rank)s?|another (process|program|rank)|external"
NAP = r"\bsleep|\bnap(s|ping)?\b|poll|timer|timed wait|nanosleep|clock_nanosleep"

CASES = {
    # The trainer itself.
    "ddp_sync": (STEP + r"|all.?reduce|gloo|ddp|distributed|\branks?\b|communicat|collective|gradients?\b|synchroni[sz]|" + NET,
                 STEP + "|" + MAIN + r"|all.?reduce|gloo|\branks?\b|communicat|collective|synchroni[sz]|" + NET + "|" + PROC, None),
    "lbfgs_fit": (STEP + r"|closure|l-?bfgs|line search|autograd|max_iter", STEP + "|" + MAIN, None),
    "spelling_meter": (STEP + r"|metric|error.?rate|edit.?distance|torchmetrics", STEP + "|" + MAIN + r"|metric|torchmetrics|python code", None),
    "elastic_batch": (STEP + r"|augment|transform|elastic|grid_sample", STEP + "|" + MAIN + r"|augment|transform|elastic", None),
    "gc_sweeps": (STEP + r"|garbage|\bgc\b|collector|gc\.collect|interpreter", STEP + "|" + MAIN + r"|garbage|\bgc\b|collector|interpreter", None),
    # Locks.
    "locked_saver": (LOCK + r"|saver|\bsav(e|es|ing)\b|checkpoint|fsync|safetensors",
                     LOCK + r"|saver|\bsav(e|es|ing)\b|checkpoint|fsync|(other|another|second|background|one) threads?|\bwaits? for (a|an|its|other|another) .{0,20}thread", None),
    "log_ship": (LOCK + r"|logging|\blog(s|ger)?\b|handler|shipper|emit|collector|" + NET, LOCK + r"|logging|\blog(s|ger)?\b|handler|one (thread )?at a time|takes turns|" + NET, None),
    # Services and timers.
    "aio_sessions": (NET + r"|aiohttp|asyncio|event loop|session|handshake|gateway|service|keep-?alive", NET + r"|aiohttp|asyncio|event loop|epoll|session|handshake|gateway|service|keep-?alive", None),
    "shared_budget": (r"rate.?limit|throttl|quota|token|bucket|budget|limiter|\btake\b|" + NAP, r"rate.?limit|throttl|quota|token|bucket|budget|limiter|" + NAP, None),
    # Hand-over and start-up.
    "handoff.cc": (None, NAP + r"|hand(s|ed|ing)?.?(over|off)|\bslot\b|await|condition variable|busy.?wait|ping.?pong", None),
    "recycled_pool": (r"start(s|ed|ing|-?up)?\b|spawn|fork|recycl|replac|maxtasksperchild|initiali[sz]|read_tables|creat|launch|new (workers|processes)|anew|short-?lived|respawn",
                      r"start(s|ed|ing|-?up)?\b|spawn|fork|recycl|replac|maxtasksperchild|initiali[sz]|read_tables|creat|launch|new (workers|processes)|anew|short-?lived|respawn",
                      r"maxtasksperchild"),
    # The loader computes or reads.
    "h5_rows": (r"h5py|hdf5|decompress|inflate|gzip|zlib|chunk|\bworkers?\b|loader|loading|__getitem__|\bitems?\b|num_workers",
                r"h5py|hdf5|decompress|inflate|gzip|zlib|chunk|\bworkers?\b|loader|loading|num_workers|" + PROC, None),
    "tf_sentences": (r"from_?generator|generator|py_?func|tf\.?data|element|per.?item|one (element )?at a time|python (code|function)|\bgil\b|interpreter|input pipeline|single.?thread",
                     r"from_?generator|generator|py_?func|tf\.?data|element|one (element )?at a time|\bgil\b|interpreter|input pipeline|single.?thread|tensorflow|(loader|loading|data|tf_data).{0,20}threads?|producer",
                     None),
    "Ticks.java": (None, r"\bread(s|er|ing)?\b|pread|system calls?|syscalls?|small (reads|requests)|unbuffered|readfloat|randomaccessfile|producer|loader|loading|(other|another|feeder) threads?|\bfile\b|kernel", None),
}

NEEDS = {"spelling_meter": "torchmetrics", "elastic_batch": "torchvision", "locked_saver": "safetensors", "aio_sessions": "aiohttp", "h5_rows": "h5py",
         "tf_sentences": "tensorflow"}

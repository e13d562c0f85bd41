"""What limits each program, written before anything was measured: words for a tool that sees inside the program's loader, words for one that sees
only threads, processes and the kernel's waits, and the change of a setting that lifts the limit (None: there is none, or it is code).

kmer_threads, priority_tree and lone_connection are traps: their --fix is plausible and brings nothing, so no advice is written down."""
STEP = r"trainer|training[ _](step|loop|thread|process)|train(ing)? step|\bsteps?\b|\bmodel|forward|backward|optimi[sz]er"
MAIN = r"consumer|main (thread|process)|own (thread|process)"
NET = r"network|socket|server|\btcp\b|http|remote|connect|\brecv|peer|latency|round.?trip"
LOCK = r"\block(s|ed|ing)?\b|mutex|futex|semaphore"
PROC = r"sub-?process|child|helper|other process(es)?|another process|external"
NAP = r"\bsleep|\bnap(s|ping)?\b|\btimers?\b|timed|time-?out|deadline|nanosleep"
WORKER = r"\bworkers?\b|loader|loading|num_workers|__iter__|__getitem__"
HAND = r"hand(s|ed|ing)?.?(over|off)|pickl|serial|transfer|\bpipes?\b|\bipc\b|inter-?process|copy|copies|copying"
GIL = r"\bgil\b|interpreter('s)? lock|global interpreter|one (thread )?at a time|python (code|threads?)|pure python|share (one|the) interpreter|take turns"

CASES = {
    # The trainer itself.
    "embed_export": (STEP + "|" + MAIN + r"|gzip|zlib|deflate|compress|json|export|writ(e|es|ing)|output|linesexport|\badd\b",
                     STEP + "|" + MAIN + r"|gzip|zlib|deflate|compress|json|export|writ(e|es|ing)|output", None),
    "anomaly_left": (STEP + r"|anomaly|autograd|recurrent|\bcell\b|python overhead", STEP + "|" + MAIN + r"|anomaly|autograd|python code", None),
    "keras_single_steps": (STEP + r"|keras|callback|overhead|steps_per_execution|per.?step|dispatch", STEP + "|" + MAIN + r"|keras|callback|overhead|dispatch|python code", None),
    "Replay.java": (None, STEP + "|" + MAIN + r"|linkedlist|memory|draw|\bget\b|replay|list|the program itself|reads its data by itself", None),
    # The loader computes.
    "modulo_shards": (WORKER + r"|json|pars(e|es|ing)|encode|duplicat|redundant|throw|discard|shard|every (line|event)|all lines|same (file|lines|data)",
                      WORKER + r"|json|pars(e|es|ing)|encode|duplicat|redundant|throw|discard|shard|" + PROC, None),
    "whole_words": (r"collat|mask_words|mask(s|ing)|num_workers|no (loader )?workers?|without workers?|" + MAIN + r"|loader|loading|(loads|made) (by|in) (itself|the trainer)|python code",
                    r"collat|mask(s|ing)|num_workers|no workers?|" + MAIN + r"|loader|loading|python code|" + STEP, None),
    "kmer_threads": (GIL + r"|kmer|k-mer|make_batch|threads? compute", GIL + r"|kmer|threads? (compute|calculat)|computes? in|" + LOCK, None),
    "priority_tree": (r"sampl(er|ing)|sum.?tree|priorit|draw|next_index|" + MAIN, r"sampl(er|ing)|sum.?tree|priorit|draw|python code|trainer|training (thread|process|loop)|" + MAIN, None),
    # Hand-over between processes.
    "manager_cache": (r"manager|prox(y|ies)|shared (dict|cache)|dictcache|\bcache\b|__getitem__|" + HAND + "|" + PROC + r"|socket|round.?trip|\brecv|peer",
                      r"manager|prox(y|ies)|shared (dict|cache)|" + HAND + "|" + PROC + r"|socket|round.?trip|\brecv|peer", None),
    "imap_beats": (r"chunk.?size|imap|per.?(item|task)|(tiny|small|short|single|little) (tasks?|items?|results?|messages?|pieces?)|overhead|task queue|\bqueues?\b|" + HAND,
                   r"chunk.?size|imap|per.?(item|task)|(tiny|small|short|single|little) (tasks?|items?|results?|messages?|pieces?|reads?|writes?)|overhead|\bqueues?\b|" + HAND + "|" + GIL,
                   r"chunk.?size"),
    "resumable_stream": (r"snapshot|state_?dict|stateful|\bstates?\b|resum|checkpoint|" + HAND + "|" + WORKER,
                         r"snapshot|state_?dict|stateful|\bstates?\b|resum|" + HAND + "|" + WORKER + "|" + PROC, r"snapshot_every_n_steps"),
    # Services, locks and timers.
    "blocking_coroutines": (NET + r"|event loop|asyncio|block(s|ed|ing)|urllib|urlopen|one (request )?at a time|to_thread", NET + r"|event loop|asyncio|urllib|urlopen|one (request )?at a time|to_thread", None),
    "lone_connection": (LOCK + "|" + NET + r"|one (thread |request )?at a time|featureclient", LOCK + "|" + NET + r"|one (thread |request )?at a time|featureclient", None),
    "batcher.go": (None, NAP + r"|linger|batcher|gather|max(imum)? batch|never fill|fill(s|ed|ing)? (up|the batch)|partial batch|waits? for (a|the) timer", None),
    # The kernel's work on memory.
    "remap.cc": (None, r"page.?fault|\bfault|m(un)?map|\bmapp(ed|ing)|map_rows|tlb|in the kernel|kernel (time|work)|system time|gather|producer|loader|loading|(other|another|feeder|second) thread|system calls?", None),
}

NEEDS = {"resumable_stream": "torchdata", "anomaly_left": "lightning", "whole_words": "transformers", "keras_single_steps": "tensorflow"}

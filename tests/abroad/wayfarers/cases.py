"""What limits each program, written before anything was measured: words for a tool that sees inside the program's loader, words for one that sees
only threads, processes and the kernel's waits, and the change of a setting that lifts the limit (None: there is none, or it is code).

next_page and one_shard are traps: their --fix is plausible and brings nothing, so no advice is written down."""
STEP = r"trainer|training[ _](step|loop|thread|process)|train(ing)? step|\bsteps?\b|\bmodel|forward|backward|optimi[sz]er"
MAIN = r"consumer|main (thread|process)|own (thread|process)"
NET = r"network|socket|server|\btcp\b|http|remote|connect|\brecv|peer|latency|round.?trip"
PROC = r"sub-?process|child|helper|other process(es)?|another process|external"
NAP = r"\bsleep|\bnap(s|ping)?\b|\btimers?\b|timed|time-?out|deadline|nanosleep"
WORKER = r"\bworkers?\b|loader|loading|num_workers|__iter__|__getitem__"
HAND = r"hand(s|ed|ing)?.?(over|off)|pickl|serial|transfer|\bpipes?\b|\bipc\b|inter-?process|copy|copies|copying"
# Another's work on the processors; "the worker computes" would be wrong.
CPU = r"(cpus?|cores?|processors?)"
OTHERS = r"(other|another|foreign|unrelated|alien|competing)('s)? (process|program|job|task|load|work)(s|es)?"
CROWD = (r"\bnic(e|ed|eness)\b|priorit(y|ies)|pre-?empt|runnable|run.?queue|scheduler|schedul(ed|ing) (out|away|delay|wait|latency)|oversubscri|\bsteal|stolen|competi|compet(e|es|ing)"
         r"|" + CPU + r" (time )?(contention|starv)|contention (for|on|of) (the |a )?" + CPU + r"|starv(es|ed|ing|ation)? (for|of|from) (the |a )?" + CPU
         + r"|crowd(ed|s)?|(wait(s|ed|ing)?|queu(e|es|ing)|ready|wants?) (for|to) (get |have |be given )?(a |the |its |time on )?(" + CPU + r"|run\b|turn)"
         r"|(off|without|not on|denied|short of|too few|lack(s|ing)? (of )?) ?(a |the |free )?" + CPU + "|" + CPU + r" (is|are|were|was) (all |both |mostly )?(busy|full|taken|occupied|saturated|shared|in use|used by)"
         r"|" + OTHERS + r".{0,60}\b(" + CPU + r"|comput\w*|compress\w*|zlib|busy)|" + CPU + r".{0,60}" + OTHERS + r"|share of (a |the )?" + CPU)

CASES = {
    # The trainer itself.
    "set_matcher": (STEP + r"|linear_sum_assignment|assignment|hungarian|match(ed|er|ing)\b|scipy|\bloss|criterion",
                    STEP + "|" + MAIN + r"|linear_sum_assignment|assignment|hungarian|match(ed|er|ing)\b|scipy|\bloss|criterion", None),
    "retrace_step": (STEP + r"|retrac|\btrac(e|es|ed|ing)\b|tf\.function|train_step|(build|mak|creat|compil)(es|e|ing)? (of )?(a |the |new )?(graph|function)s?|recompil|compil|autograph",
                     STEP + "|" + MAIN + r"|retrac|\btrac(e|es|ed|ing)\b|tf\.function|recompil|compil|autograph|python code", None),
    "history_frame": (STEP + "|" + MAIN + r"|pandas|concat|histor|data.?frame|\bframe|\bewm\b|\bnote\b|metric|logging|bookkeeping",
                      STEP + "|" + MAIN + r"|pandas|concat|histor|data.?frame|\bewm\b|metric|logging|bookkeeping", None),
    "string_weights.cc": (None, STEP + "|" + MAIN + r"|learn(s|er|ing)?\b|std::map|\bmap\b|\btree|look.?ups?|string|\bweights?\b", None),
    # The loader computes, or hands over.
    "lazy_frame": (r"polars|lazy|scan(s|ned|ning)?\b|scan_csv|\bcsv\b|pars(e|es|ing)|collect|__iter__|\bdays\b|no (loader )?workers?|without (loader )?workers?|num_workers|loader|loading"
                   r"|main (thread|process)|(loads|loaded|made|read) (by|in) (itself|the trainer|the training process)",
                   r"polars|lazy|scan(s|ned|ning)?\b|\bcsv\b|pars(e|es|ing)|collect|rayon|(thread )?pool|(other|own|more|several|two|native|library('s)?|producer|feeder) threads?|threads? (that )?(comput|calculat|read|pars)"
                   r"|computes? in|loader|loading|producer|no workers?|without workers?", None),
    "bound_method": (HAND + r"|bound method|\bself\b|vocabular|(large|big|heavy) (task|argument|object|message|item)s?|argument|queue.?feeder|call.?queue|\bsubmit",
                     HAND + r"|bound method|vocabular|(large|big|heavy) (task|argument|object|message|item)s?|argument|queue.?feeder|call.?queue|\bsubmit", None),
    "list_columns": (WORKER + r"|\barrow|\blists?\b|pylist|with_format|set_format|\bformat|collat|conver(t|ts|ted|ting|sion)",
                     WORKER + r"|\barrow|\blists?\b|pylist|\bformat|collat|conver(t|ts|ted|ting|sion)|python code|" + PROC, r"with_format|set_format|\bformat\b"),
    # A timer, another process, a service.
    "nagle_store": (NET + "|" + NAP + r"|nagle|delay(ed)?.?ack|nodelay|no.?delay|acknowledg|embedding store|store process",
                    NET + "|" + NAP + r"|nagle|delay(ed)?.?ack|nodelay|no.?delay|acknowledg|embedding store|store process", None),
    "nice_worker": (CROWD, CROWD, None),
    "idle_conns.go": (None, NET + r"|\bidle\b|keep.?alive|\bdial|handshake|log.?in|service|reus(e|es|ed|ing)", None),
    "next_page": (NET + r"|cursor|next page|service|one (request|page|answer|call) (at a time|after)|chain|read_pages|getresponse|urlopen",
                  NET + r"|cursor|next page|service|one (request|page|answer|call) (at a time|after)|chain", None),
    "one_shard": (WORKER + r"|shard|\bmap\b|\bclean\b|regex|python code|one file|single file",
                  WORKER + r"|shard|\bclean\b|regex|python code|one file|single file|" + PROC, None),
}

NEEDS = {"set_matcher": "scipy", "retrace_step": "tensorflow", "history_frame": "pandas", "lazy_frame": "polars", "list_columns": "datasets", "one_shard": "datasets"}

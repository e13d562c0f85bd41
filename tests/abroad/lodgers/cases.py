"""What limits each program, written before anything was run: words for a tool that sees inside the program's loader, words for one that sees
only threads, processes and the kernel's waits, and the change of a setting that lifts the limit (None: there is none, or it is code).

whale_songs, court_briefs and flood_maps are traps: their --fix is popular advice and brings nothing, so no advice is written down."""


def near(one, other, gap=80):
    return rf"(?:{one}).{{0,{gap}}}(?:{other})|(?:{other}).{{0,{gap}}}(?:{one})"


# The trainer's side, without a claim that the model's own arithmetic is the limit.
LOOP = r"trainer|training[ _](step|loop|thread|process|code|script)|train(ing)? step|\bsteps?\b|consumer|main (thread|process)|own (thread|process|code)"
MODEL = r"\bmodel|forward|backward|optimi[sz]er|gradient|matmul|attention|\blayers?\b"
NET = r"network|socket|server|\btcp\b|http|remote|connect|\brecv|peer|latency|round.?trip|\bstore\b|download"
PROC = r"sub-?process(es)?|child(ren)?|helper|other process(es)?|another process|external|neighbou?rs?|(several|four|4|more|foreign) process(es)?"
NAP = r"\bsleep|\bnap(s|ping)?\b|\btimers?\b|timed|time-?out|deadline|nanosleep|\bpoll(s|ed|ing)?\b"
HAND = r"hand(s|ed|ing)?.?(over|off)|pickl|seriali[sz]|deseriali[sz]|transfer|\bpipes?\b|\bipc\b|inter-?process|copy|copies|copying|shared.?memory"
WORKER = r"workers?\b|pt_data_worker|data.?loaders?|loaders?\b|loading|data.?set|pre-?process|__getitem__|__iter__|num_workers"
SLOW = r"comput|calculat|\bcpus?\b|\bcores?\b|processors?\b|busy|python code|bound\b|\blimit|bottleneck|\bslow|keep up|too few|more workers"
# The machine's processors all in use.
CORES = (r"cpu.?bound|(all|both|every|two|no (free|idle|spare)|out of|too few|more|of) (the |its )?(2 )?(cpus?|cores?|processors?)\b"
         r"|(cpus?|cores?|processors?)\b.{0,40}\b(busy|full(y)?|in use|used|saturat\w*|limit\w*|exhaust\w*|taken|occupied|contention|contended|oversubscri\w*|shared?|compet\w*)"
         r"|(short|lack) of (cpus?|cores?)|(saturat\w*|limited by|bound by|wait\w* for|compet\w* for|fight\w* (for|over)) (the |a )?(cpus?|cores?|processors?)|run.?queue|runnable|(pre-?empt|oversubscri)\w*")
LOCK = r"\block(s|ed|ing)?\b|mutex|futex|seriali[sz](e|es|ed|ing|ation)\b|mutual exclusion|critical section|one (thread |worker )?at a time|take turns|taking turns|contention|contended"
GIL = r"\bgil\b|interpreter('s)? lock|interpreter"
DB = r"sqlite|\bsql\b|\bquer(y|ies)\b|database|\bindex(es|ing)?\b|full.?scan|table scan|\bselect\b|cursor|\bdb\b|fetchall|fetchone"

CASES = {
    # tf.data over a Python generator: its code is the limit, and prefetch doesn't make it quicker.
    "whale_songs": (r"generator|from_generator|py_?func|" + GIL + r"|decod|unpack|adpcm|input pipeline|tf\.data|tf_data|" + near(r"python|" + WORKER, SLOW),
                    r"generator|py_?func|" + GIL + r"|decod|input pipeline|tf\.data|tf_data|\bloader|loading|producer|feeder|" + near(r"python|(one|single|lone|another|other) (\w+ )?thread", SLOW), None),
    # Workers' batches come in bursts, and too few are kept ready.
    "tape_shards": (r"burst|prefetch|(read|look|run|work|fetch|kept|keep|ready)\w*.?.?ahead|buffer|uneven|irregular|jitter|hiccup|stall|\bspik(e|es|y)|outlier|straggl|\btail\b|\bshards?\b|open_shard|head.of.line|"
                    r"(slow|slowest|late|long) (item|batch|sample|read|request|shard|fetch|one)(s|es)?|(one|some|few|single) (slow |late )?(item|batch|request|read|shard)(s|es)?\b.{0,40}(slow|late|long)|" + NET,
                    r"burst|prefetch|(read|look|run|work|fetch|kept|keep|ready)\w*.?.?ahead|buffer|uneven|irregular|jitter|hiccup|\bspik(e|es|y)|outlier|straggl|\btail\b|\bshards?\b|(slow|slowest|late|long) (item|batch|read|request|one)(s|es)?|" + NET, r"prefetch"),
    # The trainer loads by itself.
    "blood_counts": (DB + r"|" + near(LOOP, r"load|read|fetch") + r"|(no|without) (loader )?(workers?|prefetch|overlap|loader)|(by|in) (itself|the trainer|the main (thread|process)|the training (thread|process))",
                     DB + r"|" + near(LOOP + r"|(one|single|same) (thread|process)", r"load|read|fetch|everything|python|by itself|itself|" + SLOW) + r"|(no|without) (loader )?(workers?|prefetch|overlap|loader)|(no|without) (an)?other (thread|process)", None),
    # A loader waits on purpose.
    "orbit_pages": (NAP + r"|rate.?limit|limiter|throttl|quota|(fixed|deliberate|artificial|own) (wait|delay|pause)|polite|back.?off|interval|token.?bucket|acquire",
                    NAP + r"|rate.?limit|limiter|throttl|quota|(fixed|deliberate|artificial|own) (wait|delay|pause)|back.?off|interval", None),
    # The trainer's own extra.
    "order_journal": (r"f(data)?sync|\bflush|\bdisks?\b|storage|\bwrit(e|es|ing|ten)\b|journal|durab|\bi/?o\b|\bsync(s|ing)?\b|check.?point|\bsav(e|es|ed|ing)\b|log(s|ging|ged)?\b|file.?system|\bfiles?\b",
                      r"f(data)?sync|\bflush|\bdisks?\b|storage|\bwrit(e|es|ing|ten)\b|journal|durab|\bi/?o\b|\bsync(s|ing)?\b|check.?point|\bsav(e|es|ed|ing)\b|file.?system|\bfiles?\b", None),
    "crop_yields": (r"\bgc\b|garbage|collect(or|ion|s|ing)?\b|call.?back|on_train_batch_end|hook|" + LOOP,
                    r"\bgc\b|garbage|collect(or|ion|s|ing)\b|call.?back|hook|" + LOOP, None),
    "glacier_watch": (GIL + r"|(background|other|another|second|watch\w*|monitor\w*|extra|side|daemon) (python )?thread|" + near(r"\bthreads?\b", r"compet|contend|contention|steal|takes? turns|\bturns?\b|one at a time"),
                      GIL + r"|(background|other|another|second|extra|side|daemon|monitor\w*|watch\w*) (python )?thread|\block(s|ed)?\b|futex|convoy|" + near(r"\bthreads?\b", r"compet|contend|contention|steal|\bturns?\b|one at a time"), None),
    "river_exports": (CORES + r"|" + PROC + r"|contention|compet(e|es|ing)|lzma|compress|export|descheduled|off.?cpu|\bload average|steal",
                      CORES + r"|" + PROC + r"|contention|compet(e|es|ing)|lzma|compress|export|descheduled|off.?cpu|\bload average|steal", None),
    # Waiting for a server.
    "bus_delays": (NET + r"|(too few|few|more|one|single) (keras )?workers?|pydataset|sequence|__getitem__|one (batch|request) at a time|ask_store",
                   NET + r"|(too few|few|more|one|single) (keras )?workers?|one (batch|request) at a time", r"\bworkers\b|num_workers|max_queue"),
    "flood_maps": (NET + r"|bandwidth|throughput|throttl|urlopen|getresponse|urllib",
                   NET + r"|bandwidth|throughput|throttl", None),
    # Pools and actors.
    "camera_traps": (near(r"\bray\b|ray::|\bactors?\b|map_batches|" + WORKER + "|" + PROC, SLOW + r"|\brun|execut|\bone\b|single") + r"|concurrency|(one|single|1|lone) (ray )?(actor|worker|process|task)|" + CORES + r"|denoise|median",
                     near(r"\bray\b|ray::|raylet|\bactors?\b|" + WORKER + "|" + PROC, SLOW + r"|\brun|execut|\bone\b|single") + r"|concurrency|(one|single|1|lone) (ray )?(actor|worker|process|task)|" + CORES,
                     r"concurrency|actors?\b|actor.?pool|parallel|\bworkers\b"),
    "spell_pairs": (HAND + r"|chunk|(tiny|small|short|little|many|cheap|fine)[ -](grained |python )?(tasks?|items?|jobs?|messages?|work units?|calls?)|per.?(task|item|message|call)|overhead|dispatch|task.?handler|result.?handler|imap|messag",
                    HAND + r"|chunk|(tiny|small|short|little|many|cheap|fine)[ -](grained |python )?(tasks?|items?|jobs?|messages?|work units?|calls?)|per.?(task|item|message|call)|overhead|dispatch|task.?handler|result.?handler|messag|queue", r"chunk"),
    "molecule_graphs": (HAND + r"|(many|small|little|tiny|hundreds|thousands|number) (of )?(small |little |tiny |separate )?(tensors?|objects?|arrays?|messages?|pieces|storages?|segments)|descriptor|\bfds?\b|\bmmap|\bshm\b|rebuild|resource.?sharer|queue|per.?tensor|collat",
                        HAND + r"|(many|small|little|tiny|hundreds|thousands|number) (of )?(small |little |tiny |separate )?(tensors?|objects?|arrays?|messages?|pieces|storages?|segments)|descriptor|\bfds?\b|\bmmap|\bshm\b|rebuild|per.?tensor|unix socket", None),
    # The model.
    "court_briefs": (LOOP + "|" + MODEL,
                     LOOP + "|" + MODEL + r"|torch|mkl|\bgemm\b|" + CORES, None),
    # Not Python.
    "star_charts.cc": (None, LOCK, None),
    "meter_lines.go": (None, r"unbuffered|buffer(ed|ing)|(small|tiny|short|single|one|1)[ -]?(byte )?reads?|byte|sys(tem)?.?calls?|\bread(s|ing|er)?\b|\bloader|loading|producer|kernel|goroutine|" + near(r"(another|other|second|one|single|own|lone) (\w+ )?thread", SLOW), None),
}

NEEDS = {"whale_songs": "tensorflow", "tape_shards": "torch", "blood_counts": "jax", "orbit_pages": "datasets", "order_journal": "torch", "crop_yields": "lightning", "glacier_watch": "torch",
         "river_exports": "accelerate", "bus_delays": "tensorflow", "flood_maps": "torch", "camera_traps": "ray", "spell_pairs": "torch", "molecule_graphs": "torch", "court_briefs": "transformers"}

"""What limits each program, written before anything was run: words for a tool that sees inside the program's loader, words for one that sees
only threads, processes and the kernel's waits, and the change of a setting that lifts the limit (None: there is none, or it is code).

bird_calls and ecg_fit are traps: their --fix is popular advice and brings nothing, so no advice is written down."""


def near(one, other, gap=80):
    return rf"(?:{one}).{{0,{gap}}}(?:{other})|(?:{other}).{{0,{gap}}}(?:{one})"


STEP = r"trainer|training[ _](step|loop|thread|process)|train(ing)? step|\bsteps?\b|\bmodel|forward|backward|optimi[sz]er"
MAIN = r"consumer|main (thread|process)|own (thread|process)"
NET = r"network|socket|server|\btcp\b|http|remote|connect|\brecv|peer|latency|round.?trip|\bstore\b"
PROC = r"sub-?process(es)?|child(ren)?|helper|other process(es)?|another process|external"
NAP = r"\bsleep|\bnap(s|ping)?\b|\btimers?\b|timed|time-?out|deadline|nanosleep|\bpoll(s|ed|ing)?\b"
HAND = r"hand(s|ed|ing)?.?(over|off)|pickl|serial|transfer|\bpipes?\b|\bipc\b|inter-?process|copy|copies|copying|shared.?memory"
WORKER = r"workers?\b|pt_data_worker|data.?loaders?|loaders?\b|loading|data.?set|pre-?process|transform|augment|__getitem__|__iter__|num_workers"
SLOW = r"comput|calculat|\bcpus?\b|\bcores?\b|processors?\b|busy|python code|bound\b|\blimit|bottleneck|\bslow|keep up|too few|more workers"
# Both processors of the machine in use.
CORES = (r"cpu.?bound|(all|both|every|two|no (free|idle|spare)|out of|too few|more|of) (the |its )?(2 )?(cpus?|cores?|processors?)\b"
         r"|(cpus?|cores?|processors?)\b.{0,40}\b(busy|full(y)?|in use|used|saturat\w*|limit\w*|exhaust\w*|taken|occupied|contention|oversubscri\w*)"
         r"|(short|lack) of (cpus?|cores?)|(saturat\w*|limited by|bound by|wait\w* for) (the |a )?(cpus?|cores?|processors?)")
LONE = r"(one|single|1|a lone) (of (the )?(\w+ )?)?(loader |loading |data ?loader )?(worker|process|child|rank)|worker 0|lone worker"
SKEW = r"uneven|unequal|unbalanc|imbalanc|skew|lopsided|straggl|load.?balanc"

CASES = {
    # Workers compute.
    "bird_calls": (near(WORKER, SLOW) + "|" + CORES + r"|resampl|\bstft\b|spectrogram|\bmel\b|augment|pre-?process|__getitem__",
                   near(WORKER + "|" + PROC, SLOW) + "|" + CORES, None),
    "piano_rolls": (r"collat|" + near(WORKER, SLOW) + "|" + CORES + r"|\broll",
                    r"collat|" + near(WORKER + "|" + PROC, SLOW) + "|" + CORES, None),
    "recipe_tokens": (r"tokeni[sz]|transform|no (loader )?workers?|without (loader )?workers?|num_workers|data.?loader|loader|loading|__getitem__|encode_batch|(by|in) (itself|the trainer|the main process|the training process)",
                      r"tokeni[sz]|no (loader )?workers?|without (loader )?workers?|loader|loading|num_workers|(no|without) (an)?other (thread|process)|(one|single|same) (thread|process)|main (thread|process)|own (thread|process)",
                      r"num_workers|\bworkers?\b"),
    "ice_spectra": (r"decompress|unpack|unzip|\bbz(ip)?2?\b|bunzip|\bpipes?\b|" + PROC + "|" + CORES + r"|(shell )?command|compress",
                    r"decompress|unpack|unzip|\bbz(ip)?2?\b|bunzip|\bpipes?\b|" + PROC + "|" + CORES + r"|(shell )?command|compress", None),
    "taxi_rays": (near(r"\bray\b|ray::|\btasks?\b|\bmap\b|\brows?\b|\budf\b|remote|" + WORKER + "|" + PROC, SLOW + r"|\brun|execut") + "|" + CORES + r"|\budf\b|per.?row|row by row|each row|map_batches|\bmap\(|\bray\b.{0,40}\bmap|trip_features",
                  near(r"\bray\b|ray::|raylet|\btasks?\b|\bmap\b|remote|" + WORKER + "|" + PROC, SLOW + r"|\brun|execut") + "|" + CORES + r"|ray::", None),
    # Workers wait.
    "slide_tiles": (NET + r"|too few workers|(few|more) workers|one worker|single worker|urlopen|getresponse",
                    NET + r"|too few workers|(few|more) workers|one worker|single worker", r"num_workers|\bworkers?\b"),
    "weld_volumes": (r"\block(s|ed|ing)?\b|mutex|semaphore|seriali[sz](e|es|ed|ing)\b|mutual exclusion|one (worker )?at a time|take turns|taking turns|contention",
                     r"\block(s|ed|ing)?\b|mutex|semaphore|futex|seriali[sz](e|es|ed|ing)\b|mutual exclusion|one (worker )?at a time|take turns|taking turns|contention", None),
    "cold_reads": (r"\border|in_order|out.of.order|straggl|outlier|\btail\b|head.of.line|\bcold\b|(slow|slowest|late|long|lengthy) (item|batch|sample|object|read|request|key|one|fetch|task)s?|(item|batch|sample|object|read|request|fetch)s? (is|are|that is|that are|far|much|that takes?)? ?(slow|late|long)|"
                   r"(one|a single|some|few|single) (slow |late )?(item|batch|sample|object|request|read)s?|" + SKEW,
                   r"\border|in_order|out.of.order|straggl|outlier|\btail\b|head.of.line|\bcold\b|(slow|slowest|late|long) (item|batch|sample|object|read|request|one)s?|" + SKEW + "|" + NET, r"in_order|\border"),
    "glyph_epochs": (r"\bstart(s|ed|ing|.?up)?\b|restart|spawn|\bfork|launch|\bepochs?\b|persistent|worker_init|\binit|re-?creat|warm.?up|short.lived",
                     r"\bstart(s|ed|ing|.?up)?\b|restart|spawn|\bfork|launch|\bepochs?\b|persistent|\binit|re-?creat|warm.?up|short.lived|new (worker |child )?process|clone|exit", r"persistent"),
    "chess_years": (LONE + "|" + SKEW + r"|\bshards?\b|(idle|other|finished|exhausted) workers?|workers? (are |is |sit |stand )?idle",
                    LONE + "|" + SKEW + r"|\bshards?\b|(idle|finished|exhausted) (workers?|process)|(workers?|process(es)?|children) (are |is |sit |stand )?idle|one (is )?busy", None),
    "clip_ranks": (r"\brank ?1\b|(other|slow|slower|slowest|one|another|late|lagging) rank|\bpeer|" + SKEW + r"|wait(s|ing)? (for|on) (the |its |an)?(other|peer|slow|late)|local_rank|" + near(WORKER, SLOW),
                   r"\brank ?1\b|(other|slow|slower|slowest|one|another|late|lagging) rank|\bpeer|" + SKEW + r"|wait(s|ing)? (for|on) (the |its |an)?(other|peer|slow|late)|" + PROC + "|" + near(WORKER, SLOW), None),
    # The hand-over.
    "seismic_cubes": (HAND + r"|(large|big|heavy|huge) (arrays?|items?|messages?|objects?|patch)|queue.?feeder|through the queue",
                      HAND + r"|(large|big|heavy|huge) (arrays?|items?|messages?|objects?|patch)|queue.?feeder|through the queue", None),
    # tf.data, threads, pools, coroutines.
    "xray_map": (r"\bmap\b|num_parallel|serial|sequential|parallel|(one|single) thread|tf\.data|tf_data|decod|input pipeline|loading|loader|augment|pre-?process",
                 r"\bmap\b|num_parallel|serial|sequential|parallel|(one|single|lone) (\w+ )?thread|tf\.data|tf_data|decod|input pipeline|loading|loader|producer|feeder|(other|own|native|several|library('s)?) threads?|threads? (that )?(comput|calculat)",
                 r"num_parallel|parallel"),
    "ride_tracks": (r"\bgil\b|interpreter('s)? lock|interpreter|" + near(r"\bthreads?", r"python|serial|\bturns?\b|one at a time|(hold|held|wait|share)\w* .{0,20}lock|one core|single core"),
                    r"\bgil\b|interpreter('s)? lock|interpreter|\block(s|ed)?\b|futex|convoy|\bturns?\b|one core|single core|one at a time|" + near(r"(other|own|loader|loading|producer|parser|feeder|helper|worker|several|python) threads?", SLOW), None),
    "outbreak_pool": (r"\bresult\b|\bfutures?\b|\bpool\b|executor|\bsubmit|(one|a single) (task|job|batch|future|request|simulation|call) (at a time|in flight|after)|one at a time|\bahead\b|prefetch|overlap|serial|sequential|synchron|in turn|alternat|lock.?step|" + near(PROC, SLOW),
                      r"\bpool\b|executor|one at a time|\bahead\b|prefetch|overlap|sequential|synchron|in turn|alternat|lock.?step|" + near(PROC + "|" + WORKER, SLOW + r"|wait"), None),
    "photo_fetch": (NET + r"|limit_per_host|concurren|in flight|semaphore|(two|2|few) (requests?|at once|at a time)|aiohttp|asyncio|fetch",
                    NET + r"|concurren|in flight|(two|2|few) (requests?|at once|at a time)|fetch", r"limit_per_host|\blimit\b|connect|concurren|in flight"),
    # The trainer.
    "ecg_fit": (STEP + r"|\bfit\b|\bconv|\blayers?\b|gradient",
                STEP + "|" + MAIN + r"|\bfit\b|\bconv|\blayers?\b|gradient|tensorflow|eigen|" + CORES, None),
    "song_ranker": (STEP + "|" + MAIN + r"|check.?point|\bsav(e|es|ed|ing)\b|callback|on_train_batch_end|writ(e|es|ing)|disk|\bfiles?\b",
                    STEP + "|" + MAIN + r"|check.?point|\bsav(e|es|ed|ing)\b|writ(e|es|ing)|disk|\bfiles?\b", r"every_n_train_steps|every_n|check.?point|(less|more) (often|seldom)"),
    # Not Python.
    "lidar_sweeps.cc": (None, NAP + r"|interval|wakes? (up )?(late|only)|fixed (wait|delay|pause)", None),
    "gene_headers.go": (None, r"reg.?exp?|compil(e|es|ed|ing)|pars(e|es|ing)|\bloader|loading|\breader|producer|goroutine|(another|other|second|one|single|own) thread|" + near(r"\bthreads?", SLOW), None),
}

NEEDS = {"bird_calls": "scipy", "piano_rolls": "accelerate", "recipe_tokens": "datasets", "ice_spectra": "webdataset", "taxi_rays": "ray", "slide_tiles": "torch", "weld_volumes": "h5py",
         "cold_reads": "torch", "glyph_epochs": "torch", "chess_years": "torch", "clip_ranks": "torch", "seismic_cubes": "torch", "xray_map": "tensorflow", "ride_tracks": "torch",
         "outbreak_pool": "torch", "photo_fetch": "aiohttp", "ecg_fit": "tensorflow", "song_ranker": "lightning"}

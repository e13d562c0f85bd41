"""What limits each program, written before the tool was tried: words for a tool that sees inside the program's loader, words for one that sees
only threads, processes and the kernel's waits, and the change of a setting that lifts the limit (None: there is none, or it is code).

accelerate_unet and wds_curl are traps: their --fix is plausible and brings nothing, so no advice is written down."""
STEP = r"trainer|training[ _](step|loop|thread|process)|train(ing)? step|\bsteps?\b|\bmodel|forward|backward|optimi[sz]er"
NET = r"network|socket|server|\btcp\b|http|remote|connection|\brecv|bandwidth|\blink\b|peer"
FLUSH = r"fsync|fdatasync|\bsync\b|disk|storage|file ?system|flush|commit|pwrite|\bwrit(e|es|ing)\b"
PROC = r"sub-?process|child|helper|other (process|program)s?|another (process|program)|external"

CASES = {
    # The trainer itself.
    "jax_shapes": (STEP + r"|compil|\bjit|\bxla|jax|update|shapes?\b", STEP + r"|compil|\bxla|jax|consumer|main thread", None),
    "accelerate_unet": (STEP + r"|accelerat|unet|conv", STEP + r"|consumer|main thread", None),
    "trainer_eval": (STEP + r"|evaluat|validat|predict", STEP + r"|evaluat|validat|consumer|main thread", None),
    "offsets.cc": (None, STEP + r"|consumer|main thread|" + FLUSH, None),
    # Locks.
    "live_stats": (r"\bgil\b|interpreter|live.?stats|(other|another|second|background|python|competing) threads?",
                   r"\bgil\b|interpreter|live.?stats|(other|another|second|background|python|competing) threads?|\block|futex", None),
    "hdf5_threads": (r"\block(s|ed|ing)?\b|\bgil\b|interpreter|one (thread )?at a time|h5py|hdf5|takes turns|mutex",
                     r"\block(s|ed|ing)?\b|\bgil\b|interpreter|one (thread )?at a time|takes turns|mutex|futex", None),
    # Stores and services.
    "wds_curl": (NET + r"|pipe|curl|throttl|download|" + PROC, NET + r"|pipe|curl|throttl|download|" + PROC, None),
    "ws_quotes": (NET + r"|web ?socket|rate.?limit|throttl|quota|asyncio|event loop|service|\bquotes\b|\bask\b",
                  NET + r"|web ?socket|rate.?limit|throttl|quota|asyncio|event loop|epoll|service|\bquotes\b", None),
    # The way from the loader to the trainer.
    "graph_queue": (r"pickl|seriali|\bipc\b|queue|transfer|\bsend|receiv|\brecv|hand(s|ed|ing)?.?over|descriptor|shared memory|\bshm|rebuild|reduc(e|tion)|pipe|small (tensors|objects)|many (tensors|objects)",
                    r"pickl|seriali|\bipc\b|queue|transfer|\bsend|receiv|\brecv|hand(s|ed|ing)?.?over|descriptor|shared memory|\bshm|rebuild|pipe|unix|socket|small|many (tensors|objects)", None),
    "tiny_batches": (r"receiv|\brecv|un?pickl|seriali|\bipc\b|queue|transfer|\bsend|hand(s|ed|ing)?.?over|pipe|per.?batch|each batch|overhead|small|tiny|batch.?size|own thread|collat",
                     r"receiv|\brecv|un?pickl|seriali|\bipc\b|queue|transfer|\bsend|hand(s|ed|ing)?.?over|pipe|per.?batch|each batch|overhead|small|tiny|batch.?size|own thread|one thread|main (thread|process)",
                     r"batch_size 1 -> \d+"),
    "lit_reload": (r"start(s|ed|ing|-?up)?\b|spawn|fork|persistent|reload|creat|launch|(each|every|short) epochs?|between epochs|new workers|anew",
                   r"start(s|ed|ing|-?up)?\b|spawn|fork|persistent|reload|creat|launch|(each|every|short) epochs?|between epochs|new (workers|processes)|anew|short-lived",
                   r"reload_dataloaders_every_n_epochs"),
    "futures_window": (r"order|head.of.line|in turn|straggl|(slow|long|single|one) (item|answer|request|future|sample|task|object|call)|uneven|unequal|varying|outlier|\btail\b|window",
                       r"order|head.of.line|straggl|(slow|long|single|one) (item|answer|request|future|sample|task|object|call)|uneven|unequal|varying|outlier|\btail\b|window|" + NET, None),
    "rollouts.go": (None, r"burst|buffer|queue|channel|uneven|irregular|\bpauses?\b|sleep|timer|timed wait|producer|play\b|ahead", None),
    # The loader computes or copies.
    "replay_append": (r"replay|concat|\bcop(y|ies|ying)\b|append|memory (copy|copies|bandwidth|traffic)|memcpy|producer|feeder|(other|another|loader|loading|background|reader|its one|one other) thread",
                      r"replay|concat|\bcop(y|ies|ying)\b|append|memory (copy|copies|bandwidth|traffic)|memcpy|producer|feeder|(other|another|loader|loading|background|reader|one other) threads?|page fault", None),
    "omp_pool": (r"\bomp\b|openmp|oversubscri|too many threads|threads? (a|per|of each|in each) (process|worker)|cpu|cores|executor|worker|\bpool\b|set_num_threads",
                 r"\bomp\b|openmp|oversubscri|too many threads|threads? (a|per|of each|in each) (process|worker)|cpu|cores|executor|worker|\bpool\b|process(es)? python|" + PROC,
                 r"(OMP_NUM_THREADS|set_num_threads|threads)[^;.]{0,30}(16 -> |=|to |\()1\b"),
    "tf_cache": (r"tf\.?data|\bmap\b|decod|png|resiz|cpu|cores|input pipeline|ParallelMap|\bcache", r"tf\.?data|\bmap\b|decod|png|cpu|cores|input pipeline|tensorflow|(loader|loading|data|tf_data).{0,20}threads?|\bcache",
                 None),
}

NEEDS = {"jax_shapes": "jax, optax", "accelerate_unet": "accelerate", "trainer_eval": "transformers", "hdf5_threads": "h5py", "wds_curl": "webdataset",
         "ws_quotes": "websockets", "lit_reload": "lightning", "tf_cache": "tensorflow, keras"}

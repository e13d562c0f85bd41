"""name: (words for a tool that sees inside the loader, words for one that sees threads and waits only, the setting that lifts the limit)."""
STEP = r"trainer|train(ing)?[ _]?(step|loop|process|thread|function)|\bsteps?\b|\bmodel|main (thread|process)|consumer|forward|backward|optimi[sz]er"
NET = r"network|socket|server|tcp|remote|service|http|recv|peer"
OWN = r"trainer('s)? (own )?(main )?(thread|process|work|cpu|itself)|training (thread|process)|own process|trainer (is busy|computes|itself)"
ONE = r"|one worker|single worker|only worker|its worker|the worker|workers?\b|too few"

CASES = {
    # the trainer's own step
    "char_gpt": (STEP + r"|CharModel|attention|gelu|\bfit\b|torch (operation|computation)", STEP + r"|\bfit\b", None),
    "recommender": (STEP + r"|adam\b|embedding|tables?", STEP + r"|adam\b", None),
    "auc_every_step": (STEP + r"|auc\b|RunningAUC|area_under_curve|metric|argsort|compute\b|numpy", STEP + r"|metric|auc\b", None),
    "run_logger": (STEP + r"|histogram|logger|HistogramLogger|callback|after_batch|json|logging|tolist|fsync|\bfit\b", STEP + r"|logg|callback|json", None),
    "validates_often": (STEP + r"|validat|evaluat|held.out|conv2d", STEP + r"|validat|evaluat", None),
    "saves_always": (STEP + r"|checkpoint|CheckpointManager|\bsav(e|es|ing)\b|fsync|torch\.save|disk|file system|writ(es|ing)|sync", STEP + r"|checkpoint|\bsav(e|es|ing)\b|fsync|disk|file|writ(es|ing)|sync|storage", None),
    "story_sampler": (STEP + r"|generat|GRU|rnn|Writer|sampling|token|inference|multinomial", STEP + r"|generat|inference", None),
    "jax_unjitted": (STEP + r"|update|jax|xla|jit|dispatch|loss_of|value_and_grad|logits", STEP + r"|jax|xla|update|python", None),
    "keras_eager": (STEP + r"|keras|eager|\bfit\b|run_eagerly|train_on_batch", STEP + r"|keras|eager|\bfit\b", None),
    "boosting": (STEP + r"|xgboost|boost|booster|xgboost\.train|\btrain\b|trees?\b", STEP + r"|xgboost|boost|\btrain\b|trees?\b", None),
    "critic_penalty": (STEP + r"|critic|\bgan\b|penalty|update|autograd|generator network", STEP + r"|critic|update|autograd", None),
    "image_embedder": (STEP + r"|embed_all|VisionTransformer|\bvit\b|attention|inference|transformer", STEP + r"|inference|embed_all", None),
    "lit_segments": (STEP + r"|lightning|LitSegments|training_step|conv|\bfit\b|batch.?norm", STEP + r"|lightning|\bfit\b", None),
    "ranks.go": (None, STEP + r"|main goroutine|main\.main|trainStep", None),
    # networks, timers, locks, helpers
    "map_tiles": (NET + r"|latency|requests|Tiles\b|getitem|urllib3|session|tile_server|fetch" + ONE, NET + r"|latency|requests" + ONE, r"num_workers 2 -> \d+"),
    "quota_api": (NET + r"|retry|429|rate.?limit|quota|sleep|timer|back.?off|ApiClient|records\b|Retry-After|throttl|__iter__|\bnext\b|fetch", NET + r"|sleep|timer|retry|back.?off|rate.?limit|throttl|quota", None),
    "thin_link": (NET + r"|bandwidth|RemoteVolumes|receive|recv_into|\blink\b|getitem|fetch|transfer", NET + r"|bandwidth|\blink\b|transfer", None),
    "session_vectors": (NET + r"|latency|RespClient|\bFeed\b|fetch|redis|\bget\b|key.value|\bstore\b|ThreadPool|executor|max_workers|pool|future", NET + r"|latency|pool|\bfeed|redis|\bstore\b|max_workers|loading threads?", r"max_workers 2 -> \d+"),
    "annotations_db": (r"sqlite|lock|database|\bdb\b|busy|annotator|another process|other process|writer|execute|Boxes\b|getitem|fetch|sleep|timer|transaction", r"sqlite|lock|database|busy|another process|other process|writer|annotator|sleep|timer", None),
    "shared_cache": (r"lock|locked|CachedRows|getitem|fetch|maintenance|keeper|another process|other process|contextlib", r"lock|another process|other process|maintenance|keeper", None),
    "polite_crawler": (r"sleep|timer|RateLimiter|limiter|rate.?limit|throttl|time\.sleep|Pages\b|__iter__|\bnext\b|\bwait\b.*limiter|interval|politeness|fetch" + ONE, r"sleep|timer|rate.?limit|throttl|limiter|interval" + ONE, r"num_workers 1 -> \d+"),
    "flaky_blobs": (r"sleep|timer|retry|retries|back.?off|server|503|requests|download|BlobDataset|getitem|fetch|unavailable|time\.sleep|errors?\b|\bcall\b|decorat" + ONE, r"sleep|timer|retry|retries|back.?off|server|503" + ONE, r"num_workers 2 -> \d+"),
    "packed_signals": (r"gzip|subprocess|child|helper|unpack|decompress|communicate|Popen|Signals\b|getitem|fetch|external (program|process)|starts? itself|poll|pipe" + ONE, r"gzip|subprocess|child|helper|decompress|external|pipe" + ONE, r"num_workers 1 -> [2-4]"),
    "async_prices": (NET + r"|latency|asyncio|event loop|semaphore|aiohttp|fetch|pump|PriceStream|\bprices\b|producer|queue|select|epoll|loading thread|background thread|loader thread|exchange", NET + r"|latency|asyncio|event loop|epoll|select|semaphore|\bprices\b|producer|loading thread|background thread|loader thread", None),
    "feature_rpc": (NET + r"|latency|grpc|rpc\b|lookup|FeatureClient|ThreadPool|executor|max_workers|pool|future|batches\b", NET + r"|latency|grpc|rpc\b|pool|executor|max_workers|loading threads?", r"max_workers 2 -> \d+"),
    "tf_remote_map": (NET + r"|latency|\bmap\b|numpy_function|py_?func|\bask\b|\blabel\b|num_parallel|ParallelMap|MapDataset|readline", NET + r"|latency|\bmap\b|num_parallel|tf.?data", r"num_parallel_calls 1 -> \d+"),
    "Crops.java": (None, NET + r"|latency|fetch|image service", None),
    # other loading
    "sketches": (r"draw|Sketches|getitem|fetch|num_workers|no workers?|without workers?|in the (main|training|trainer)|in line|synchron|numpy|hypot|data ?loading|loads? (the )?(data|batches)|dataset|loader", r"num_workers|no workers?|without workers?|main (thread|process)|in line|synchron|data ?loading|dataset|loader|same (thread|process)|\bloads\b|" + OWN, r"num_workers 0 -> [1-4]"),
    "speech_rates": (r"resampl|signal|scipy|stft|Speech|getitem|fetch|upfirdn|transform|audio|loader|dataset" + ONE, r"worker|loader|loading|dataset", r"num_workers 1 -> [2-4]"),
    "molecules": (r"collat|graph_collate|distance|edges" + ONE, r"worker|loader|loading|collat", r"num_workers 1 -> [2-4]"),
    "ct_patches": (r"pickl|serial|pipe|transfer|receiv|\bsend|queue|copy|copies|copying|shared memory|recv|ipc|large (arrays?|batch)|between (the )?processes|numpy arrays?", r"pickl|serial|pipe|transfer|receiv|\bsend|queue|copy|copies|copying|shared memory|recv|ipc|large (arrays?|batch)|between (the )?processes|hand(ing)?.?over|results?", None),
    "small_epochs": (r"start(s|ed|ing)?\b|start-?up|spawn|fork|persistent|creat|launch|each epoch|every epoch|anew|restart|between epochs|new workers", r"start(s|ed|ing)?\b|start-?up|spawn|fork|persistent|creat|launch|each epoch|every epoch|anew|restart|between epochs|new workers", r"persistent_workers=True"),
    "balanced_draw": (r"sampler|ClassBalanced|\bdraw|cumsum|searchsorted|index(es)?\b|indices|numpy|sampling", r"sampler|sampling|indices|index(es)?\b|batch_sampler|main (thread|process)|" + OWN, None),
    "film_clips": (r"order|long|slow|uneven|straggl|head.of.line|Clips\b|getitem|\bread\b|sleep|timer|storage|fetch|outlier|one item|single item|unequal|varying", r"order|long|slow|uneven|straggl|head.of.line|sleep|timer|storage|outlier|one worker|one item|workers?\b|unequal", r"in_order=False"),
    "shard_owners": (r"shard|uneven|unequal|imbalance|one worker|single worker|worker 0|first worker|the worker|its worker|features|json|findall|regex|__iter__|\bnext\b|fetch|Shards|idle worker|split|straggl", r"shard|uneven|unequal|imbalance|worker|split|straggl", None),
    "log_threads": (r"\bgil\b|interpreter|global lock|parse|parser|one thread at a time|single core|one core|producer|pure python|python code|loading threads?", r"\bgil\b|interpreter|global lock|parser|one thread at a time|single core|one core|producer|\block\b|futex|loading threads?|python code", None),
    "tf_distort": (r"\bmap\b|distort|resize|num_parallel|ParallelMap|MapDataset|tf\.image|image|hue|saturation|augment", r"tf.?data|\bmap\b|num_parallel|loading|pipeline|data thread|data worker|input", r"num_parallel_calls 1 -> \d+"),
    "tf_big_shuffle": (r"shuffl|buffer|\bfill|\bmap\b|\bparse|sort|refill|each epoch|every epoch", r"shuffl|buffer|\bfill|tf.?data|pipeline|loading|data thread|input|each epoch|every epoch|start of", None),
    "hf_reviews": (r"token|encod|transform|getitem|fetch|datasets|arrow|format|loader|dataset" + ONE, r"worker|loader|loading|dataset|token", r"num_workers 1 -> [2-4]"),
    "tar_photos": (r"decod|png|\bpil\b|pillow|resize|to_tensor|image|webdataset|tar\b|\bnext\b|__iter__|fetch|loader|dataset" + ONE, r"worker|loader|loading|dataset", r"num_workers 1 -> [2-4]"),
    "mapped_text": (r"token|Windows\b|getitem|fetch|finditer|regular expression|regex|\bre\b|num_workers|no workers?|without workers?|in the (main|training|trainer)|in line|synchron|data ?loading|dataset|loader|loads? (the )?(data|batches)", r"num_workers|no workers?|without workers?|main (thread|process)|in line|synchron|data ?loading|dataset|loader|same (thread|process)|\bloads\b|" + OWN, r"num_workers 0 -> [1-4]"),
    "page_pool": (r"clean_page|\bpool\b|ndimage|scipy|rotate|median_filter|gaussian|zoom|imap|mapstar|pool process|ForkPoolWorker|child process" + ONE, r"\bpool\b|worker|child process|loading process|subprocess|helper process|loader", r"Pool processes 1 -> \d+"),
    "store_baskets": (r"pandas|summaris|pivot|group.?by|Baskets|DataFrame|__iter__|\bnext\b|fetch|loader|dataset|aggregat" + ONE, r"worker|loader|loading|dataset", r"num_workers 1 -> [2-4]"),
    "duck_orders": (r"duckdb|query|quer(y|ies)|sql\b|Customers|getitem|execute|fetch|aggregat|database|loader|dataset" + ONE, r"worker|loader|loading|dataset", r"num_workers 1 -> [2-4]"),
    "token_refresh": (r"renew|sleep|credential|burst|prefetch|uneven|stall|timer|Archive\b|__iter__|\bnext\b|fetch|\buse\b|hiccup|now and then|irregular|pauses?\b|identity" + ONE, r"sleep|timer|burst|prefetch|uneven|stall|irregular|pauses?\b|now and then|workers?\b", r"prefetch_factor 2 -> \d+"),
    "feeder.rs": (None, r"producer|loading thread|loader|worker|background thread|unpack|smooth|other thread|produces", None),
    "matcher.cc": (None, r"lock|mutex|futex|contention|contend|one at a time|guard", None),
}

NEEDS = {
    "jax_unjitted": "jax", "keras_eager": "keras", "boosting": "xgboost", "image_embedder": "torchvision", "map_tiles": "aiohttp",
    "flaky_blobs": "requests", "async_prices": "aiohttp", "feature_rpc": "grpc", "tf_remote_map": "tensorflow", "speech_rates": "scipy",
    "tf_distort": "tensorflow", "tf_big_shuffle": "tensorflow", "hf_reviews": "datasets", "tar_photos": "webdataset", "page_pool": "scipy",
    "store_baskets": "pandas", "lit_segments": "lightning", "duck_orders": "duckdb",
}

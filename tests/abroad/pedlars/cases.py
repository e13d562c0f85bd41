"""Written before any run of a profiler, from the programs alone."""
CASES = {
    # the workers are started anew (forked, joined at the end) for each short epoch of six batches
    "stamp_shop": (r"start|spawn|fork|persistent|epoch|init|shut|join|exit|__iter__|new workers|workers' life",
                   r"start|spawn|init|_bootstrap|popen|fork|clone|new process|short-lived|page fault|copy.on.write|shut|join|wait4|waitpid|exit|__iter__",
                   r"persistent_workers (False|None|0|off)? ?-> ?(True|1|on)|persistent_workers ?= ?True"),
    # one download at a time from a store that gives so much to each connection
    "frog_calls": (r"network|socket|http|curl|pipe|download|url|tar|gopen|webdataset|remote|stream|recv|bandwidth|store",
                   r"network|socket|http|curl|pipe|download|url|tar|gopen|webdataset|remote|stream|recv|bandwidth|copyfile|Bucket",
                   r"(num_)?workers 1 -> [2-9]"),
    # dense Adam passes over the whole embedding table each step
    "matinee": (r"optim|adam|^(?!.*(forward|backward)).*trainer",
                r"optim|adam|memory bandwidth|addcmul|addcdiv|lerp|foreach|sqrt",
                r"sparse"),
    # each new padded length has the jitted update traced and compiled again
    "helpdesk": (r"compil|jit|xla|retrac|trac|llvm|lower|mlir|shape|update|^(?!.*(loader|input|worker)).*trainer",
                 r"compil|jit|xla|trac|llvm|lower|mlir|jaxpr|pjit|update",
                 None),
    # rows pass through Python lists of floats
    "smart_meters": (r"format|pylist|python list|arrow|to_input|asarray|convers|datasets|dataset\.iter|operator iter|extract|decode|scalar",
                     r"format|pylist|arrow|to_input|asarray|numpy|datasets|iter|extract|as_py|scalar|list",
                     r"with_format|set_format|format.* -> .*(numpy|torch|arrow)"),
    # hundreds of small tensors in a batch, each its own shared-memory file and descriptor
    "solvents": (r"transfer|transport|handing|hand.?over|ipc|serial|pickl|shared.?mem|shm|queue|descriptor|\bfds?\b|rebuild|reduc|mmap|as_list|collate|tensors|pipe|sending|copy",
                 r"transfer|ipc|serial|pickl|shared.?mem|shm|queue|descriptor|\bfds?\b|rebuild|reduc|mmap|munmap|resource_sharer|sendmsg|recvmsg|unix|socket|connection|answer_challenge|deliver_challenge|_feed|feeder|storage|map_allocator|page fault|ftruncate",
                 None),
    # a callback computes exact AUC and AP over all rows of the epoch after each batch
    "lapsed_policies": (r"callback|on_train_batch_end|score.?board|publish|metric|auroc|auc|precision|curve|compute|hook|between steps|outside|^(?!.*(forward|backward|optim)).*trainer",
                        r"callback|on_train_batch_end|score.?board|publish|metric|auroc|auc|precision|curve|roc|compute|sort|cumsum",
                        None),
    # five hundred blocks of 128 rows: a Ray task, its scheduling and its object for each
    "used_cars": (r"block|task|schedul|overhead|object|raylet|plasma|ray core|executor|streaming|driver|launch|small",
                  r"raylet|schedul|task|gcs|object|plasma|core.?worker|executor|streaming|grpc|rpc|ray::|\bray\b|block|overhead",
                  r"block|repartition"),
    # SQLite commits (fsync, journal made and removed) three times each step
    "ward_returns": (r"sqlite|commit|fsync|fdatasync|disk|log_metric|run.?log|journal|jbd2|storage|ext4|file ?system|sync|write",
                     r"sqlite|commit|fsync|fdatasync|disk|log_metric|run.?log|journal|jbd2|storage|ext4|file ?system|sync|write",
                     None),
    # TRAP: tf.data tuned, while the LSTM takes the time
    "bike_docks": (r"trainer|lstm|\bstep\b|model|forward|backward|train_step|train_function|while|matmul|keras fit|\bfit\b",
                   r"trainer|lstm|\bstep\b|model|train|while|matmul|eigen|gemm|executor|tensorflow|mkl|onednn|dnnl|\bfit\b|main thread|\bCPU\b",
                   None),
}
NEEDS = {"stamp_shop": "lmdb", "frog_calls": "webdataset", "matinee": "polars", "helpdesk": "jax", "smart_meters": "datasets",
         "solvents": "torch", "lapsed_policies": "lightning", "used_cars": "ray", "ward_returns": "duckdb",
         "bike_docks": "tensorflow"}

"""What a right answer names, for each program. Written before any profiler was run."""
CASES = {
    # two workers decode 1800 x 1400 JPEGs in full (PIL), only a preview is used
    "weld_radiographs": (
        r"worker|decod|jpe?g|PIL|pillow|open_film|film_sample|to_sample|\bmap\b|resize|convert|\bload\b|CPU",
        r"worker|decod|jpe?g|PIL|pillow|imaging|open_film|film_sample|to_sample|resize|convert|\bload\b|CPU",
        None),
    # one thread of the ParallelMapper asks the REST service, 20 ms for each buoy
    "kelp_buoys": (
        r"network|socket|http|service|server|remote|latency|ParallelMapper|map_fn|BuoyClient|getresponse|request|recv|readinto",
        r"network|socket|http|service|server|remote|latency|ParallelMapper|BuoyClient|getresponse|request|recv|readinto|readline",
        r"num_workers\D*1 *(->|to|=>) *\d+|more (num_)?workers|more threads|concurren"),
    # ModelCheckpoint every 10 steps writes a frozen table of 110 MB, twice (save_last)
    "orchard_frost": (
        r"checkpoint|\bsav(e|ing)|_save|serializ|pickl|torch\.save|dump_checkpoint|zip|disk|storage|file ?system|writ(e|ing)",
        r"checkpoint|\bsav(e|ing)|_save|serializ|pickl|torch\.save|zip|disk|storage|file ?system|writ(e|ing)",
        r"every_n_train_steps|checkpoint.*(less|rare|seldom|interval|every)"),
    # the collate function tokenizes 1500 words a claim in the main process (num_workers 0), 48 tokens are kept
    "storm_claims": (
        r"collat|tokeni|encode_batch|_encode_plus|num_workers 0|in the main (process|thread)|main process.*(load|data|fetch)|load(er|ing).*main|fetch",
        r"collat|tokeni|encode_batch|_encode_plus|fetch|_next_data|next_data",
        None),
    # rank 0 has all of the long trips, rank 1 waits for it in the all-reduce
    "ferry_delays": (
        r"rank|uneven|unequal|straggl|imbalance|skew|peer|all.?reduce|broadcast|collective|gloo|slowest|gru|forward|backward|trainer|\bstep\b",
        r"rank|uneven|unequal|straggl|imbalance|skew|peer|all.?reduce|broadcast|collective|gloo|slowest|gru|forward|backward|autograd|trainer|\bstep\b|run_backward|\btrain\b",
        None),
    # 200 small tensors a batch go from worker to trainer, each with a file descriptor of its own
    "solvent_graphs": (
        r"hand.?(over|off)|handing|transfer|transport|pickl|rebuild_storage|storage_fd|rebuild|detach|reduction|resource_sharer|shared memory|shm|queue|IPC|descriptor|\bfd\b|serializ|data_queue|feeder|connection|sendmsg|recvmsg|recv_handle|send_handle",
        r"hand.?(over|off)|handing|transfer|transport|pickl|rebuild_storage|storage_fd|rebuild|detach|reduction|resource_sharer|shared memory|shm|queue|IPC|descriptor|\bfd\b|serializ|feeder|connection|sendmsg|recvmsg|recv_handle|send_handle|recvfds|sendfds|answer_challenge|deliver_challenge|SocketClient|unix socket",
        None),
    # workers are started anew for each short epoch and read the gazetteer again
    "parcel_addresses": (
        r"start|init_worker|worker_init|persistent|spawn|fork|epoch|\bload\b|gazetteer|json|gzip|re-?creat|restart|__iter__|set-?up|raw_decode|scan_once|decompress|zlib",
        r"start|init_worker|worker_init|persistent|spawn|fork|epoch|\bload\b|gazetteer|json|gzip|re-?creat|restart|set-?up|raw_decode|scan_once|decompress|zlib",
        r"persistent_workers"),
    # four workers share one lock, which is held while the daemon is asked
    "glass_plates": (
        r"\block|mutex|semaphore|SemLock|guard|acquire|__enter__|contention",
        r"\block|mutex|semaphore|SemLock|guard|acquire|__enter__|contention|futex|sem_wait",
        None),
    # dense Adam (and dense gradients) over two tables of 150 000 x 48
    "folk_playlists": (
        r"optimi[sz]|adam|trainer|main thread|main process|backward|zero_grad|\bstep\b",
        r"optimi[sz]|adam|trainer|main thread|main process|backward|autograd|embedding|zero_grad|\bstep\b",
        None),
    # TRAP: one worker hashes the words; a second one gets nothing, as the stream has one file (shard)
    "court_minutes": (
        r"worker|hash_words|\bmap\b|MappedExamples|shard|num_shards|IterableDataset",
        r"worker|hash_words|MappedExamples|shard|num_shards|IterableDataset|_iter_arrow",
        None),
}

NEEDS = {
    "weld_radiographs": "webdataset",
    "kelp_buoys": "torchdata",
    "orchard_frost": "lightning",
    "storm_claims": "transformers",
    "folk_playlists": "accelerate",
    "court_minutes": "datasets",
}

"""For each program: words for the limit's line (inside, outside), and the change of a setting that is its --fix (None where that is a rewrite)."""
CASES = {
    # the workers' CPU: the elastic deformation (gaussian_filter, map_coordinates) of each frame
    "ultrasound": (r"worker|deform|elastic|gaussian|map_coordinates|scipy|ndimage|filter|interpol|spline|augment|transform|\bfield|webdataset|\bmap\b|compose|pipeline|getitem|__iter__|dataset",
                   r"worker|deform|elastic|gaussian|map_coordinates|scipy|ndimage|filter|interpol|spline|augment|\bfield|correlate1d|geometric_transform",
                   None),
    # one worker waits for the store's answers (25 ms each), the photos come one after the other
    "parcels": (r"worker|network|socket|http|url|store|request|recv_into|readinto|photo|getitem|fetch|download|latenc|remote|server|I/O|\bread",
                r"network|socket|http|url|store|request|recv_into|readinto|photo|getitem|fetch|download|latenc|remote|server|tcp|worker|object_store|sleep",
                r"num_workers[^0-9]{0,12}1 ?(->|to|=>) ?[2-9]"),
    # the step: forward and backward through the trunk (whose gradients nobody uses)
    "soybeans": (r"trainer|\bstep|forward|backward|model|train|gradient|autograd|conv|resnet|trunk|timm|accelerat|main (process|thread)|main\.py|MainThread|optimi",
                 r"trainer|\bstep|forward|backward|model|train|gradient|autograd|engine|conv|resnet|trunk|timm|accelerat|main|libtorch_cpu|torch/(nn|autograd)|mkldnn|onednn|dnnl|openmp|gomp|\bomp|gemm|\baten|optimi",
                 None),
    # hand-over: a batch is 240 small tensors, each in a shared memory of its own whose descriptor goes through a socket
    "molecules": (r"hand.?over|hand.?off|transfer|queue|pickl|serial|shared.?mem|shm|descriptor|\bfds?\b|rebuild|reduc|reduction|resource.?shar|storage|collat|as_lists|IPC|socket|sendmsg|recvmsg|recv|connection|small tensors|lists? of tensors|unpack|mmap|feed|share|get_data|_try_get|tensors from",
                  r"hand.?over|hand.?off|transfer|queue|pickl|serial|shared.?mem|shm|descriptor|\bfds?\b|rebuild|reduc|reduction|resource.?shar|storage|collat|as_lists|IPC|socket|sendmsg|recvmsg|recv|connection|mmap|munmap|feed|share|get_data|_try_get|multiprocessing|ftruncate|unlink|tmpfs",
                  None),
    # the main process: Lightning's hook computes a spectrogram of each recording on its own (scipy)
    "modulation": (r"on_after_batch_transfer|batch_transfer|spectr|scipy|signal|savgol|detrend|stft|fft|hook|transform|main (process|thread)|trainer(?!.*(forward|backward|optimi))|lightning",
                   r"on_after_batch_transfer|batch_transfer|spectr|scipy|signal|savgol|detrend|stft|fft|hook|transform|main|trainer|lightning|convolve",
                   None),
    # checkpoints: model, optimizer and the rest are saved each 2nd step
    "claims": (r"sav|checkpoint|writ|disk|file ?system|safetensors|serializ|state_dict|torch\.save|storage|fsync|rotat|rmtree|\bI/O",
               r"sav|checkpoint|writ|disk|file ?system|safetensors|serializ|state_dict|fsync|rotat|rmtree|unlink|zip|\bI/O|page cache",
               r"save_steps|save_strategy"),
    # the workers' CPU: the tokenizer (whole abstracts, of which the first 192 pieces are kept)
    "catalogue": (r"worker|tokeni|encod|BPE|CatalogueStream|__iter__|getitem|dataset|\bnext\b.*stream|normaliz|stream",
                  r"worker|tokeni|encod|BPE|CatalogueStream|__iter__|stream|normaliz",
                  None),
    # the workers' start at each round: fork, connect_worker (the book of openings), and their end
    "replays": (r"start|fork|spawn|persistent|connect_worker|\bconnect\b|worker_init|\binit|epoch|\bround|opening|shut.?down|\bjoin|Popen|_MultiProcessingDataLoaderIter|__iter__|new workers|restart|creat|launch|first batch|exit|teardown",
                r"start|fork|spawn|persistent|connect_worker|\bconnect\b|worker_init|\binit|epoch|opening|shut.?down|\bjoin|Popen|_MultiProcessingDataLoaderIter|__iter__|restart|creat|launch|exit|waitpid|wait4|poll.*Popen|short.?lived|clone",
                r"persistent_workers"),
    # rank 0 alone draws and saves a picture at each step; rank 1 waits for it
    "turnouts": (r"rank.?0|rank0|straggl|slow(est|er)? rank|journal|\bpage(?! ?(fault|cache))|PIL|pillow|png|image|draw|sav|plot|picture|\blog|uneven|imbalance|skew",
                 r"rank.?0|rank0|straggl|slow(est|er)? rank|journal|\bpage(?! ?(fault|cache))|PIL|pillow|png|image|draw|sav|encode|zlib|deflate|zip|libimagequant|imaging",
                 None),
    # TRAP: the archive's lock; under it one reader at a time waits for the share, so that more workers bring nothing
    "handball": (r"\block|flock|_lock|\bturn\b|semaphore|\bsem_|mutex|archive|\bread\b|read \(|MatchArchive|sleep|contention",
                 r"\block|flock|_lock|\bturn\b|semaphore|\bsem_|SemLock|mutex|futex|archive|\bread\b|read \(|MatchArchive|sleep|contention",
                 None),
}
NEEDS = {
    "ultrasound": "webdataset", "soybeans": "timm", "modulation": "lightning", "claims": "transformers", "catalogue": "tokenizers", "turnouts": "PIL",
}
TRAPS = ["handball"]

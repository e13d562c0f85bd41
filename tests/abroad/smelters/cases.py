STEP = r"\btrain|step|main ?thread|\bmain\b|forward|backward|update"
CASES = {
    "tide_gauges": (None, r"sqlite|gauge-reader|GaugeReader|\bhistory|\bquer|database|fetchall|execute|\bscan|\bselect\b|\bindex|\breader|pread|listcomp|\bSQL|loader|producer", None),
    "recipe_cards": (None, r"network|socket|epoll|selector|\bpoll|fetch_card|next_cards|fetch|aiohttp|http|asyncio|event ?loop|server|service|kitchen|\brecv|tcp|web|remote|\bcard\b|latency", None),
    "seismic_traces": (None, r"\bxz\b|lzma|decompress|\bpipe|child|subprocess|popen|open_archive|read_batches|stdout|archive|\bdecod", None),
    "assay_curves": (None, STEP + r"|jax|\bjit|xla|llvm|compil|\btrac|lower|pjit|shape|value_and_grad|optimi", None),
    "kiln_scans": (r"pickl|pipe|\brecv|\bsend|_send|_recv|handle_results|result|\bpool|queue|serial|transfer|connection|\bcopy|worker|read_scans|imap|\bdumps|\bIPC\b|unpickl|\bread\b|\bwrite\b",
                   r"pickl|pipe|\brecv|\bsend|_send|_recv|handle_results|result|\bpool|queue|serial|transfer|connection|\bcopy|worker|read_scans|imap|\bdumps|\bIPC\b|unpickl|\bread\b|\bwrite\b", None),
    "bird_songs": (STEP + r"|gru|rnn|autograd|engine|\btorch\b|SongNet|optimi|model|openmp|omp|mkl",
                   STEP + r"|gru|rnn|autograd|engine|\btorch\b|SongNet|optimi|model|openmp|omp|mkl", None),
    "ski_lifts.cc": (None, r"gate_row|read_log|pars|stof|strtof|stringstream|sstream|getline|\breader|producer|loader|dynamic_cast|\btext|\bcsv|str_to_mpn|second thread|other thread|worker", None),
    "herring_catch.go": (None, r"fsync|\bsync\b|journal|\bNote\b|flush|\bdisk|storage|jbd2|ext4|i/o|\bio\b|block device|\bvda|\.Sync|file system|filesystem|\bwrite", None),
    "Orchards.java": (None, r"station-reader|StationReader|readBatch|readFloat|\bread|DataInput|FileInput|InputStream|syscall|system call|system time|kernel|\bfiles?\b|unbuffered|\bI/O|producer|loader", None),
    "glacier_melt.rs": (None, r"gradient|the trainer|\btrain|\bmain\b|main thread|thread glacier_melt|\bstep|memory|cpu cache|cache miss|consumer", None),
}
NEEDS = {"tide_gauges": "numpy", "recipe_cards": "aiohttp", "seismic_traces": "numpy", "assay_curves": "jax",
         "kiln_scans": "numpy", "bird_songs": "h5py"}

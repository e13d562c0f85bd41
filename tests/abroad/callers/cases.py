"""What limits each program here: (words_inside, words_outside, advice), for re.search(..., line, re.I)."""

CASES = {
    # one worker decodes and augments JPEGs: one core of two
    "parcels": (
        r"worker|getitem|ParcelPhotos|decode|jpe?g|\bPIL\b|pillow|image|transform|resize|crop|jitter|num_workers",
        r"worker|getitem|ParcelPhotos|decode|jpe?g|\bPIL\b|pillow|imaging|image|transform|resize|crop|jitter|fetch",
        r"num_workers\D*1\s*(->|to|→)\s*[2-4]",
    ),
    # a request at a time in each of two workers, each 25 ms; nobody computes
    "tiles": (
        r"network|socket|http|remote|request|download|recv|latency|server|Tiles|storage|store|IterableDataset",
        r"network|socket|http|remote|request|download|recv|latency|server|Tiles|storage|store|getresponse|readinto|tcp",
        r"num_workers\D*2\s*(->|to|→)\s*([3-9]|1\d|2\d|3\d)\b",
    ),
    # whole volumes (9 MB each) go pickled through the workers' pipe, to be cropped in the main process
    "ctscans": (
        r"pickl|seriali[sz]|pipe|queue|transfer|transport|recv|hand-?over|copy|copies|sample size",
        r"pickl|seriali[sz]|pipe|queue|feed|transfer|transport|recv|hand-?over|_send|copy|copies|connection|get_data|loads|dumps",
        None,
    ),
    # every tenth step evaluates the whole held-out set
    "reviews": (
        r"evaluat|\beval|validat|prediction|held_?out",
        r"evaluat|\beval|validat|prediction|held_?out",
        None,
    ),
    # each (short) epoch starts two workers anew, and each of them reads the registry again
    "wells": (
        r"persistent|epoch|start-?up|worker.{0,20}start|start.{0,20}worker|fork|spawn|open_registry|registry|json|getitem|first batch",
        r"epoch|start-?up|worker.{0,20}start|start.{0,20}worker|fork|spawn|open_registry|registry|json|raw_decode|getitem|__iter__|_MultiProcessingDataLoaderIter",
        r"persistent_workers",
    ),
    # TRAP: the GRU's forward and backward; the windows are slices of an array in memory
    "glucose": (
        r"trainer|\btrain\b|\bstep\b|model|forward|backward|gru|autograd|optimi[sz]er",
        r"trainer|\btrain\b|\bstep\b|model|forward|backward|gru|rnn|autograd|accelerat|optimi[sz]er|libtorch|gemm|mkl|gomp|omp",
        None,
    ),
    # each trace read at random inflates a chunk of 512 traces, in the workers
    "seismic": (
        r"worker|getitem|Survey|hdf5|h5py|h5|chunk|decompress|inflate|zlib|gzip|trace",
        r"worker|getitem|Survey|hdf5|h5py|h5|chunk|decompress|inflate|zlib|libz|gzip|fetch",
        None,
    ),
    # Python for each row (iloc, tensor, collate) in the main process
    "clicks": (
        r"main process|main thread|getitem|ClickLog|iloc|pandas|collate|per-item|Python (code|overhead)",
        r"getitem|ClickLog|iloc|pandas|collate|per-item|fetch|fast_xs|next_data|dataset|loader",
        None,
    ),
    # the manager's one process tokenizes for all four workers
    "tickets": (
        r"manager|proxy|TicketEncoder|encode|token|server|single process|one process|other process|\bGIL\b|callmethod",
        r"manager|proxy|TicketEncoder|encode|token|clean|normalize|server|single process|one process|\bGIL\b|callmethod",
        None,
    ),
    # rank 1 has all the big scans; rank 0 waits for it in each step
    "herbarium": (
        r"rank|straggl|imbalance|uneven|skew|getitem|Sheets|decode|jpe?g|\bPIL\b|pillow|image|other process|peer|main process",
        r"rank|straggl|imbalance|uneven|skew|getitem|Sheets|decode|jpe?g|\bPIL\b|pillow|imaging|image|convert|resize|fetch|peer",
        None,
    ),
}

NEEDS = {
    "parcels": "torchvision",
    "ctscans": "webdataset",
    "reviews": "transformers",
    "wells": "lightning",
    "glucose": "accelerate",
    "seismic": "h5py",
    "clicks": "pandas",
    "tickets": "tokenizers",
}

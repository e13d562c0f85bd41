"""What limits each program, in words for the line that names the limit. Written before any profiler saw them."""

# name: (words_inside, words_outside, advice)
CASES = {
    "genome_reads": (
        None,
        r"read-?_?feeder|feeder|\bencod|kmer|qualit|\btrust\b|genexpr|listcomp|\bpars|fastq|\brecords\b",
        None,
    ),
    "card_payments": (
        None,
        r"\bnetwork|socket|http|service|server|\bserve\b|profiles?\b|\.one\b|in one\b|request|response|repl(y|ies)"
        r"|round.?trip|latency|epoll|select|127\.0\.0\.1|localhost|(an)?other process|child process",
        None,
    ),
    "satellite_frames": (
        None,
        r"bzip2|bz2|decompress|unpack|\bpipe|child|subprocess|Downlink|\bframes\b|(an)?other process|helper",
        None,
    ),
    "catalogue_items": (
        None,
        r"\bload|np\.load|numpy|\bnpy|\bopen|\bfiles?\b|small reads|\bread|Items\.rows|\brows\b|\brow\b|read_array"
        r"|read_magic|header|literal_eval|\bpars|\bast\b|npyio|_format_impl|fstat|\bstat\b",
        None,
    ),
    "chess_positions": (
        r"trainer|training|\bstep\b|forward|backward|\bmodel\b|Block|\bconv|tower|autograd|mkldnn|onednn|\baten"
        r"|libtorch|main thread|MainThread|\bmain\b",
        r"trainer|training|\bstep\b|forward|backward|\bmodel\b|Block|\bconv|tower|autograd|mkldnn|onednn|\baten"
        r"|libtorch|main thread|MainThread|\bmain\b",
        None,
    ),
    "ledger_entries.go": (
        None,
        r"fsync|fdatasync|\.Sync\b|\bsync\b(?!\.)|\bdisk|storage|\bjournal|flush|\brecord\b|jbd2|ext4|\bwrit"
        r"|block (device|I/O)|\bI/O\b",
        None,
    ),
    "sensor_fleet.go": (
        None,
        r"\bread|syscall|system calls?|kernel|main\.next|\bnext\b|main\.field|\bfield\b|\bfeed|ReadFull|ReadAtLeast"
        r"|os\.\(?\*?File|pread|reports\.bin|\bfiles?\b",
        None,
    ),
    "speech_clips.cc": (
        None,
        r"sleep|\bpoll|Handover|\bPause\b|\bPut\b|\bTake\b|\btimer",
        None,
    ),
    "street_lidar.cc": (
        None,
        r"alloc|fault|\bmemory|Voxels::Voxels|Voxels\b(?!::)|\bvector|\bmmap|munmap|memset|\bkernel|zero|\bnew\b"
        r"|clear_page|\bfill",
        None,
    ),
    "BookPages.java": (
        None,
        r"\bgc\b|garbage|collect|\bG1|tidy|System\.gc|\bheap|\bmemory|VM.?Thread|safepoint|Trainer\.batch",
        None,
    ),
}

# The module beside torch that a program imports.
NEEDS = {
    "genome_reads": "numpy",
    "card_payments": "aiohttp",
    "satellite_frames": "numpy",
    "catalogue_items": "numpy",
    "chess_positions": "torch",
}

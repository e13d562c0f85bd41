"""What limits each program here, written before any profiler ran. (words_inside, words_outside, advice)"""
CASES = {
    # The child (Newsdesk) pickles lists of small objects in its QueueFeederThread for the mp.Queue; the trainer then
    # waits in Queue.get (and unpickles).
    "gazette": (None, r"pickl|dumps|_loads|\bloads\b|serial|feeder|_feed|\bqueue|queue\.get|queues\.py|\bget\b|reduc|"
                      r"newsdesk|tray|child|another process|other process|producer|\bpipe|recv", None),
    # Waits for one station after another, 5 ms each, over loopback sockets to the gateway process.
    "weather": (None, r"network|socket|tcp|loopback|gateway|server|epoll|selector|\bselect|observation|hourly_round|"
                      r"readline|recv|request|repl(y|ies)|respon|service|round.?trip|latency|another process|"
                      r"other process|asyncio|event loop|await|station|port \d", None),
    # The player process (a child of the program) expands mu-law samples in a loop of Python.
    "birdcalls": (None, r"expand|player|\bplay\b|child|subprocess|another process|other process|producer|decod|"
                        r"mu.?law|pipe|stdout|popen", None),
    # 128 opens + np.load of tiny files per batch, in the training loop's own thread.
    "roads": (None, r"np\.load|numpy\.load|\bload\b|loading|npyio|_npyio|npy|\brows\b|Segments|segment|\bopen|"
                    r"read_array|read_magic|_read|literal_eval|safe_eval|header|_format_impl|numpy.*(format|read)|"
                    r"\bfiles?\b|file ?system|small read|\bread", None),
    # TRAP: a second pool worker brings nothing, the step (GRU, forward + backward) in the trainer is the limit.
    "looms": (r"trainer|train|\bstep\b|forward|backward|gru|rnn|lstm|model|BreakNet|autograd|loss|gradient|optim|"
              r"main thread|MainThread",
              r"trainer|train|\bstep\b|forward|backward|gru|rnn|lstm|model|BreakNet|autograd|loss|gradient|optim|torch|"
              r"mkl|gemm|main thread|MainThread|\bmain\b", None),
    # One goroutine decodes JSON lines into maps.
    "freight.go": (None, r"json|unmarshal|readManifests|manifest|decod|pars|scanner|strconv|reader goroutine", None),
    # Lobby: both sides poll with sleep_for(10 ms).
    "arcade.cc": (None, r"sleep|poll|timer|\bRest\b|::Rest|Lobby|Fetch|\bLeave\b|::Leave", None),
    # FileChannel.force after each batch's audit entry.
    "Payroll.java": (None, r"fsync|fdatasync|msync|\bsync|\bforce|flush|disk|storage|block device|journal|jbd2|ext4|"
                           r"file ?system|AuditTrail|audit|\benter\b|FileChannel|FileDispatcher|folio|writeback|"
                           r"\bvd[a-z]\b|\bi/?o\b|\bwrit(e|es|ing)\b", None),
}
NEEDS = {}

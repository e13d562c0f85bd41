"""What each program's limit may rightly be called; written before any profiler was run."""

CASES = {
    # each epoch starts new workers, and every one of them reads the lexicon again
    "orchids": (r"start|load_lexicon|lexicon|epoch|persistent|fork|spawn|FieldNotes|json",
                r"start|load_lexicon|lexicon|fork|spawn|FieldNotes|json|getitem|worker",
                r"persistent_workers (False )?-> True|persistent_workers ?= ?True"),
    # one shard has nearly all pages: worker 0 alone reads from the slow disk
    "tides": (r"shard|uneven|imbalance|skew|straggl|worker.?0|read_page|TideGauges|__iter__|sleep|timer",
              r"shard|uneven|imbalance|skew|straggl|worker.?0|read_page|TideGauges|__iter__|sleep|timer",
              None),
    # TRAP: the sampler draws in the main process, more workers bring nothing
    "claims": (r"sampler|BalancedClaims|choice|draw",
               r"sampler|BalancedClaims|choice|draw|claims\.py.*__iter__|__iter__.*claims\.py|random",
               None),
    # evaluation with an edit distance in pure Python
    "plates": (r"eval|metric|edit_distance|plate_error_rate",
               r"eval|metric|edit_distance|plate_error_rate",
               r"eval_steps 20 -> [1-9][0-9]+|eval_steps"),
    # gradients of a big embedding are exchanged after every batch
    "playlists": (r"all.?reduce|gloo|gradient|backward|DDP|DistributedDataParallel|collective|network|socket",
                  r"all.?reduce|gloo|gradient|backward|DDP|DistributedDataParallel|collective|network|socket",
                  None),
    # 32 MB arrays pickled through a pipe
    "pulsars": (r"queue|pickl|pipe|hand.?over|transfer|serial|feeder|copy",
                r"queue|pickl|pipe|hand.?over|transfer|serial|feeder|recv|copy",
                None),
    # sixteen threads share one connection under a lock
    "parishes": (r"lock|lookup|Gazetteer|one connection",
                 r"lock|lookup|Gazetteer|one connection",
                 None),
    # the step runs eagerly
    "greenhouse": (r"step|eager|trainer|train_function|\bfit\b",
                   r"step|eager|trainer|train_function|\bfit\b|backprop|keras|main.?thread",
                   r"run_eagerly (True )?-> False|run_eagerly ?= ?False"),
    # readings asked for one after another
    "meters.go": (None,
               r"network|socket|http|fetch|service|epoll|netpoll|fetchReading|fetchBatch",
               None),
    # both sides of the queue sleep and look again
    "bearings.cc": (None,
                 r"poll|sleep|timer|Conveyor|\brest\b|\btake\b|\bput\b",
                 None),
}

NEEDS = {"plates": "transformers", "pulsars": "numpy", "claims": "numpy", "greenhouse": "tensorflow"}

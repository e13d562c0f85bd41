"""What a profiler's line about each program may name (written before any profiler ran): (inside, outside, advice)."""

PARSE = r"\bGIL\b|interpreter|strptime|pars|receiver|read_moment|moment|features|datetime|thread ?pool|executor|worker|python code"
HANDOVER = (r"pickl|pipe|serial|hand.?over|transfer|cop(y|ies)|handle_results|result handler|result ?queue|simplequeue|outqueue"
            r"|connection|_recv|\brecv|_send|\bsend|\bput\b|\bloads\b|\bdumps\b|inter.?process|\bipc\b")

CASES = {
    "ski_lifts.cc": (None, r"multipl|\bstep|\bmodel|train|\bmain|matri|gradient|forward|backward|comput|\bcache", None),
    "baggage.cc": (None, r"\block|mutex|beltclient|fetch|recv|socket|network|controller|connection|server|\btcp|contention", None),
    "podcasts.go": (None, r"fsync|fdatasync|\bsync\b|disk|journal|append|\blisten\b|\bi/?o\b|block device|jbd2|storage|writ|flush", None),
    "regatta.rs": (None, r"sleep|poll|\bnap|timer|shelf|\btake\b|\bput\b", None),
    "crosswords": (None, r"duckdb|quer|\bsql|database|execut|fetchone|\bclue\b|cluebook|\bsample\b|\brows?\b|drawer|\bdraw\b", None),
    "sea_ice": (HANDOVER, HANDOVER, None),
    "postcards": (None, r"network|socket|http|download|fetch|server|archive|\bserve\b|bandwidth|\bcollect\b|\bweb|\btcp|recv|remote|epoll|loopback", None),
    "ship_traces": (PARSE, PARSE, None),
    "karaoke": (None, r"compil|xla|llvm|jit|jax|trac(e|ing)|lowering|mlir|train|\bstep|\bmain", None),
    "orchards": (None, r"xgb|grow|forest|train|boost|\bmain|colmaker|exact|split|tree|\bstep", r"tree_method|\bhist\b"),
}

NEEDS = {"crosswords": "duckdb", "sea_ice": "numpy", "postcards": "aiohttp", "ship_traces": "numpy", "karaoke": "jax", "orchards": "xgboost"}

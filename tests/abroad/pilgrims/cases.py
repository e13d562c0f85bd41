"""What limits each program, written before anything was run: words for a tool that sees inside the program's loader, words for one that sees
only threads, processes and the kernel's waits, and the change of a setting that lifts the limit (None: there is none, or it is code).

The words are meant for re.search with re.I. tram_delays is the trap: its --fix is popular advice and brings nothing, so no advice is written down."""


def near(one, other, gap=80):
    return rf"(?:{one}).{{0,{gap}}}(?:{other})|(?:{other}).{{0,{gap}}}(?:{one})"


def close(one, other, gap=60):
    """Like near, within a sentence."""
    return rf"(?:{one})[^.;]{{0,{gap}}}(?:{other})|(?:{other})[^.;]{{0,{gap}}}(?:{one})"


# The trainer's side, without a claim that the model's own arithmetic is the limit.
LOOP = r"trainer|training[ _](?:step|loop|thread|process|code|script)|train(?:ing)? step|\bsteps?\b|consumer|main (?:thread|process)|own (?:thread|process|code)"
INPUT = r"loader|loading|input|pipeline|\bdata|batch(?:es)?|workers?"
NET = r"network|socket|server|\btcp\b|http|remote|connect|\brecv|peer|latency|round.?trip|\bstore\b|download"
PROC = r"sub-?process(?:es)?|child(?:ren)?|helper|other process(?:es)?|another process|external|neighbou?rs?"
NAP = r"\bsleep\w*|\bnap(?:s|ping)?\b|\btimers?\b|nanosleep|\bpoll(?:s|ed|ing)?\b"
HAND = r"hand(?:s|ed|ing)?.?(?:over|off)|pickl|seriali[sz]|deseriali[sz]|transfer|\bpipes?\b|\bipc\b|inter-?process|\bcopy\b|copies|copying"
WORKER = r"(?<!more )workers?\b|pt_data_worker|data.?loaders?|loaders?\b|loading|data.?set|pre-?process|__getitem__|__iter__"
COMPUTE = r"comput|calculat|cpu.?bound|\bcpu\b|\bbusy\b|python code|running|on (?:a|one|the) (?:core|processor)"
SHORT = r"too few workers|more workers|(?:can.?not|can't|not|n't) keep(?:ing)? up"
MAIN = r"main (?:thread|process)|own (?:thread|process)|trainer(?:'s)? (?:thread|process)|training (?:thread|process)|program itself|python code"

# The trainer named as the limit, or the input named as not being it.
TRAINER = "|".join([
    rf"(?:limit(?:ed|s)?|limiter|bottleneck|bound|held (?:up|back)|slowed)\b:? ?(?:down )?(?:by|in|is|on|at)?(?: the| its| your)?(?: own)? ?(?:{LOOP})",
    rf"(?:{LOOP})(?:'s)?[^.;]{{0,30}}\b(?:is|are|itself|own)\b(?! (?:\w+ )?(?:wait|starv|idle|limited by|slowed|held))[^.;]{{0,40}}(?:the limit|limiting|bottleneck|slowest|slower|\bbusy\b|comput|working)",
    rf"(?:{INPUT})\b[^.;]{{0,30}}(?:(?:\bnot|n't) (?:the|a|your) (?:limit|bottleneck|problem|cause)|(?<!not )(?<!n't )wait(?:s|ing|ed)? (?:for|on) the (?:trainer|training|consumer|main)|ready before|keeps? ahead|faster than the (?:trainer|training|consumer))",
])
MAINBUSY = close(MAIN, COMPUTE, 50)
WRITING = close(r"writ(?:e|es|ing|ten)", r"disk|files?|storage|pages?|bytes|Mi?B")
POOL_IN = close(r"(?<!main )(?<!own )threads?\b|thread.?pool\w*|executor", COMPUTE)
POOL_OUT = close(r"(?<!main )(?<!own )threads?\b|thread.?pool\w*", COMPUTE + r"|take turns|taking turns|contend|contention|compet|one (?:core|cpu|processor)")
IN_MAIN = close(INPUT, r"(?:main|own|training|trainer.s) (?:process|thread)")
TF_IN = close(r"tf\.?_?data|" + WORKER, COMPUTE)
TF_OUT = close(r"tf_?\w*|tensorflow|native|pool|background|library|c[+][+]|loader|input", COMPUTE, 80)
WORK_OUT = close(WORKER + "|" + PROC, COMPUTE)

CASES = {
    "vine_pairs": (
        rf"checkpoint|torch\.save|\bsav(?:e|es|ing)\b|{TRAINER}",
        rf"checkpoint|\bsav(?:e|es|ing)\b|fsync|{WRITING}|{TRAINER}|{MAINBUSY}",
        r"every_n_train_steps|(?:checkpoint|sav(?:e|ing))\w*[^.;]{0,30}(?:less often|rarer|rarely|seldom|every|async)"),
    "tram_delays": (
        rf"\bitem\b|\bnote\b|\bdiary\b|metrics?\b|{TRAINER}",
        rf"{TRAINER}|{MAINBUSY}",
        None),
    "glacier_tiles": (
        NET,
        NET,
        r"num_workers\D{0,12}(?:1\D{1,8})?(?:[2-9]|\d\d)"),
    "clinic_vitals": (
        r"sqlite|\block(?:s|ed|ing)?\b|database|busy.?timeout",
        rf"sqlite|\block(?:s|ed|ing)?\b|database|fcntl|{near(WORKER, NAP, 120)}",
        None),
    "maze_rollouts": (
        NAP,
        NAP,
        None),
    "night_jars": (
        rf"{close(WORKER, COMPUTE)}|{SHORT}|spectrogram|sosfilt|scipy",
        rf"{WORK_OUT}|{SHORT}",
        r"num_workers\D{0,12}(?:1\D{1,8})?[2-4]\b"),
    "parish_letters": (
        rf"\bgil\b|interpreter.?lock|\bprepare\b|{POOL_IN}",
        rf"\bgil\b|interpreter.?lock|{POOL_OUT}",
        None),
    "hotel_nights": (
        rf"collat|pandas|\bmerge\b|get_dummies|dataframe|{IN_MAIN}",
        rf"collat|pandas|{MAINBUSY}",
        r"num_workers\D{0,12}(?:0\D{1,8})?[1-9]"),
    "roof_slates": (
        rf"decod|\bpng\b|\bresiz|decompress|\bmap(?:_func)?\b|{TF_IN}",
        rf"{TF_OUT}|cpu.?bound|(?:all|both|every|two|no (?:free|idle|spare)|out of) (?:the |its )?(?:2 )?(?:cpus?|cores?|processors?)\b",
        r"\bcache\b"),
    "dock_cameras": (
        HAND,
        HAND,
        None),
}

NEEDS = {"vine_pairs": "lightning", "night_jars": "scipy", "hotel_nights": "pandas", "roof_slates": "tensorflow"}

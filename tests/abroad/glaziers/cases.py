"""What the line that names the limit must hold: (words_inside, words_outside, advice)."""

_archive = (r"archiv|urlopen|urllib|http|network|socket|recv|server|remote|latency|sleep|picture|in.order|\border|"
            r"head.of.line|straggl|slow(est)? (item|batch|sample|picture)|one (slow )?item|worker.*wait|wait.*worker")
_line = (r"network|bandwidth|socket|recv|http|curl|\bpipe\b|download|transfer|bucket|shard|\btar|\burl|gopen|\bstore|"
         r"storage|server|remote|\bread(s|ing|er)?\b|bytes")
_draw = (r"sampler|sampling|BalancedBatches|\bdraw|choice|next_index|put_index|indices|cumsum|accumulate|_generator|"
         r"mtrand|numpy.*random|random.*numpy|weights")
_hand = (r"pickl|queue|\bpipe\b|recv|\bsend|\bhand|transfer|_feed|feeder|serial|inter.?process|\bipc\b|"
         r"connection|copy|dumps|\bloads|collat|as_list")
_tokens = r"tokeni|collat|encod|truncat|word.?piece|get_batch|fetch|num_workers 0"
_auroc = r"auroc|metric|\broc|_roc|clf_curve|curve|\bauc|sort|\.compute|training_step"
_save = (r"\bsav|_sav|checkpoint|serial|fsync|\bdisk|writ|storage|\bfile|ext4|jbd2|block device|barrier|"
         r"(rank 0|other rank|another rank)")
_net = (r"trainer|step|model|conv|forward|backward|gradient|onednn|mkldnn|dnnl|eigen|gemm|gebp|contract|matmul|"
        r"batch.?norm|comput|train_function|\bfit\b|quick_execute|training")
_lock = (r"\block|flock|file.?lock|fcntl|journal|\bask\b|Geocode\.|wait.*Geocode|sleep.*Geocode|urlopen|http|network|"
         r"socket|recv|server")
_lists = (r"pylist|\blists?\b|\bformat|formatt|levelled|asarray|arrow|extract|datasets|iterable|convert|conversion|"
          r"\bmap|stream")

CASES = {
    "bakery_shelf": (_archive, _archive, r"in_order.*False"),
    "coral_survey": (_line, _line, None),
    "bus_delays": (_draw, _draw, None),
    "quarry_blasts": (_hand, _hand, None),
    "recipe_cuisine": (_tokens, _tokens, None),
    "weave_faults": (_auroc, _auroc, None),
    "song_lyrics": (_save, _save, None),
    "leaf_blight": (_net, _net, None),
    "courier_addresses": (_lock, _lock, None),
    "hive_sounds": (_lists, _lists + r"|numpy", None),
}

NEEDS = {
    "coral_survey": "webdataset",
    "recipe_cuisine": "transformers",
    "weave_faults": "lightning",
    "leaf_blight": "tensorflow",
    "courier_addresses": "ray",
    "hive_sounds": "datasets",
}

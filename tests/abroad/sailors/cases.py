"""What the profiler should name for each program; written before any profiler was run."""

CASES = {
    # One process: the trainer itself opens, decodes and scales the JPEGs.
    "herbarium": (
        r"decod|jpe?g|\bPIL\b|pillow|getitem|SheetDataset|Image\.(open|convert|resize)|\bresize|convert|load(ing)? in the (trainer|main)|num_workers|main process",
        r"decod|jpe?g|\bPIL\b|pillow|\b_?imaging|getitem|SheetDataset|ImageFile|Image\.(open|convert|resize|load)|\bresize|convert|\bfetch",
        r"num_workers 0 -> [1-4]"),
    # Two workers augment frames at full size, and only then scale them down.
    "roadsigns": (
        r"worker|getitem|ImageFolder|transform|augment|jitter|adjust_|hue|blur|rotat|perspective|\bPIL\b|pillow",
        r"worker|getitem|ImageFolder|DatasetFolder|transform|augment|jitter|adjust_|hue|blur|rotat|perspective|\bPIL\b|pillow|_imaging",
        None),
    # One request after another to an archive 12 ms away.
    "seismo": (
        r"network|socket|https?\b|urllib|urlopen|\brecv|request|remote|server|fetch_waveform|WaveformSequence|getitem",
        r"network|socket|https?\b|urllib|urlopen|\brecv|readinto|request|remote|server|fetch_waveform|WaveformSequence|getitem",
        r"\bworkers 1 -> ([2-9]|[1-9]\d)"),
    # Workers by spawn, started anew in each short epoch.
    "turbines": (
        r"start|spawn|launch|creat|restart|persistent|epoch|import|popen",
        r"start|spawn|launch|creat|persistent|epoch|import|popen|find_and_load|exec_module|get_code|dlopen|resource_tracker|short-lived",
        r"persistent_workers.*True"),
    # A checkpoint after every step.
    "helpdesk": (
        r"checkpoint|\bsav(e|ing)|_save|save_|disk|writ(e|ing)|\bwrites|safetensors|fsync|serializ",
        r"checkpoint|\bsav(e|ing)|_save|save_|disk|writ(e|ing)|\bwrites|safetensors|fsync|serializ|page cache|file ?system",
        r"save_steps 1 -> \d\d+"),
    # TRAP: more workers bring nothing, the U-Net's step is the limit.
    "ultrasound": (
        r"trainer|\bstep|training_step|forward|backward|SpeckleNet|model|conv|autograd|optimizer",
        r"trainer|\bstep|training_step|forward|backward|SpeckleNet|model|conv|autograd|_engine_run|run_backward|batch_norm|mkldnn|onednn|libtorch|libgomp|openmp",
        None),
    # tf.py_function: a Python function for each line, under the GIL.
    "tollgate": (
        r"\bGIL\b|interpreter lock|py_?func|parse_record|parse_one|ParallelMap|\bmap\b|Python function",
        r"\bGIL\b|interpreter lock|py_?func|script_ops|parse_record|parse_one|ParallelMap|\bmap\b|Python function|tf_data|tf\.data",
        None),
    # Plain loop: DataFrame.iloc for each row.
    "mortgages": (
        None,
        r"pandas|iloc|batch_by_row|applicant_features|getitem|fast_xs|get_value|get_loc|Series|DataFrame|\brows?\b",
        None),
    # A gzip chunk of 64 boxes is inflated for each single box.
    "cryoem": (
        r"worker|getitem|ParticleStack|h5py|hdf5|\bh5|gzip|zlib|inflate|deflate|decompress|chunk",
        r"worker|getitem|ParticleStack|h5py|hdf5|\bh5|gzip|zlib|libz|inflate|deflate|decompress|chunk",
        None),
    # The loss matches anchors and boxes in three nested Python loops.
    "parcels": (
        r"trainer|\bstep|loss|match_anchors|\biou\b|forward|criterion",
        r"trainer|\bstep|loss|match_anchors|\biou\b|criterion",
        None),
}

# The module beside torch that a program imports.
NEEDS = {
    "herbarium": "PIL",
    "roadsigns": "torchvision",
    "seismo": "tensorflow",
    "helpdesk": "transformers",
    "ultrasound": "lightning",
    "tollgate": "tensorflow",
    "mortgages": "pandas",
    "cryoem": "h5py",
}

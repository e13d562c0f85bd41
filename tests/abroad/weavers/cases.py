"""Group 'weavers': what the ONE line of the limit may name. Written before any profiler was run on these programs."""
TITLE = "weavers"

# name: (words_inside, words_outside, advice)
CASES = {
    # tf.data map with a Python function (GIL): the map/py_function is what limits
    "birdsong_keras": (r"log_bands|load_clip|py_?func|\bmap\b|ParallelMap|EagerPyFunc|\bGIL\b|interpreter lock|tf\.data|rfft|numpy",
                       r"log_bands|load_clip|py_?func|\bmap\b|ParallelMap|\bGIL\b|interpreter lock|tf\.data|tf_data|rfft|numpy", None),
    # eager custom loop: the trainer's own step, op by op
    "digits_vae_tf": (r"trainer|training loop|\bstep\b|\bupdate\b|eager|make_update|GradientTape|gradient|optimizer|apply_gradients|forward|backward|\bcall\b|clip_by_norm|main thread",
                      r"trainer|training loop|\bstep\b|\bupdate\b|eager|make_update|GradientTape|gradient|optimizer|apply_gradients|forward|backward|\bcall\b|clip_by_norm|main thread|MainThread|\bTFE_", None),
    # PyDataset with one worker, each tile a round trip over HTTP
    "tiles_keras": (r"network|socket|http|fetch_tile|TileSequence|getitem|\brecv|PyDataset|Sequence|tile server|remote|getresponse",
                    r"network|socket|http|fetch_tile|TileSequence|getitem|\brecv|PyDataset|tile server|remote|getresponse|readinto|\btcp\b",
                    r"workers\D{0,12}1\b\D{1,12}([2-9]|[1-9]\d)\b"),
    # a new shape each batch: jit compiles anew each time
    "peptide_jax": (r"compil|\bXLA\b|\bjit\b|LLVM|trainer|\bstep\b|train_step|retrac|lowering",
                    r"compil|\bXLA\b|\bjit\b|pjit|LLVM|trainer|\bstep\b|train_step|retrac|lowering|main thread|MainThread", None),
    # jax.numpy called sample by sample in the Dataset, in the training process (num_workers=0)
    "ecg_jax": (r"getitem|Heartbeats|\bfetch\b|DataLoader|loader|dataset|jax\.numpy|\bjnp\b|pjit|dispatch",
                r"getitem|Heartbeats|\bfetch\b|DataLoader|loader|dataset|jax\.numpy|\bjnp\b|pjit|dispatch", None),
    # the vocabulary is read and parsed anew for every batch, in Ray's tasks
    "reviews_ray": (r"encode_reviews|MapBatches|map_batches|json|vocabulary|workers?\b.*\bCPU|ray::|Ray('s)? (task|worker)|TaskPool",
                    r"encode_reviews|MapBatches|map_batches|json|vocabulary|raw_decode|scan_once|workers?\b.*\bCPU|ray::|Ray('s)? (task|worker)|TaskPool", None),
    # rows one by one in the consumer, turned into lists and tensors
    "taxi_ray": (r"iter_rows|batches_of_rows|trainer|main thread|consumer|collat|torch\.tensor|as_pydict|row_iterator|user code",
                 r"iter_rows|batches_of_rows|trainer|main thread|MainThread|consumer|collat|torch\.tensor|as_pydict|row_iterator|user code|arrow_block|table_block|to_py|as_py", None),
    # each query reads and parses the whole CSV again
    "load_forecast_xgb": (None,
                          r"duckdb|window_before|\bquery\b|\bcsv\b|read_csv|\bsql\b|\bexecute\b", None),
    # a chunk of 256 crops is decompressed for every crop
    "cells_h5": (r"h5py|hdf5|\bh5|CropReader|next_batch|\bread\b|gzip|zlib|deflate|inflate|decompress|\bcrops\b",
                 r"h5py|hdf5|\bh5|libhdf5|CropReader|next_batch|\bread\b.*cells_h5|\bin read\b|CropReader\.read|gzip|zlib|libz|deflate|inflate|decompress", None),
    # TRAP: more threads bring nothing, as parsing is pure Python under one GIL
    "logs_threads": (r"\bGIL\b|interpreter('s)? lock|parse_line|parse_block|\bparsed?\b|parser|\bpool\b|ThreadPool|executor|crc32",
                     r"\bGIL\b|interpreter('s)? lock|parse_line|parse_block|parser|\bpool\b|ThreadPool|executor|crc32", None),
}

NEEDS = {
    "birdsong_keras": "tensorflow",
    "digits_vae_tf": "tensorflow",
    "tiles_keras": "keras",
    "peptide_jax": "jax",
    "ecg_jax": "jax",
    "reviews_ray": "ray",
    "taxi_ray": "ray",
    "load_forecast_xgb": "xgboost",
    "cells_h5": "h5py",
}

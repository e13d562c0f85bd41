"""What a profiler's line on the limit should name, written before any profiler was run (by one who had not read any)."""

CASES = {
    # tf.data map without num_parallel_calls: one thread decodes and resizes JPEGs
    "leaf_disease": (
        r"map|load_photo|jpe?g|decode|resize|tf[._ ]?data|tensorflow data|num_parallel",
        r"jpe?g|decode|resize|tf[._ ]?data|tensorflow data|tf_data|load_photo|idct|map ?dataset|data pipeline|input pipeline",
        r"num_parallel_calls.*(AUTOTUNE|-1|[2-9])",
    ),
    # ModelCheckpoint(save_freq=1): the whole model is saved after each batch, in the trainer's thread
    "bike_demand": (
        r"checkpoint|save|saving|callback|on_train_batch_end|on_batch_end|h5|\.keras|zip|disk|write|fsync|trainer|train step|training step|\bfit\b",
        r"checkpoint|save|saving|callback|on_train_batch_end|on_batch_end|h5|\.keras|zip|disk|write|fsync|trainer|train step|training step|\bfit\b",
        r"save_freq.*epoch",
    ),
    # Ray Data map() row by row, Python and small numpy calls in the workers
    "bearing_faults": (
        r"map|extract_features|worker|udf|numpy|rfft|\bfft\b|python code",
        r"extract_features|ray::|worker|\bmap\b|numpy|rfft|\bfft\b|python code|task",
        None,
    ),
    # TRAP: pure Python parsing in threads, the GIL; more threads bring nothing
    "chess_value": (
        None,
        r"\bgil\b|interpreter lock|encode_fen|_load\b|PositionLoader|loader-\d|loader thread|loader|python code|parse|parsing",
        None,
    ),
    # Pool.apply_async gives back 12 MB arrays: pickled, sent through a pipe, read by the parent's result thread
    "satellite_tiles": (
        r"pickl|serial|pipe|\bipc\b|transfer|between processes|result|send|recv|connection|copy|shared memory|transport",
        r"pickl|serial|pipe|\bipc\b|transfer|between processes|_handle_results|result handler|result|send|recv|connection|transport",
        None,
    ),
    # a lock around ZipFile.read: one thread of four decompresses (bzip2) at a time
    "mooring_spectra": (
        r"lock|mutex|zip|bz2|zlib|inflate|decompress|deflate|BuoyArchive|\bread\b|load_hours|archive",
        r"lock|mutex|zip|bz2|zlib|inflate|decompress|deflate|BuoyArchive|\bread\b|load_hours|archive",
        None,
    ),
    # TRAP: the service spaces its answers out (80 a second); more connections bring nothing
    "herbarium_fetch": (
        None,
        r"network|socket|server|service|remote|http|fetch_sheet|crawl|rate limit|download|asyncio|event loop|\bTCP\b|request",
        None,
    ),
    # DuckDB parses the whole CSV anew for each batch
    "taxi_tips": (
        None,
        r"duckdb|csv|sql|query|TripBatches|__iter__|execute|fetchnumpy",
        None,
    ),
    # the reader thread polls a full queue with sleep(0.05)
    "arrhythmia": (
        None,
        r"sleep|timer|polling|ecg-reader|EcgReader|reader thread|\brun\b",
        None,
    ),
    # C++: reads of 4 KB with O_DIRECT at random places, one at a time in each of two threads
    "click_model.cc": (
        None,
        r"disk|pread|\breads?\b|reading|ReadImpressions|O_DIRECT|block device|storage|\bI/?O\b|\bvd[a-z]\b|nvme|\bfiles?\b",
        None,
    ),
}

NEEDS = {
    "leaf_disease": "tensorflow",
    "bike_demand": "tensorflow",
    "bearing_faults": "ray",
    "chess_value": "jax",
    "satellite_tiles": "numpy",
    "mooring_spectra": "torch",
    "herbarium_fetch": "aiohttp",
    "taxi_tips": "xgboost",
    "arrhythmia": "torch",
}

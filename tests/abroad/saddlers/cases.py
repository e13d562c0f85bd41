"""What limits each program here: (words_inside, words_outside, advice). Written before any profiler was run."""

CASES = {
    # map(parse_single_example) per record, then batch: tf.data's threads spend the CPU on per-element work
    "banner_clicks": (
        r"\bmap|pars|impression|example|protobuf|decod|tf\.?_?data|input pipeline|dataset|record",
        r"\bmap|pars|impression|example|protobuf|decod|tf_?\.?data|tf_compute|input pipeline|dataset|record",
        None),
    # interleave with cycle_length=1: each scan is an HTTP request of 40 ms, one after another
    "storm_radar": (
        r"network|http|socket|recv|url|download|fetch|remote|server|archive|\bscans\b|station_scans|generator|interleave",
        r"network|http|socket|recv|url|download|fetch|remote|server|archive|\bscans\b|tcp|generator|interleave",
        r"cycle_length|num_parallel_calls|interleave"),
    # tf.function gets the learning rate as a Python float: a new trace at each step
    "phrasebook": (
        r"trac(e|ing)|retrac|train_step|tf\.?function|polymorphic|autograph|graph|func_?graph|compil|\bstep\b",
        r"trac(e|ing)|retrac|train_step|tf\.?function|polymorphic|autograph|graph|func_?graph|compil|\bstep\b",
        None),
    # ModelCheckpoint(save_freq=4): the whole model with Adam's state is written every fourth batch
    "sheet_music": (
        r"checkpoint|\bsav(e|ing)|sav(e|ing)_|callback|on_train_batch_end|zip|h5py|hdf5|\bwrit(e|ing)|serializ",
        r"checkpoint|\bsav(e|ing)|sav(e|ing)_|callback|on_train_batch_end|zip|h5py|hdf5|\bwrit(e|ing)|serializ",
        r"save_freq|checkpoint.*(rare|seldom|less|epoch|background|async)|sav(e|ing).*(rare|seldom|less|epoch|background|async)"),
    # map_batches with a function: each call unpickles the catalogue anew in the tasks
    "shop_baskets": (
        r"map_?batches|add_products|catalogue|unpickl|pickle|\bload(s|ing)?\b|ray task|ray worker|workers",
        r"map_?batches|add_products|catalogue|unpickl|pickle|\bload(s|ing)?\b|ray::|ray worker|workers",
        None),
    # iter_rows: the trainer's own thread makes a dict of each row and collates lists of floats
    "meter_readings": (
        r"iter_rows|\brows?\b|table_?row|day_by_day|collat|conver|as_pydict|to_py|arrow|torch\.tensor|main ?thread|own python|python code",
        r"iter_rows|\brows?\b|table_?row|day_by_day|collat|conver|as_pydict|to_py|arrow|torch\.tensor|main ?thread|own python|python code",
        None),
    # the training step isn't jitted: each operation is traced and dispatched from Python
    "tremors": (
        r"\bupdate\b|\bstep\b|misfit|value_and_grad|\bgrad|\bjax\b|\bjit|dispatch|primitive|lineari[sz]|trac(e|ing)|forward|backward|optax|\beager|trainer",
        r"\bupdate\b|\bstep\b|misfit|value_and_grad|\bgrad|\bjax\b|\bjit|dispatch|primitive|lineari[sz]|trac(e|ing)|forward|backward|optax|\beager|main ?thread|trainer",
        None),
    # map(encode) tokenizes one paragraph a call, in the trainer's thread
    "court_rulings": (
        r"token|encod|\bmap\b|transformers|mapped ?examples",
        r"token|encod|\bmap\b|transformers|mapped ?examples",
        r"batched|map.*batch_size"),
    # each batch (17 MB of float32) is pickled by the Pool's worker, sent through a pipe, unpickled by the trainer
    "variant_reads": (
        r"pickl|serial|pipe|transfer|\bipc\b|between processes|result|\bsend|\brecv|\breceiv|connection|queue|cop(y|ies|ying)",
        r"pickl|serial|pipe|transfer|\bipc\b|between processes|result|\bsend|\brecv|\breceiv|connection|queue|cop(y|ies|ying)",
        None),
    # TRAP: threads of a pool decode polylines in pure Python, so the GIL limits; more threads bring nothing
    "street_routes": (
        r"\bgil\b|interpreter|polyline|route_features|\bprepare\b|thread ?pool|\bpool\b|workers?'? ?cpu|python code",
        r"\bgil\b|interpreter|polyline|route_features|\bprepare\b|thread ?pool|\bpool\b|workers?'? ?cpu|routes_|python code",
        None),
}

NEEDS = {
    "banner_clicks": "tensorflow",
    "storm_radar": "tensorflow",
    "phrasebook": "tensorflow",
    "sheet_music": "keras",
    "shop_baskets": "ray",
    "meter_readings": "ray",
    "tremors": "jax",
    "court_rulings": "datasets",
    "variant_reads": "torch",
    "street_routes": "numpy",
}

"""What the profiler's line ought to name: (words_inside, words_outside, advice). Written before any run of a profiler."""

CASES = {
    # a ResNet's forward and backward; more workers (the popular advice, --fix) bring nothing
    "pathology_tiles": (
        r"trainer|train_batch|forward|backward|the step|model|resnet|conv|autograd|mkldnn|onednn|dnnl",
        r"trainer|train_batch|forward|backward|the step|model|resnet|conv|autograd|mkldnn|onednn|dnnl|libtorch|omp|gemm",
        None),
    # gc.collect() after each batch, with some 200k lists in memory
    "churn_sessions": (
        r"garbage|\bgc\b|collect\b|after_batch|trainer|fit_batch",
        r"garbage|\bgc\b|gc_collect|collect\b|after_batch|trainer|fit_batch|subtract_refs|visit_reachable|main thread",
        None),
    # concordance index by two Python loops in training_step
    "pump_survival": (
        r"concordance|metric|training_step|trainer",
        r"concordance|metric|training_step|trainer|main thread|PumpModel",
        None),
    # a picture drawn and saved as PNG after each batch
    "energy_keras": (
        r"callback|dashboard|on_train_batch_end|draw|plot|png|\bPIL\b|pillow|resize|\bsave\b|trainer",
        r"callback|dashboard|on_train_batch_end|draw|plot|png|\bPIL\b|pillow|imaging|resize|\bsave\b|zlib|deflate|trainer|main thread",
        None),
    # PIL/torchvision augmentation in one worker
    "plant_leaves": (
        r"worker|getitem|augment|transform|ImageFolder|decod|jpe?g|\bPIL\b|pillow|jitter|rotat|crop|loader",
        r"worker|getitem|augment|transform|ImageFolder|decod|jpe?g|\bPIL\b|pillow|imaging|jitter|rotat|crop|loader|pt_data",
        r"num_workers 1 -> [2-4]"),
    # scipy's resample and stft in two workers, both cores full
    "bird_calls": (
        r"worker|getitem|spectrogram|Recordings|resampl|stft|fft|scipy|signal|loader|CPU",
        r"worker|getitem|spectrogram|Recordings|resampl|stft|fft|scipy|signal|loader|pt_data|CPU",
        None),
    # sixty-odd regular expressions per ticket in set_transform, in the trainer's own process (num_workers=0)
    "support_tickets": (
        r"clean|encode|regex|\bre\b|\bsub\b|transform|format|getitem|loader|datasets|fetch",
        r"clean|encode|regex|\bre\b|\bsub\b|_?sre|transform|format|getitem|loader|datasets|fetch",
        None),
    # one HTTP request of 20 ms per sample, one after the other, two workers
    "listing_prices": (
        r"network|http|requests|urllib|socket|\brecv|tcp|service|server|latency|wait.*(getitem|Listings)|(getitem|Listings).*wait",
        r"network|http|requests|urllib|socket|\brecv|tcp|service|server|latency|wait.*(getitem|Listings)|(getitem|Listings).*wait",
        r"num_workers 2 -> ([3-9]|[1-9]\d)"),
    # a server with 6 MB/s
    "satellite_scenes": (
        r"network|http|urllib|socket|\brecv|tcp|download|archive|server|bandwidth",
        r"network|http|urllib|socket|\brecv|tcp|download|archive|server|bandwidth",
        None),
    # 32 MB of numpy arrays per batch pickled through the pipe of the workers' queue
    "ct_patches": (
        r"hand|transfer|pickl|seriali|queue|pipe|\bIPC\b|between processes|copy|sending|send_bytes|recv_bytes|feed",
        r"hand|transfer|pickl|seriali|queue|pipe|\bIPC\b|between processes|copy|sending|send_bytes|recv_bytes|_recv|_send|feed",
        None),
}

NEEDS = {
    "pathology_tiles": "torchvision",
    "pump_survival": "lightning",
    "energy_keras": "keras",
    "plant_leaves": "torchvision",
    "bird_calls": "scipy",
    "support_tickets": "datasets",
    "listing_prices": "requests",
}

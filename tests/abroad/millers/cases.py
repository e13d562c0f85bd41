"""millers: what each program's limit may rightly be called; written before any profiler was run, by somebody who runs none."""

STEP = r"\bstep\b|training_step|forward|backward|autograd|\bmodel\b|matmul|gemm|\bmm\b|mkl|onednn|dnnl"

CASES = {
    # rows yielded one by one in the main process, then collated: loading, not the step
    "fares": (
        r"collate|stack|fetch|loader|load(ing)? (of )?(data|batches)|__iter__|\b(iter|next)\b|rides|getitem|dataset",
        r"collate|stack|fetch|loader|__iter__|\b(iter|next|_next_data)\b|rides|from_numpy|as_tensor|dataset",
        None),
    # each tile waits for the store's first byte, two workers only
    "tiles": (
        r"network|socket|http|urlopen|recv|\btcp\b|remote|\bstore\b|serve_store|server|wait.*getitem|latency",
        r"network|socket|http|urlopen|recv|readinto|\btcp\b|remote|\bstore\b|serve_store|server|sleep|do_GET|latency|wait.*getitem",
        r"(num_?)?workers\D{0,12}2 *(->|to|=>|→) *([3-9]|1\d)"),
    # workers forked and ended again in each short epoch
    "brewery": (
        r"start|restart|fork|spawn|persistent|epoch|creat|shutdown|shut down|join|new workers|process(es)? begin|_MultiProcessingDataLoaderIter",
        r"start|restart|fork|spawn|clone|popen|epoch|creat|shutdown|shut down|join|waitpid|exit|_MultiProcessingDataLoaderIter|DataLoaderIter.*__init__|short.lived",
        r"persistent_?workers\W.*True"),
    # the whole state saved every ten steps
    "ledger": (
        r"checkpoint|save|safetensors|serializ|pickle|\bdisk\b|\bwrit|storage|torch\.save",
        r"checkpoint|save|safetensors|serializ|pickle|zip|\bdisk\b|\bwrit|fsync|storage",
        None),
    # the step over sequences padded to 256
    "tickets": (
        STEP + r"|bert|attention|encoder|\bpad",
        STEP + r"|bert|attention|encoder|linear|libtorch|aten",
        None),
    # Arrow to Python lists to tensors, in the two workers
    "ecg": (
        r"worker|getitem|to_batch|collate|to_py|pylist|arrow|as_tensor|format|datasets|extract|decod|\blist",
        r"worker|getitem|to_batch|collate|to_py|pylist|arrow|as_tensor|format|datasets|extract|decod|\blist",
        None),
    # ColorJitter over the full photo before the crop
    "reef": (
        r"^(?!.*(network|disk|decode)).*(worker|jitter|hue|saturat|contrast|brightness|colou?r|transform|augment|\bmap|PIL|blend|convert|enhance)",
        r"^(?!.*(network|disk|decode)).*(worker|jitter|hue|saturat|contrast|brightness|colou?r|transform|augment|\bmap|PIL|imaging|blend|convert|enhance)",
        None),
    # trap: the step limits, workers bring nothing
    "herbarium": (
        STEP + r"|resnet|conv|train_one_epoch|bn\b|batch_?norm",
        STEP + r"|resnet|conv|train_one_epoch|batch_?norm|libtorch|aten",
        None),
    # gradients all-reduced after every micro-batch
    "clicks": (
        r"all_?-?reduce|gloo|communicat|network|socket|\btcp\b|loopback|ddp|DistributedDataParallel|reducer|collective|gradient|peer|(another|other|slower) (rank|process)|between (the )?ranks|synchroni|no_sync",
        r"all_?-?reduce|gloo|communicat|network|socket|\btcp\b|loopback|ddp|DistributedDataParallel|reducer|collective|gradient|peer|(another|other|slower) (rank|process)|between (the )?ranks|synchroni|no_sync|epoll|recv|send",
        None),
    # average precision over all scores so far, at each step
    "scans": (
        r"metric|precision|curve|\bsort|score|evaluat|\.compute\b|compute\(",
        r"metric|precision|curve|\bsort|argsort|score|evaluat|\.compute\b|compute\(|_binary_clf",
        None),
}

NEEDS = {
    "fares": "numpy",
    "tiles": "numpy",
    "brewery": "lightning",
    "ledger": "accelerate",
    "tickets": "transformers",
    "ecg": "datasets",
    "reef": "webdataset",
    "herbarium": "timm",
    "clicks": "torch",
    "scans": "torchmetrics",
}

TITLE = "millers"

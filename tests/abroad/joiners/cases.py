"""What a right answer about each program names. (words with the loaders' hooks, words without, advice)"""

TYRES = (r"^(?!.*\bCPU\b).*(network|socket|sock_|\btcp|http|urlopen|urllib|url|recv|readinto|remote|latency|store|archive|do_GET|"
         r"keep_archive|getitem|TreadScans|worker)")
METERS = (r"worker|strptime|by_format|features|Readings|json|pars|datetime|\bdate|timestamp|clock|"
          r"IterableDataset|dataset|loader process")
MUSEUM = (r"restart|persistent|\bstart|fork|spawn|popen|_launch|clone|copy_page|creation|creating|new process|process(es)? birth|"
          r"epoch|_get_iterator|DataLoaderIter\.__init__|DataLoader\.__iter__|shutdown|shutting|\bexit")
WINE = (r"trac(e|ing)|retrac|tf\.function|func_graph|FuncGraph|graph (build|construct|creat)|autograph|polymorphic|concrete|"
        r"train_step|\bstep\b|converted_call|compil|learning_rate|GradientTape|tape")
TELESCOPE = (r"checkpoint|\bsav|save_|_save|h5|zip|crc32|\bwrit|\bdisk|\bfile|storage|I/O|callback|on_train_batch_end|serial|"
             r"IOStore|keeper")
HOSPITAL = (r"batch_of|collat|as_tensor|to_pylist|pylist|\blist|format|arrow|datasets|arrow_dataset|fetch|getitem|"
            r"dataload|loading|\bloader|conver|extract|SingleProcess|Dataset")
INBOX = (r"hand-?(ed |ing )?over|handoff|pickl|serial|\bpipe|queue|recv|\bsend|_send|sendback|wait_result_broken|transfer|\bcopy|copying|"
         r"\bIPC|dumps|\bloads|Connection|ExecutorManager|reduction|bytes|\bsize|big result|result size|memmove|page.?fault")
CHESS = (r"main_line|\brank.?1|local_rank.?1|slow(er|est)? (rank|peer)|straggl|imbalanc|uneven|unequal|getitem|Games|pars|fetch|"
         r"dataset|\bdata ?load|dataload|\bloader|loading|annotat|comments")

CASES = {
    "tyres": (TYRES, TYRES, r"num_workers.*2 *(->|=>|to|→) *([3-9]|[1-9][0-9])"),
    "meters": (METERS, METERS + r"|pt_data_worker", None),
    "museum": (MUSEUM, MUSEUM, r"persistent_workers"),
    "wine": (WINE, WINE, None),
    "telescope": (TELESCOPE, TELESCOPE, r"save_freq|checkpoint.*(less often|seldom|rare|fewer|every)"),
    "hospital": (HOSPITAL, HOSPITAL, r"(with|set)_format"),
    "inbox": (INBOX, INBOX, None),
    "chess": (CHESS, CHESS, None),
}

NEEDS = {"museum": "lightning", "wine": "tensorflow", "telescope": "keras", "hospital": "datasets"}

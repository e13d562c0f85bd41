"""The cases of the group 'coopers': what the line that names the limit should hold (re.search with re.I)."""
TITLE = "coopers"

CASES = {
    # gzip chunks of an HDF5 file, each inflated anew for one row: the workers' CPU in h5py / zlib
    "soil_spectra": (r"worker|getitem|SoilSpectra|h5py|hdf5|h5|inflate|zlib|gzip|decompress|reflectance|chunk",
                     r"worker|getitem|SoilSpectra|h5py|hdf5|h5|inflate|zlib|gzip|decompress|reflectance|chunk", None),
    # one slow request a parcel, two workers wait for the answers
    "parcel_scans": (r"network|http|socket|request|getresponse|readinto|recv|service|tracking|remote|server|getitem|Parcels",
                     r"network|http|socket|request|getresponse|readinto|recv|service|tracking|remote|server|getitem|Parcels",
                     r"num_workers\D*2\s*(->|to)\s*([3-9]|\d\d)"),
    # four workers write to one SQLite file: its write lock, held through each commit's fsync
    "seat_bookings": (r"\block|sqlite|database|commit|transaction|fsync|fdatasync|disk|claim|getitem|Flights",
                      r"\block|sqlite|database|commit|transaction|fsync|fdatasync|disk|claim|getitem|Flights", None),
    # a few items with 1600 times the text; the workers' CPU
    "court_filings": (r"worker|getitem|\bFilings\b|finditer|crc32|straggl|skew|uneven|unequal|slow items?|long items?|few items?",
                      r"worker|getitem|\bFilings\b|finditer|crc32|straggl|skew|uneven|unequal|slow items?|long items?|few items?",
                      None),
    # workers are started again each epoch and read the timetable first
    "bus_delays": (r"start|init|spawn|fork|persistent|epoch|prepare|open_timetable|timetable|csv",
                   r"start|init|spawn|fork|persistent|epoch|prepare|open_timetable|timetable|csv",
                   r"persistent_workers"),
    # TRAP (more workers bring nothing): the trainer's own transforms of the batch
    "leaf_photos": (r"trainer|training|main|augment|transform|blur|rotat|grid_sample|affine|jitter|hue|hsv|step|Compose|consumer",
                    r"trainer|training|main|augment|transform|blur|rotat|grid_sample|affine|jitter|hue|hsv|step|Compose|consumer",
                    None),
    # evaluation after every second batch, in the event loop's thread
    "river_gauges": (None, r"evaluat|validation|held.?out|trainer|main|event loop", None),
    # three threads, one GIL: pure Python in the pool's threads
    "recipe_tags": (r"GIL|interpreter lock|recipes\b|threads\b|pool|findall|crc32",
                    r"GIL|interpreter lock|recipes\b|threads\b|pool|findall|crc32", None),
    # JSON parsed again in each epoch by the one goroutine that feeds
    "tide_readings.go": (None, r"json|unmarshal|parse|decod|feed|producer", None),
    # fsync of a checkpoint after each batch
    "kiln_logs.cc": (None, r"fsync|disk|save|checkpoint|storage|block I/?O|file ?system|ext4|jbd2", None),
}

TRAPS = {"leaf_photos"}

NEEDS = {"soil_spectra": "h5py", "parcel_scans": "torch", "seat_bookings": "torch", "court_filings": "torch",
         "bus_delays": "torch", "leaf_photos": "torchvision", "river_gauges": "aiohttp", "recipe_tags": "numpy"}

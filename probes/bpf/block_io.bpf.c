/* Block requests: size, latency, order on the device, by operator.
 *
 * The owner of a request is the thread that starts it (block_io_start; before Linux 6.5 the thread
 * that gets the request, block_getrq): at dispatch or completion the current task is anybody.
 * Requests of others, write-back and read-ahead by kernel threads are owned by process 0, "system".
 * Requests and bytes count at the start, so that a completion that is never seen loses a latency
 * and nothing else; what is merged into the request later is added when it completes. */
#include "probes/bpf/operator.bpf.h"

char LICENSE[] SEC("license") = "GPL";

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct gendisk {
  int major;
  int first_minor;
};
struct block_device {
  struct gendisk* bd_disk;
};
struct request_queue {
  struct gendisk* disk; /* 5.15 */
};
struct bvec_iter {
  __u64 bi_sector;
  unsigned int bi_size;
};
struct bio {
  struct block_device* bi_bdev;
  unsigned int bi_opf;
  struct bvec_iter bi_iter;
};
struct request {
  struct request_queue* q;
  unsigned int cmd_flags;
  unsigned int __data_len;
  __u64 __sector;
  struct bio* bio;
};
struct request___old { /* before 5.17 */
  struct gendisk* rq_disk;
};
#pragma clang attribute pop

enum hr_direction {
  HR_DIRECTION_READ = 0,
  HR_DIRECTION_WRITE,
  HR_DIRECTION_FLUSH,
  HR_DIRECTION_DISCARD,
  HR_DIRECTION_OTHER,
};

struct request_key {
  __u32 tgid, word;
  __u32 device; /* major << 20 | minor of the whole disk */
  enum hr_direction direction;
};
struct request_value {
  __u64 requests_count, bytes;
  __u64 merged_count;     /* became parts of other requests */
  __u64 sequential_count; /* begin where the one before on the device ended */
  __u64 completions_count, latency_ns;
};
HR_OUTPUT(requests, request_key, request_value, 4096);
__u64 lost_requests_count = 0;

/* Requests without a completion yet, by address of the request, or of the bio where only that is
 * known at the start. */
struct pending_key {
  __u64 address;
};
struct pending_value {
  __u64 start_ns;
  __u64 start_bytes, done_bytes;
  struct request_key owner;
  __u32 device; /* as in owner: user space reads no structures in structures */
  __u32 reserved;
};
HR_OUTPUT(pending, pending_key, pending_value, 8192);
__u64 lost_completions_count = 0;

struct bucket_key {
  __u32 tgid, word;
  __u32 device;
  enum hr_direction direction;
  __u32 bucket; /* floor(log2) */
};
struct bucket_value {
  __u64 latency_count, size_count; /* by ns; by bytes */
};
HR_OUTPUT(buckets, bucket_key, bucket_value, 8192);
__u64 lost_histogram_entries_count = 0;

/* Size and latency of one request together: which sizes are slow. */
struct pair_key {
  __u32 tgid, word;
  __u32 device;
  enum hr_direction direction;
  __u32 size_bucket, latency_bucket; /* floor(log2) of bytes and of ns */
};
struct pair_value {
  __u64 requests_count;
};
HR_OUTPUT(pairs, pair_key, pair_value, 8192);

struct device_key {
  __u32 device;
};
struct device_value {
  __u64 end_sector; /* after the last request started */
  __u64 in_flight_count;
  __u64 absorbed_bytes; /* counted by requests that were merged into others still in flight */
};
HR_OUTPUT(devices, device_key, device_value, 256);

struct gap_key {
  __u32 device;
  enum hr_direction direction;
  __u32 bucket; /* floor(log2(bytes from the end of one request to the start of the next)) */
};
struct gap_value {
  __u64 gaps_count;
};
HR_OUTPUT(gaps, gap_key, gap_value, 2048);

static __always_inline enum hr_direction direction_of(unsigned int flags) {
  switch (flags & 0xff) {
    case 0:
      return HR_DIRECTION_READ;
    case 1:
    case 7:
      return HR_DIRECTION_WRITE;
    case 2:
      return HR_DIRECTION_FLUSH;
    case 3:
    case 5:
    case 9:
      return HR_DIRECTION_DISCARD;
  }
  return HR_DIRECTION_OTHER;
}

static __always_inline __u32 device_of(struct gendisk* disk) {
  if (!disk) return 0;
  return (__u32)BPF_CORE_READ(disk, major) << 20 | (__u32)BPF_CORE_READ(disk, first_minor);
}

static __always_inline struct bucket_value* bucket_of(struct request_key* owner, __u64 amount) {
  struct bucket_key key = {};
  key.tgid = owner->tgid;
  key.word = owner->word;
  key.device = owner->device;
  key.direction = owner->direction;
  key.bucket = hr_log2(amount);
  struct bucket_value zero = {};
  return HR_VALUE(&buckets, &key, &zero, &lost_histogram_entries_count);
}

static __noinline int count_pair(struct request_key* owner, __u64 bytes, __u64 latency_ns) {
  struct pair_key key = {};
  key.tgid = owner->tgid;
  key.word = owner->word;
  key.device = owner->device;
  key.direction = owner->direction;
  key.size_bucket = hr_log2(bytes);
  key.latency_bucket = hr_log2(latency_ns);
  struct pair_value zero = {};
  struct pair_value* value = HR_VALUE(&pairs, &key, &zero, &lost_histogram_entries_count);
  if (value) __sync_fetch_and_add(&value->requests_count, 1);
  return 0;
}

/* Where the request lies relative to the one before it on the device. */
static __always_inline void place(struct device_value* device, struct request_key* owner,
                                  struct request_value* request, __u64 sector, __u64 bytes) {
  __u64 end = __sync_lock_test_and_set(&device->end_sector, sector + (bytes >> 9));
  if (!end) return; /* the first of all */
  if (end == sector) __sync_fetch_and_add(&request->sequential_count, 1);
  __u64 gap = (sector > end ? sector - end : end - sector) << 9;
  struct gap_key key = {.device = owner->device, .direction = owner->direction};
  key.bucket = hr_log2(gap);
  struct gap_value zero = {};
  struct gap_value* value = HR_VALUE(&gaps, &key, &zero, &lost_histogram_entries_count);
  if (value) __sync_fetch_and_add(&value->gaps_count, 1);
}

static __noinline int started(__u64 address, __u32 device, unsigned int flags, __u64 sector,
                              __u64 bytes) {
  struct pending_value start = {};
  start.start_ns = bpf_ktime_get_ns();
  start.start_bytes = bytes;
  start.owner.device = start.device = device;
  start.owner.direction = direction_of(flags);
  start.owner.word = hr_word_here(&start.owner.tgid) & 0xffff;
  struct request_value zero = {};
  struct request_value* value = HR_VALUE(&requests, &start.owner, &zero, &lost_requests_count);
  if (!value) return 0;
  __sync_fetch_and_add(&value->requests_count, 1);
  __sync_fetch_and_add(&value->bytes, bytes);

  struct device_key device_key = {.device = device};
  struct device_value none = {};
  struct device_value* state =
      HR_VALUE(&devices, &device_key, &none, &lost_histogram_entries_count);
  struct pending_key key = {.address = address};
  if (bpf_map_lookup_elem(&pending, &key)) { /* the end of the one before was not seen */
    __sync_fetch_and_add(&lost_completions_count, 1);
    if (state) __sync_fetch_and_add(&state->in_flight_count, -1);
  }
  if (bpf_map_update_elem(&pending, &key, &start, BPF_ANY)) {
    __sync_fetch_and_add(&lost_completions_count, 1);
  } else if (state) {
    __sync_fetch_and_add(&state->in_flight_count, 1);
  }
  if (state && bytes) place(state, &start.owner, value, sector, bytes); /* a flush has no place */
  return 0;
}

SEC("tp_btf/block_io_start")
int BPF_PROG(on_io_start, struct request* request) {
  struct gendisk* disk = bpf_core_field_exists(struct request_queue, disk)
                             ? BPF_CORE_READ(request, q, disk)
                             : BPF_CORE_READ((struct request___old*)request, rq_disk);
  return started((__u64)request, device_of(disk), request->cmd_flags, request->__sector,
                 request->__data_len);
}

SEC("tp_btf/block_getrq")
int BPF_PROG(on_getrq, struct bio* bio) {
  return started((__u64)bio, device_of(BPF_CORE_READ(bio, bi_bdev, bd_disk)),
                 BPF_CORE_READ(bio, bi_opf), BPF_CORE_READ(bio, bi_iter.bi_sector),
                 BPF_CORE_READ(bio, bi_iter.bi_size));
}

/* A request becomes a part of another, which grows by its bytes: these stay with its owner. */
SEC("tp_btf/block_rq_merge")
int BPF_PROG(on_merge, struct request* request) {
  struct pending_key key = {.address = (__u64)request};
  struct pending_value* start = bpf_map_lookup_elem(&pending, &key);
  if (!start) {
    key.address = (__u64)request->bio;
    if (!key.address) return 0;
    start = bpf_map_lookup_elem(&pending, &key);
    if (!start) return 0;
  }
  struct pending_value merged = *start;
  bpf_map_delete_elem(&pending, &key);
  struct request_value* value = bpf_map_lookup_elem(&requests, &merged.owner);
  if (value) __sync_fetch_and_add(&value->merged_count, 1);
  struct device_key device = {.device = merged.owner.device};
  struct device_value* state = bpf_map_lookup_elem(&devices, &device);
  if (!state) return 0;
  __sync_fetch_and_add(&state->in_flight_count, -1);
  __sync_fetch_and_add(&state->absorbed_bytes, merged.start_bytes);
  return 0;
}

/* Bytes a completed request counts that nobody has counted yet. */
static __always_inline __u64 growth_of(struct pending_value* done, struct device_value* device) {
  if (done->done_bytes <= done->start_bytes) return 0;
  __u64 growth = done->done_bytes - done->start_bytes;
  __u64 absorbed = device ? device->absorbed_bytes : 0;
  if (!absorbed) return growth;
  if (absorbed > growth) absorbed = growth;
  __sync_fetch_and_add(&device->absorbed_bytes, -absorbed);
  return growth - absorbed;
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_complete, struct request* request, int error, unsigned int bytes) {
  struct pending_key key = {.address = (__u64)request};
  struct pending_value* start = bpf_map_lookup_elem(&pending, &key);
  if (!start) {
    key.address = (__u64)request->bio;
    if (!key.address) return 0;
    start = bpf_map_lookup_elem(&pending, &key);
    if (!start) return 0;
  }
  start->done_bytes += bytes;
  if (bytes < request->__data_len) { /* a part of it; its first bio may be another from now on */
    struct pending_key whole = {.address = (__u64)request};
    if (key.address != whole.address) {
      struct pending_value copy = *start;
      if (!bpf_map_update_elem(&pending, &whole, &copy, BPF_ANY))
        bpf_map_delete_elem(&pending, &key);
    }
    return 0;
  }
  __u64 latency_ns = bpf_ktime_get_ns() - start->start_ns;
  struct pending_value done = *start;
  bpf_map_delete_elem(&pending, &key);
  struct device_key device = {.device = done.owner.device};
  struct device_value* state = bpf_map_lookup_elem(&devices, &device);
  if (state) __sync_fetch_and_add(&state->in_flight_count, -1);
  struct request_value* value = bpf_map_lookup_elem(&requests, &done.owner);
  if (value) {
    __sync_fetch_and_add(&value->completions_count, 1);
    __sync_fetch_and_add(&value->latency_ns, latency_ns);
    __u64 growth = growth_of(&done, state);
    if (growth) __sync_fetch_and_add(&value->bytes, growth);
  }
  struct bucket_value* bucket = bucket_of(&done.owner, latency_ns);
  if (bucket) __sync_fetch_and_add(&bucket->latency_count, 1);
  if (done.done_bytes) {
    bucket = bucket_of(&done.owner, done.done_bytes);
    if (bucket) __sync_fetch_and_add(&bucket->size_count, 1);
    count_pair(&done.owner, done.done_bytes, latency_ns);
  }
  return 0;
}

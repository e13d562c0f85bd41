/* io_uring requests: count, bytes, time from submission to completion, by the operator that
 * submitted. The completion may be seen by any thread, so the owner is kept by request. */
#include "probes/bpf/operator.bpf.h"

char LICENSE[] SEC("license") = "GPL";

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct io_kiocb {
  __u8 opcode;
};
struct io_uring_cqe {
  __s32 res;
  __u32 flags;
};
#pragma clang attribute pop

enum { kMore = 2 /* IORING_CQE_F_MORE: the request lives on */ };

struct request_key {
  __u32 tgid, word;
  __u32 opcode;
};
struct request_value {
  __u64 submitted_count, completed_count, failed_count;
  __u64 bytes, latency_ns; /* bytes: sum of results, which are bytes for reads and writes */
};
HR_OUTPUT(requests, request_key, request_value, 4096);
__u64 lost_requests_count = 0;

struct bucket_key {
  __u32 tgid, word;
  __u32 opcode;
  __u32 bucket; /* floor(log2(ns)) */
};
struct bucket_value {
  __u64 latency_count;
};
HR_OUTPUT(buckets, bucket_key, bucket_value, 8192);
__u64 lost_histogram_entries_count = 0;

struct pending_value {
  __u64 start_ns;
  struct request_key owner;
};
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 16384);
  __type(key, __u64); /* the request */
  __type(value, struct pending_value);
} pending SEC(".maps");
/* Requests submitted again without a completion seen, or that found no room. */
__u64 lost_completions_count = 0;

static __noinline int submitted(struct io_kiocb* request) {
  struct pending_value start = {};
  start.owner.word = hr_word_here(&start.owner.tgid) & 0xffff;
  if (!start.owner.tgid) return 0;
  start.owner.opcode = BPF_CORE_READ(request, opcode);
  start.start_ns = bpf_ktime_get_ns();
  struct request_value zero = {};
  struct request_value* value = HR_VALUE(&requests, &start.owner, &zero, &lost_requests_count);
  if (!value) return 0;
  __sync_fetch_and_add(&value->submitted_count, 1);
  __u64 address = (__u64)request;
  if (bpf_map_update_elem(&pending, &address, &start, BPF_NOEXIST)) {
    __sync_fetch_and_add(&lost_completions_count, 1);
    bpf_map_update_elem(&pending, &address, &start, BPF_EXIST);
  }
  return 0;
}

SEC("tp_btf/io_uring_submit_req")
int BPF_PROG(on_submit_req, struct io_kiocb* request) { return submitted(request); }

/* Its name before Linux 6.3. */
SEC("tp_btf/io_uring_submit_sqe")
int BPF_PROG(on_submit_sqe, struct io_kiocb* request) { return submitted(request); }

static __noinline int completed(__u64 address, __s32 result, __u32 flags) {
  struct pending_value* found = bpf_map_lookup_elem(&pending, &address);
  if (!found) return 0;
  struct pending_value start = *found;
  int more = flags & kMore;
  if (!more) bpf_map_delete_elem(&pending, &address);
  struct request_value* value = bpf_map_lookup_elem(&requests, &start.owner);
  if (!value) return 0;
  if (result > 0) __sync_fetch_and_add(&value->bytes, result);
  if (result < 0) __sync_fetch_and_add(&value->failed_count, 1);
  if (more) return 0;
  __u64 latency_ns = bpf_ktime_get_ns() - start.start_ns;
  __sync_fetch_and_add(&value->completed_count, 1);
  __sync_fetch_and_add(&value->latency_ns, latency_ns);
  struct bucket_key key = {};
  key.tgid = start.owner.tgid;
  key.word = start.owner.word;
  key.opcode = start.owner.opcode;
  key.bucket = hr_log2(latency_ns);
  struct bucket_value zero = {};
  struct bucket_value* bucket = HR_VALUE(&buckets, &key, &zero, &lost_histogram_entries_count);
  if (bucket) __sync_fetch_and_add(&bucket->latency_count, 1);
  return 0;
}

/* The hook's arguments in newer kernels ... */
SEC("tp_btf/io_uring_complete")
int BPF_PROG(on_complete_cqe, void* ring, void* request, struct io_uring_cqe* cqe) {
  return completed((__u64)request, BPF_CORE_READ(cqe, res), BPF_CORE_READ(cqe, flags));
}

/* ... and in older ones. */
SEC("tp_btf/io_uring_complete")
int BPF_PROG(on_complete_values, void* ring, void* request, __u64 user_data, int result,
             unsigned int flags) {
  return completed((__u64)request, result, flags);
}

/* TCP connections that operators open: how many, how long until the other side answered, how many
 * failed. A reader that opens one for every request pays a round trip, and often a TLS handshake,
 * each time. The kernel says "SYN sent" in the context of the thread that connects; the answer
 * comes in another, so the socket remembers whose it is. */
#include "probes/bpf/operator.bpf.h"

char LICENSE[] SEC("license") = "GPL";

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct sock {
  __u16 sk_protocol;
};
#pragma clang attribute pop

enum { kTcp = 6, kEstablished = 1, kSynSent = 2 }; /* linux/in.h, net/tcp_states.h */

enum hr_connect {
  HR_CONNECT_ESTABLISHED = 0,
  HR_CONNECT_FAILED, /* refused, timed out or given up */
};

struct connect_key {
  __u32 tgid, word;
  enum hr_connect outcome;
};
struct connect_value {
  __u64 connects_count, connect_ns;
};
HR_OUTPUT(connects, connect_key, connect_value, 2048);
__u64 lost_connects_count = 0;

struct attempt {
  __u64 start_ns;
  __u32 tgid, word;
};
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 8192);
  __type(key, __u64); /* address of the socket in the kernel */
  __type(value, struct attempt);
} attempts SEC(".maps");

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(on_state, const struct sock* socket, int old_state, int new_state) {
  if (new_state != kSynSent && old_state != kSynSent) return 0;
  if (socket->sk_protocol != kTcp) return 0;
  __u64 address = (__u64)socket;
  if (new_state == kSynSent) {
    struct attempt begun = {};
    begun.word = hr_word_here(&begun.tgid) & 0xffff;
    if (!begun.tgid) return 0;
    begun.start_ns = bpf_ktime_get_ns();
    bpf_map_update_elem(&attempts, &address, &begun, BPF_ANY);
    return 0;
  }
  struct attempt* begun = bpf_map_lookup_elem(&attempts, &address);
  if (!begun) return 0;
  struct connect_key key = {};
  key.tgid = begun->tgid;
  key.word = begun->word;
  key.outcome = new_state == kEstablished ? HR_CONNECT_ESTABLISHED : HR_CONNECT_FAILED;
  __u64 ns = bpf_ktime_get_ns() - begun->start_ns;
  bpf_map_delete_elem(&attempts, &address);
  struct connect_value zero = {};
  struct connect_value* value = HR_VALUE(&connects, &key, &zero, &lost_connects_count);
  if (!value) return 0;
  __sync_fetch_and_add(&value->connects_count, 1);
  __sync_fetch_and_add(&value->connect_ns, ns);
  return 0;
}

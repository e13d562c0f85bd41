/* Bytes through sockets, by socket and operator: what the send and receive calls of the socket
 * layer returned, counted in the caller's context. TCP: retransmissions, receive windows closed
 * because the reader is slow, smoothed round trip. And the machine's softirq time by kind. */
#include "probes/bpf/operator.bpf.h"

char LICENSE[] SEC("license") = "GPL";

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct in6_addr {
  union {
    __u8 u6_addr8[16];
  } in6_u;
};
struct sock_common {
  union {
    struct {
      __u32 skc_daddr, skc_rcv_saddr;
    };
  };
  union {
    struct {
      __u16 skc_dport, skc_num;
    };
  };
  unsigned short skc_family;
  struct in6_addr skc_v6_daddr, skc_v6_rcv_saddr;
};
struct socket {
  struct file* file;
};
struct sock {
  struct sock_common __sk_common;
  struct socket* sk_socket;
  __u16 sk_protocol;
};
struct inet_connection_sock {
  struct {
    __u16 rcv_mss;
  } icsk_ack;
};
struct tcp_sock {
  __u32 copied_seq, rcv_nxt, rcv_wnd, rcv_wup;
  __u32 srtt_us; /* eighths of us */
};
#pragma clang attribute pop

enum { kIp4 = 2, kIp6 = 10, kTcp = 6, kPeek = 2 /* MSG_PEEK */ };

struct socket_key {
  __u32 tgid, word;
  __u32 family; /* 0: one of those there was no room for */
  __u16 local_port, remote_port;
  __u64 local_low, local_high; /* address */
  __u64 remote_low, remote_high;
};
struct socket_value {
  __u64 received_bytes, sent_bytes;
  __u64 receives_count, sends_count;
  __u64 retransmits_count, window_stalls_count;
  __u64 round_trip_us; /* as of the last call; 0: not known */
};
HR_OUTPUT(sockets, socket_key, socket_value, 4096);
__u64 lost_sockets_count = 0;

/* Who used a TCP socket last, for what happens to it in nobody's context. */
struct owner {
  struct socket_key key;
  __u32 stalled;
  __u32 copied_seq; /* where there is no hook for received bytes */
  __u32 known;
};
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 4096);
  __type(key, __u64); /* struct sock */
  __type(value, struct owner);
} owners SEC(".maps");

static __always_inline void fill(struct socket_key* key, struct sock* sk) {
  key->family = BPF_CORE_READ(sk, __sk_common.skc_family);
  if (key->family == kIp4) {
    key->local_low = BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr);
    key->remote_low = BPF_CORE_READ(sk, __sk_common.skc_daddr);
  } else if (key->family == kIp6) {
    bpf_core_read(&key->local_low, 16, &sk->__sk_common.skc_v6_rcv_saddr);
    bpf_core_read(&key->remote_low, 16, &sk->__sk_common.skc_v6_daddr);
  } else {
    return; /* one entry: programs make AF_UNIX sockets by the thousand, one per message */
  }
  key->local_port = BPF_CORE_READ(sk, __sk_common.skc_num);
  key->remote_port = __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport));
}

static __always_inline struct socket_value* value_of(struct socket_key* key) {
  struct socket_value zero = {};
  struct socket_value* value = bpf_map_lookup_elem(&sockets, key);
  if (value) return value;
  bpf_map_update_elem(&sockets, key, &zero, BPF_NOEXIST);
  value = bpf_map_lookup_elem(&sockets, key);
  if (value) return value;
  __sync_fetch_and_add(&lost_sockets_count, 1);
  return 0;
}

static __always_inline bool is_tcp(struct sock* sk, __u32 family) {
  return (family == kIp4 || family == kIp6) && BPF_CORE_READ(sk, sk_protocol) == kTcp;
}

/* The value for the current thread's use of `sk`; `*owner` is null unless it is TCP. */
static __always_inline struct socket_value* used(struct sock* sk, struct owner** owner) {
  struct socket_key key = {};
  *owner = 0;
  key.word = hr_word_here(&key.tgid) & 0xffff;
  if (!key.tgid) return 0;
  fill(&key, sk);
  struct socket_value* value = value_of(&key);
  if (!value || !is_tcp(sk, key.family)) return value;
  __u64 address = (__u64)sk;
  struct owner* known = bpf_map_lookup_elem(&owners, &address);
  if (known) {
    known->key = key;
  } else {
    struct owner fresh = {};
    fresh.key = key;
    bpf_map_update_elem(&owners, &address, &fresh, BPF_ANY);
    known = bpf_map_lookup_elem(&owners, &address);
  }
  *owner = known;
  return value;
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(on_send, struct sock* sk, int result, int flags) {
  if (!hr_current_target()) return 0;
  struct owner* owner;
  struct socket_value* value = used(sk, &owner);
  if (!value) return 0;
  __sync_fetch_and_add(&value->sends_count, 1);
  if (result > 0) __sync_fetch_and_add(&value->sent_bytes, result);
  if (owner) value->round_trip_us = BPF_CORE_READ((struct tcp_sock*)sk, srtt_us) >> 3;
  return 0;
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(on_receive, struct sock* sk, int result, int flags) {
  if (flags & kPeek || !hr_current_target()) return 0;
  struct owner* owner;
  struct socket_value* value = used(sk, &owner);
  if (!value) return 0;
  __sync_fetch_and_add(&value->receives_count, 1);
  if (result > 0) __sync_fetch_and_add(&value->received_bytes, result);
  if (owner) value->round_trip_us = BPF_CORE_READ((struct tcp_sock*)sk, srtt_us) >> 3;
  return 0;
}

/* The window we still offer, before the bytes just taken reopen it. */
static __always_inline void look_at_window(struct sock* sk, struct owner* owner,
                                           struct socket_value* value) {
  struct tcp_sock* tcp = (struct tcp_sock*)sk;
  __s32 window =
      BPF_CORE_READ(tcp, rcv_wup) + BPF_CORE_READ(tcp, rcv_wnd) - BPF_CORE_READ(tcp, rcv_nxt);
  __s32 segment = BPF_CORE_READ((struct inet_connection_sock*)sk, icsk_ack.rcv_mss);
  if (window >= segment) {
    owner->stalled = 0;
  } else if (!owner->stalled) {
    owner->stalled = 1;
    __sync_fetch_and_add(&value->window_stalls_count, 1);
  }
}

/* Runs in the reader's context, for each piece it takes out of the receive queue. */
SEC("tp_btf/tcp_rcv_space_adjust")
int BPF_PROG(on_taken, struct sock* sk) {
  if (!hr_current_target()) return 0;
  struct owner* owner;
  struct socket_value* value = used(sk, &owner);
  if (value && owner) look_at_window(sk, owner, value);
  return 0;
}

/* The same before Linux 6.3, where bytes received are those by which the stream moves on: from
 * where it was when it was connected, or, if that was before us, when it is first seen. */
SEC("tp_btf/tcp_rcv_space_adjust")
int BPF_PROG(on_taken_bytes, struct sock* sk) {
  if (!hr_current_target()) return 0;
  struct owner* owner;
  struct socket_value* value = used(sk, &owner);
  if (!value || !owner) return 0;
  __u32 copied = BPF_CORE_READ((struct tcp_sock*)sk, copied_seq);
  if (owner->known) __sync_fetch_and_add(&value->received_bytes, copied - owner->copied_seq);
  owner->known = 1;
  owner->copied_seq = copied;
  value->round_trip_us = BPF_CORE_READ((struct tcp_sock*)sk, srtt_us) >> 3;
  look_at_window(sk, owner, value);
  return 0;
}

enum { kEstablished = 1 };

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(on_connected, struct sock* sk, int before, int after) {
  if (after != kEstablished || BPF_CORE_READ(sk, sk_protocol) != kTcp) return 0;
  struct owner fresh = {};
  fresh.copied_seq = BPF_CORE_READ((struct tcp_sock*)sk, copied_seq);
  fresh.known = 1;
  __u64 address = (__u64)sk;
  bpf_map_update_elem(&owners, &address, &fresh, BPF_ANY);
  return 0;
}

SEC("tp_btf/tcp_retransmit_skb")
int BPF_PROG(on_retransmit, struct sock* sk) {
  __u64 address = (__u64)sk;
  struct owner* owner = bpf_map_lookup_elem(&owners, &address);
  if (!owner || !owner->key.tgid) return 0;
  struct socket_key key = owner->key;
  struct socket_value* value = value_of(&key);
  if (value) __sync_fetch_and_add(&value->retransmits_count, 1);
  return 0;
}

/* The memory of a closed socket may become another one. */
SEC("tp_btf/tcp_destroy_sock")
int BPF_PROG(on_destroy, struct sock* sk) {
  __u64 address = (__u64)sk;
  bpf_map_delete_elem(&owners, &address);
  return 0;
}

enum hr_softirq {
  HR_SOFTIRQ_HI = 0,
  HR_SOFTIRQ_TIMER,
  HR_SOFTIRQ_NET_TX,
  HR_SOFTIRQ_NET_RX,
  HR_SOFTIRQ_BLOCK,
  HR_SOFTIRQ_IRQ_POLL,
  HR_SOFTIRQ_TASKLET,
  HR_SOFTIRQ_SCHED,
  HR_SOFTIRQ_HRTIMER,
  HR_SOFTIRQ_RCU,
};
struct softirq_key {
  enum hr_softirq kind;
};
struct softirq_value {
  __u64 runs_count, run_ns;
};
HR_OUTPUT(softirqs, softirq_key, softirq_value, 16);
__u64 lost_softirqs_count = 0;

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, __u64);
} softirq_since SEC(".maps");

SEC("tp_btf/softirq_entry")
int BPF_PROG(on_softirq_entry, unsigned int kind) {
  __u32 zero = 0;
  __u64* since = bpf_map_lookup_elem(&softirq_since, &zero);
  if (since) *since = bpf_ktime_get_ns();
  return 0;
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(on_softirq_exit, unsigned int kind) {
  __u32 zero = 0;
  __u64* since = bpf_map_lookup_elem(&softirq_since, &zero);
  if (!since || !*since) return 0;
  __u64 ns = bpf_ktime_get_ns() - *since;
  *since = 0;
  struct softirq_key key = {.kind = kind};
  struct softirq_value none = {};
  struct softirq_value* value = HR_VALUE(&softirqs, &key, &none, &lost_softirqs_count);
  if (!value) return 0;
  __sync_fetch_and_add(&value->runs_count, 1);
  __sync_fetch_and_add(&value->run_ns, ns);
  return 0;
}

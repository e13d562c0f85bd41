/* Hardware counters of the target's threads. The counters belong to the CPUs.
 *
 * What a thread counted is exact: the counters are read at every switch of threads, and credited to
 * the group of threads that ran. How its operators share in it is sampled: when a counter
 * overflows, the operator that the thread is in then gets the events that the overflow stands for.
 * Operators can change any number of times between two switches, so reading the counters there and
 * looking at the operator would give all to the one that happens to wait.
 *
 * Per CPU there are HR_COUNTER_STRIDE places in `events`: the base (always counting), then the sets
 * that user space lets count in turns. */
#include "probes/bpf/operator.bpf.h"

char LICENSE[] SEC("license") = "GPL";

enum {
  HR_COUNTER_STRIDE = 32,
  HR_COUNTER_BASE = 2,
  HR_COUNTER_SET = 5, /* most events of a set */
  HR_COUNTER_SETS = 6,
};

/* How many events each set has: one byte each, the first set's lowest. */
const volatile __u64 set_sizes = 0;

struct {
  __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
  __uint(max_entries, 1024);
  __type(key, __u32);
  __type(value, __u32);
} events SEC(".maps");

/* The set that counts now, plus 1; 0: none. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, __u32);
} active_set SEC(".maps");

struct counter_key {
  __u32 tgid;
  char comm[16];
  __u32 first;
};
struct counter_value {
  __u64 first_count, second_count; /* of the base */
  __u64 enabled_ns, running_ns;
  __u64 slices_count;
};
HR_OUTPUT(base_counters, counter_key, counter_value, 4096);
__u64 lost_base_counts_count = 0;

struct set_key {
  __u32 tgid;
  char comm[16];
  __u32 first;
  __u32 set;
};
struct set_value {
  __u64 count_0, count_1, count_2, count_3, count_4;
  __u64 running_ns;
  __u64 first_count, second_count; /* of the base, in the same time ... */
  __u64 base_running_ns;           /* ... and how long it counted */
};
HR_OUTPUT(set_counters, set_key, set_value, 8192);
__u64 lost_set_counts_count = 0;

/* Overflows, by what the thread did. */
struct sample_key {
  __u32 tgid;
  __u32 word; /* the operator's part of it */
  char comm[16];
  __u32 first;
  __u32 set;   /* that counted, plus 1; 0: none */
  __u32 event; /* place in the base, or HR_COUNTER_BASE + place in the set */
};
struct sample_value {
  __u64 samples_count;
  __u64 events_count; /* that they stand for */
};
HR_OUTPUT(samples, sample_key, sample_value, 16384);
__u64 lost_samples_count = 0;

/* Times on a CPU whose begin was not seen: what they counted is credited to nobody. */
__u64 lost_time_slices_count = 0;
/* Readings that the kernel refused. */
__u64 lost_counter_readings_count = 0;

struct reading {
  __u64 base[HR_COUNTER_BASE];
  __u64 enabled_ns, running_ns;
  __u64 extra[HR_COUNTER_SET];
  __u64 extra_running_ns;
  __u32 set; /* plus 1; 0: none */
  __u32 ok;
};
struct cpu_state {
  __u32 tid;  /* whose counts they are since `last`; 0: not a target's */
  __u32 busy; /* the switch program runs: an overflow that interrupts it leaves this to it */
  __u32 seen; /* a switch of a target's thread was seen on this CPU */
  __u32 reserved;
  struct reading last, now;
};
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct cpu_state);
} cpus SEC(".maps");

static __noinline int read_counters(struct cpu_state* s) {
  if (!s) return 0;
  struct reading* r = &s->now;
  __u32 place = bpf_get_smp_processor_id() * HR_COUNTER_STRIDE;
  struct bpf_perf_event_value value = {};
  r->ok = 0;
#pragma unroll
  for (__u32 i = 0; i < HR_COUNTER_BASE; i++) {
    if (bpf_perf_event_read_value(&events, place + i, &value, sizeof value)) {
      __sync_fetch_and_add(&lost_counter_readings_count, 1);
      return 0;
    }
    r->base[i] = value.counter;
    if (i == 0) {
      r->enabled_ns = value.enabled;
      r->running_ns = value.running;
    }
  }
  r->ok = 1;
  r->set = 0;
  __u32 zero = 0;
  __u32* active = bpf_map_lookup_elem(&active_set, &zero);
  if (!active || *active == 0 || *active > HR_COUNTER_SETS) return 0;
  __u32 set = *active - 1;
  __u32 size = set_sizes >> (8 * set) & 0xff;
  if (size == 0) return 0;
  place += HR_COUNTER_BASE + set * HR_COUNTER_SET;
  for (__u32 i = 0; i < HR_COUNTER_SET; i++) {
    if (i >= size) break;
    if (bpf_perf_event_read_value(&events, place + i, &value, sizeof value)) return 0;
    r->extra[i] = value.counter;
    if (i == 0) r->extra_running_ns = value.running;
  }
  r->set = set + 1;
  return 0;
}

static __noinline int credit(struct cpu_state* s, struct hr_thread_state* t) {
  if (!s || !t) return 0;
  struct set_key key = {};
  key.tgid = t->tgid;
  __builtin_memcpy(key.comm, t->comm, sizeof key.comm);
  key.first = t->first;
  struct counter_value zero = {};
  struct counter_value* value =
      HR_VALUE(&base_counters, (struct counter_key*)&key, &zero, &lost_base_counts_count);
  if (value) {
    __sync_fetch_and_add(&value->first_count, s->now.base[0] - s->last.base[0]);
    __sync_fetch_and_add(&value->second_count, s->now.base[1] - s->last.base[1]);
    __sync_fetch_and_add(&value->enabled_ns, s->now.enabled_ns - s->last.enabled_ns);
    __sync_fetch_and_add(&value->running_ns, s->now.running_ns - s->last.running_ns);
    __sync_fetch_and_add(&value->slices_count, 1);
  }
  if (!s->now.set || s->now.set != s->last.set) return 0;
  if (s->now.extra_running_ns == s->last.extra_running_ns) return 0;
  key.set = s->now.set - 1;
  struct set_value none = {};
  struct set_value* extra = HR_VALUE(&set_counters, &key, &none, &lost_set_counts_count);
  if (!extra) return 0;
  __sync_fetch_and_add(&extra->count_0, s->now.extra[0] - s->last.extra[0]);
  __sync_fetch_and_add(&extra->count_1, s->now.extra[1] - s->last.extra[1]);
  __sync_fetch_and_add(&extra->count_2, s->now.extra[2] - s->last.extra[2]);
  __sync_fetch_and_add(&extra->count_3, s->now.extra[3] - s->last.extra[3]);
  __sync_fetch_and_add(&extra->count_4, s->now.extra[4] - s->last.extra[4]);
  __sync_fetch_and_add(&extra->running_ns, s->now.extra_running_ns - s->last.extra_running_ns);
  __sync_fetch_and_add(&extra->first_count, s->now.base[0] - s->last.base[0]);
  __sync_fetch_and_add(&extra->second_count, s->now.base[1] - s->last.base[1]);
  __sync_fetch_and_add(&extra->base_running_ns, s->now.running_ns - s->last.running_ns);
  return 0;
}

/* Credits what was counted since the last time to the current thread, if it ran all that time. */
static __always_inline void settle(struct cpu_state* s, struct hr_thread_state* t, __u32 tid) {
  if (s->tid == tid && s->now.ok && s->last.ok)
    credit(s, t);
  else if (s->seen) /* before that, threads run that were there before us */
    __sync_fetch_and_add(&lost_time_slices_count, 1);
}

static __always_inline struct cpu_state* here(void) {
  __u32 zero = 0;
  return bpf_map_lookup_elem(&cpus, &zero);
}

/* struct bpf_perf_event_data: behind the user's registers. */
struct sample_context {
#if defined(__TARGET_ARCH_x86)
  __u64 registers[21];
#else
  __u64 registers[34];
#endif
  __u64 sample_period;
};

/* The cookie of the attachment is the event's place, as in sample_key. */
SEC("perf_event")
int counter_overflow(struct sample_context* context) {
  struct task_struct* task = bpf_get_current_task_btf();
  struct hr_thread_state* t = hr_target_thread(task);
  if (!t) return 0;
  struct sample_key key = {};
  key.tgid = t->tgid;
  key.word = hr_current_word(t) & 0xffff;
  __builtin_memcpy(key.comm, t->comm, sizeof key.comm);
  key.first = t->first;
  key.event = bpf_get_attach_cookie(context);
  __u32 place = 0;
  __u32* active = bpf_map_lookup_elem(&active_set, &place);
  if (active) key.set = *active;
  struct sample_value zero = {};
  struct sample_value* value = HR_VALUE(&samples, &key, &zero, &lost_samples_count);
  if (value) {
    __sync_fetch_and_add(&value->samples_count, 1);
    __sync_fetch_and_add(&value->events_count, context->sample_period);
  }
  if (key.event != 0) return 0;
  /* A thread may run for long without a switch. */
  struct cpu_state* s = here();
  if (!s || s->busy) return 0;
  read_counters(s);
  settle(s, t, task->pid);
  s->tid = task->pid;
  s->last = s->now;
  return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(counter_switch, bool preempt, struct task_struct* prev, struct task_struct* next) {
  struct hr_thread_state* t = hr_target_thread(prev);
  __u32 next_tid = 0;
  if (hr_target_of(next->tgid)) next_tid = next->pid;
  if (!t && !next_tid) return 0;
  struct cpu_state* s = here();
  if (!s) return 0;
  *(volatile __u32*)&s->busy = 1;
  read_counters(s);
  if (t) {
    hr_take_name(t, prev); /* it may have given itself another one */
    settle(s, t, prev->pid);
  }
  s->seen = 1;
  s->tid = next_tid;
  s->last = s->now;
  *(volatile __u32*)&s->busy = 0;
  return 0;
}

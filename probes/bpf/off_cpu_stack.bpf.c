// Off-CPU stacks: where the target's threads block. The stack, the operator word and the cause are
// taken when a thread is switched out, and credited with the blocked time when it is switched in.
//
// The cost is bounded by sampling that does not look at the period itself, so that sums stay right:
// a thread that blocks less than once in 10 ms is always taken; of the others one in k, which then
// counts for k, with k such that a CPU takes about 500 stacks a second.
//
// Needs tp_btf sched_switch. Wake-ups are told by the program `offcpu`, if it is loaded: without it
// waiting for a CPU after the wake-up counts as blocked.
#include "probes/bpf/cause.bpf.h"
#include "probes/bpf/stack.bpf.h"

char LICENSE[] SEC("license") = "GPL";

const volatile __u64 rare_ns = 10000000;     // a thread that blocks less often is always taken
const volatile __u64 window_ns = 100000000;  // in which a CPU's switches are counted
const volatile __u32 window_stacks = 50;     // that it may take in a window
const volatile __u32 max_weight = 64;

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 8192);
  __type(key, __u32); /* tid */
  __type(value, struct hr_sleeper);
} sleepers SEC(".maps");
__u64 lost_sleepers_count = 0;

struct hr_pace {
  __u64 window_ns; /* when it began */
  __u32 seen, weight;
};
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct hr_pace);
} paces SEC(".maps");

// One in how many is taken now, from what the last window saw.
static __always_inline __u32 hr_weight(__u64 now) {
  __u32 zero = 0;
  struct hr_pace* pace = bpf_map_lookup_elem(&paces, &zero);
  if (!pace) return 1;
  if (now - pace->window_ns > window_ns) {
    // Two windows later the last one says nothing any more.
    const __u32 seen = now - pace->window_ns < 2 * window_ns ? pace->seen : 0;
    pace->weight = seen / window_stacks + 1;
    if (pace->weight > max_weight) pace->weight = max_weight;
    pace->window_ns = now;
    pace->seen = 0;
  }
  pace->seen++;
  return pace->weight ? pace->weight : 1;
}

static __always_inline void falls_asleep(void* ctx, struct task_struct* task, __u32 tid) {
  struct hr_sleeper* s = bpf_map_lookup_elem(&sleepers, &tid);
  if (!s) {
    const struct hr_sleeper fresh = {};
    bpf_map_update_elem(&sleepers, &tid, &fresh, BPF_NOEXIST);
    s = bpf_map_lookup_elem(&sleepers, &tid);
    if (!s) {
      __sync_fetch_and_add(&lost_sleepers_count, 1);
      return;
    }
  }
  const __u64 now = bpf_ktime_get_ns(), since = now - s->out_ns;
  s->out_ns = now;
  s->begin_ns = 0;
  __u32 weight = 1;
  if (since < rare_ns) {
    weight = hr_weight(now);
    if (weight > 1 && bpf_get_prandom_u32() % weight) return;
  }
  struct hr_thread_state* t = hr_thread(task);
  if (!t) return;
  char comm[HR_STACK_GROUP_BYTES];
  s->weight = weight;
  s->key.tgid = t->tgid;
  s->key.word = hr_current_word(t);
  s->key.cause = cause_of(task);
  s->key.reserved = 0;
  bpf_get_current_comm(comm, sizeof(comm));
  hr_group(s->key.group, comm);
  s->key.stack = hr_store_stack(ctx, t->tgid, 1);
  s->begin_ns = now;
}

static __always_inline void wakes(__u32 tid) {
  struct hr_sleeper* s = bpf_map_lookup_elem(&sleepers, &tid);
  if (!s || !s->begin_ns) return;
  __u64 end = bpf_ktime_get_ns();
  const struct hr_thread_state* t = bpf_map_lookup_elem(&threads, &tid);
  if (t && t->woken_ns > s->begin_ns && t->woken_ns < end) end = t->woken_ns;
  hr_count_stack(&s->key, s->weight, (end - s->begin_ns) * s->weight);
  s->begin_ns = 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(off_cpu_stack, bool preempt, struct task_struct* prev, struct task_struct* next) {
  if (hr_target_of(prev->tgid)) {
    const unsigned int state = task_state(prev);
    __u32 tid = prev->pid;
    if (state & kTaskDead) {
      bpf_map_delete_elem(&sleepers, &tid);
    } else if (!preempt && state != 0) {
      falls_asleep(ctx, prev, tid);
    }
  }
  if (hr_target_of(next->tgid)) wakes(next->pid);
  return 0;
}

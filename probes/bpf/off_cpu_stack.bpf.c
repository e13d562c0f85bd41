// Off-CPU stacks: where the target's threads block. The stack, the operator word and the cause are
// taken when a thread is switched out, and credited with the blocked time when it is switched in.
//
// What is taken is a matter of time, not of the number of switches: of each thread's off-CPU time a
// stack is taken about every quantum_ns, however often it blocks. How long a period will be is not
// known when its stack could be taken; the usual length of the thread's periods stands for it. So a
// period's chance is usual / quantum, whatever its own length turns out to be, and a short one
// counts for quantum / usual: sums stay right. A long one, of more than a quantum, counts once,
// with its stack if it was taken and else without, so that no single period is multiplied to more
// time than there was.
//
// Needs tp_btf sched_switch. Wake-ups, and what a long period without stack was for, are told by
// the program `offcpu`, if it is loaded: without it waiting for a CPU after the wake-up counts as
// blocked.
#include "probes/bpf/cause.bpf.h"
#include "probes/bpf/stack.bpf.h"

char LICENSE[] SEC("license") = "GPL";

const volatile __u32 quantum_ns = 40000000;
const volatile __u32 max_weight = 64;        // that a short period may count for
const volatile __u64 window_ns = 100000000;  // in which a CPU's stacks are counted
const volatile __u32 window_stacks = 10;     // that it may take in a window
__u64 lost_long_periods_count = 0;           // neither a stack nor a cause is known

struct hr_pace {
  __u64 window_ns; /* when it began */
  __u32 chosen, one_in;
};
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct hr_pace);
} paces SEC(".maps");

// One in how many of the chosen ones is taken by this CPU, from what its last window saw: 1 but
// with hundreds of threads.
static __always_inline __u32 one_in_now(__u64 now) {
  __u32 zero = 0;
  struct hr_pace* pace = bpf_map_lookup_elem(&paces, &zero);
  if (!pace) return 1;
  if (now - pace->window_ns > window_ns) {
    // Two windows later the last one says nothing any more.
    const __u32 chosen = now - pace->window_ns < 2 * window_ns ? pace->chosen : 0;
    pace->one_in = chosen / window_stacks + 1;
    if (pace->one_in > max_weight) pace->one_in = max_weight;
    pace->window_ns = now;
    pace->chosen = 0;
  }
  pace->chosen++;
  return pace->one_in ? pace->one_in : 1;
}

// Whether this period's stack is taken. Every period passes by with its usual length, and marks at
// distances of a quantum, a quarter more or less so that no rhythm of the thread's keeps step, say
// which are taken.
static __always_inline bool choose(struct hr_thread_state* t, __u64 now) {
  const __u32 never_more = quantum_ns / 4 * 3;
  __u32 step =
      t->usual_off_ns > quantum_ns / max_weight ? t->usual_off_ns : quantum_ns / max_weight;
  // One that has not blocked for a quantum, or never, is always taken.
  if (!t->blocked_ns || now - t->blocked_ns >= quantum_ns || step > never_more) {
    step = quantum_ns;
  } else {
    if (t->stack_due_ns > step) {
      t->stack_due_ns -= step;
      return false;
    }
    t->stack_due_ns += never_more + bpf_get_prandom_u32() % (quantum_ns / 2 + 1) - step;
  }
  const __u32 one_in = one_in_now(now);
  if (one_in > 1 && bpf_get_prandom_u32() % one_in) return false;
  t->stack_weight = (quantum_ns / 16 * one_in) / (step / 256 + 1);
  return true;
}

static __always_inline void falls_asleep(void* ctx, struct hr_thread_state* t,
                                         struct task_struct* task, unsigned int state) {
  const __u64 now = bpf_ktime_get_ns();
  t->stack_weight = 0;
  const bool take = choose(t, now);
  t->blocked_ns = now;
  t->blocked = 1;
  if (!take) return;
  t->stack_word = hr_current_word(t);
  t->stack_cause = cause_of(task, state);
  t->stack = hr_store_stack(ctx, t->tgid, 1);
}

static __always_inline void wakes(struct hr_thread_state* t) {
  if (!t->blocked) return;
  t->blocked = 0;
  __u64 end = bpf_ktime_get_ns();
  if (t->woken_ns > t->blocked_ns && t->woken_ns < end) end = t->woken_ns;
  const __u64 ns = end - t->blocked_ns;
  // A sleep of minutes is forgotten after some short periods.
  const __u32 recent = ns < 2 * quantum_ns ? (__u32)ns : 2 * quantum_ns;
  t->usual_off_ns = t->usual_off_ns ? t->usual_off_ns / 4 * 3 + recent / 4 : recent;
  if (!t->stack_weight && ns <= quantum_ns) return;
  struct hr_stack_key key = {};
  key.tgid = t->tgid;
  hr_group(key.group, t->comm);
  if (t->stack_weight) {
    key.stack = t->stack;
    key.word = t->stack_word;
    key.cause = t->stack_cause;
    // Known only now: a wait with a time-out that ran out.
    if (key.cause == HR_CAUSE_LOCK && t->cause == HR_CAUSE_SLEEP) key.cause = HR_CAUSE_SLEEP;
  } else if (t->off_since_ns) {
    key.word = t->word;
    key.cause = t->cause;
  } else {
    __sync_fetch_and_add(&lost_long_periods_count, 1);
    return;
  }
  if (ns > quantum_ns) {
    hr_count_stack(&key, 1, ns);
  } else {
    const __u64 samples = (t->stack_weight + 8) / 16;
    hr_count_stack(&key, samples ? samples : 1, ns * t->stack_weight / 16);
  }
}

SEC("tp_btf/sched_switch")
int BPF_PROG(off_cpu_stack, bool preempt, struct task_struct* prev, struct task_struct* next) {
  struct hr_thread_state* t = hr_target_thread(prev);
  if (t && !preempt) {
    const unsigned int state = task_state(prev);
    if (state != 0 && !(state & kTaskDead)) falls_asleep(ctx, t, prev, state);
  }
  t = hr_target_thread(next);
  if (t) wakes(t);
  return 0;
}

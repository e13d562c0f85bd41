/* Which processes are measured, which threads they have, and what each thread is doing: shared by
 * all our programs. The maps `targets` and `threads` exist once per collector; every object's own
 * declaration of them is replaced by those when it is loaded.
 *
 * A thread's current operator is the word `current` of its slot in the operator accounts
 * (probes/account/account.h), in the memory of the measured process. It can be read only in the
 * thread's own context; when the thread is switched out, the word is kept in its thread_state for
 * those who meet it later: wake-ups, completions, the next switch.
 *
 * The slot is found here, not by user space: once per thread the thread's number is looked up in
 * the slots, and every later read checks that the slot still carries it. So a thread is attributed
 * from its first event on. */
#ifndef HEADRACE_PROBES_BPF_OPERATOR_BPF_H_
#define HEADRACE_PROBES_BPF_OPERATOR_BPF_H_

/* libbpf's headers need the kernel's types first. */
// clang-format off
#include "probes/bpf/kernel_types.bpf.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
// clang-format on

/* For functions of states and numbers that several ways lead to: the verifier walks a global one
 * once a program, and any other anew each time, which was most of what loading all programs took.
 * Global ones may have pointers where there is HR_LOOP; before, they are called or inlined. The
 * verifier wants a number back from each global one. */
#ifdef HR_LOOP
#define HR_VERIFIED_ONCE_OR_CALLED __noinline
#define HR_VERIFIED_ONCE_OR_INLINED __noinline
#else
#define HR_VERIFIED_ONCE_OR_CALLED static __noinline
#define HR_VERIFIED_ONCE_OR_INLINED static __always_inline
#endif

/* Parts of the accounts' ABI, version 1; followed.cc asserts that they agree with account.h. */
enum {
  HR_ABI_NUM_SLOTS = 88, /* offset of header.num_slots */
  HR_ABI_SLOTS = 344064, /* offset of the first slot */
  HR_ABI_SLOT_SIZE = 36864,
  HR_ABI_MAX_SLOTS = 512,
  HR_YOUNG_NS = 50000000,
  HR_SEARCH_NS = 20000000,
};
struct hr_slot_head {
  __u32 sequence, used, tid, stage, current;
};

struct hr_target {
  __u64 segment_address; /* user address of the process's accounts; 0: it has none (known) */
};
/* Why a thread is off the CPU; found by cause.bpf.h. */
enum hr_cause {
  HR_CAUSE_OTHER = 0,
  HR_CAUSE_STORAGE,
  HR_CAUSE_NETWORK,
  HR_CAUSE_LOCK,
  HR_CAUSE_SLEEP,
  HR_CAUSE_PIPE,
  HR_CAUSE_POLL,
  HR_CAUSE_CHILD,
  HR_CAUSE_FAULT,
  HR_CAUSE_PREEMPTED, /* never blocked: runnable from the switch-out on */
  HR_CAUSE_START,     /* a new thread before its first instruction */
  HR_CAUSE_STOPPED,   /* by SIGSTOP, job control or a debugger, whatever it was doing */
};

/* Periods off the CPU of one thread, of one kind, that are not yet in the map of all threads. */
struct hr_credit {
  __u32 word;
  enum hr_cause cause;
  __u64 blocked_ns, blocked_count;
  __u64 runnable_ns, runnable_count;
  __u64 timed_out_ns; /* of blocked_ns: in polls that their time limits ended */
};
enum { HR_CREDITS = 4, HR_QUEUE_BUCKETS = 48 };

/* An entry of a hash map begins 56 bytes before its value: the value's first eight bytes share a
 * cache line with the key, and the next lines are as marked. CPUs that wake a thread read its
 * numbers, and read and write the line of off_since_ns; the rest stays with the CPU that it runs
 * on. */
struct hr_thread_state {
  __u32 tgid; /* 0: it is being made */
  __u32 tid;
  /* Three lines. Sums stand before the begin of what is not yet in them: a reader who copies both
   * while they change gets too little, never too much. */
  struct hr_credit credits[HR_CREDITS];
  /* A line. */
  __u64 off_since_ns;  /* of a period that is not yet credited; 0: there is none */
  __u64 woken_ns;      /* 0: blocked; else runnable since then */
  __u64 on_cpu_ns;     /* sum up to on_since_ns */
  __u64 on_since_ns;   /* 0: not seen being switched in */
  __u32 word;          /* at the last switch-out */
  enum hr_cause cause; /* of the present off-CPU period */
  __u32 timed_out;     /* 1: a poll that its time limit ended */
  __u32 blocked;       /* 1: the period since blocked_ns goes on */
  __u64 wakeups_since_ns;
  __u32 wakeups_seen;   /* since then */
  __u32 wakeups_one_in; /* that is noted; 0: not known yet, all are */
  /* A line. */
  __u64 blocked_ns; /* last switch-out that blocked; 0: none yet */
  __u64 ran_ns;     /* the kernel's own sums at the last switch-out: of time on a CPU ... */
  __u64 delayed_ns; /* ... and of waiting for one */
  __u64 voluntary_count, involuntary_count; /* switches-out */
  __u64 slot_address; /* user address of the thread's slot; 0: not found yet */
  __u32 own_tid;      /* in the process's own pid namespace: what it writes into its slot */
  __u32 usual_off_ns; /* length of its periods, the latest weigh most; 0: not known */
  __u32 stack_due_ns; /* time of usual periods until the next stack */
  __u32 stack_weight; /* how much the period's stack counts, in 16ths; 0: none was taken */
  /* A line. */
  char name[16];     /* as the thread has it */
  char off_comm[16]; /* comm and first as they were when off_since_ns began: an exec changes both */
  char credit_comm[16]; /* how the thread was called in the periods of its credits */
  __u32 off_first, credit_first;
  __u64 credited_ns; /* when its credits were last moved to the map */
  /* The rest. */
  char comm[16];     /* digits at its end replaced by one 0: the same for all threads of a group */
  __u64 seen_ns;     /* when the thread was first seen */
  __u64 searched_ns; /* when its slot was last looked for ... */
  __u64 search_ns;   /* ... and how long that took */
  __u64 stack;
  __u32 stack_word; /* what the thread was doing then */
  enum hr_cause stack_cause;
  __u32 first;                         /* 1: the first thread of its process */
  __u32 queue_waits[HR_QUEUE_BUCKETS]; /* for a CPU, by floor(log2(ns)) */
};
_Static_assert((sizeof(struct hr_thread_state) + 56) % 64 == 0, "entries begin with lines");

/* Begins a period off the CPU. */
static __always_inline void hr_goes_off(struct hr_thread_state* t, __u64 now) {
  t->off_since_ns = now;
  t->off_first = t->first;
  __builtin_memcpy(t->off_comm, t->comm, sizeof t->off_comm);
}

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 16384);
  __type(key, __u32); /* tgid in the initial pid namespace */
  __type(value, struct hr_target);
} targets SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 8192);
  __type(key, __u32); /* tid in the initial pid namespace */
  __type(value, struct hr_thread_state);
} threads SEC(".maps");

/* Not 0 where a target's number may be: tells almost every other process apart in one load, where
 * `targets` takes a hash. Marks stay when a target ends; they only cost the hash then. */
enum {
  HR_TARGET_MARKS = 4096,
  HR_TARGET_HERE = 1,
  HR_TARGET_ACCOUNTS = 2, /* or-ed to it: it may have accounts */
};
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, HR_TARGET_MARKS);
  __type(key, __u32); /* tgid modulo HR_TARGET_MARKS */
  __type(value, __u8);
} target_marks SEC(".maps");

/* A thread's first state; too large for a program's stack. */
const volatile struct hr_thread_state hr_fresh_thread = {};

/* Threads and processes there was no room for; reported as losses like every lost_*_count. */
__u64 lost_threads_count = 0;

static __always_inline __u8 hr_target_mark(__u32 tgid) {
  __u32 index = tgid % HR_TARGET_MARKS;
  const __u8* mark = bpf_map_lookup_elem(&target_marks, &index);
  return mark ? *mark : 0;
}
static __always_inline bool hr_may_be_target(__u32 tgid) { return hr_target_mark(tgid) != 0; }

static __always_inline struct hr_target* hr_target_of(__u32 tgid) {
  return hr_may_be_target(tgid) ? bpf_map_lookup_elem(&targets, &tgid) : 0;
}

/* The target that the current thread belongs to, or null. */
static __always_inline struct hr_target* hr_current_target(void) {
  return hr_target_of(bpf_get_current_pid_tgid() >> 32);
}

/* A task's number in its own pid namespace. */
static __always_inline __u32 hr_own_number(struct task_struct* task) {
  struct pid* pid = BPF_CORE_READ(task, thread_pid);
  if (!pid) return 0;
  unsigned int level = BPF_CORE_READ(pid, level);
  if (level > 31) return 0;
  struct upid number = {};
  bpf_core_read(&number.nr, sizeof number.nr,
                (void*)((char*)&pid->numbers[0] + level * bpf_core_type_size(struct upid)));
  return number.nr;
}

/* Hides from the compiler what it knows of a number: it would make branches of what is computed.
 * (Masks of 0 or -1 are no way either: recent verifiers walk both.) */
#define HR_OPAQUE(number) asm volatile("" : "+r"(number))

/* Makes the group's name, `comm`, of the thread's own. Pools number their threads without end; the
 * name of the group is what figures are counted under, so that a map's size bounds groups, not
 * threads. Without branches on the name's characters: verifying all ways through them was most of
 * the time that loading takes. */
HR_VERIFIED_ONCE_OR_CALLED int hr_name_group(struct hr_thread_state* t) {
  if (!t) return 0;
  char now[16] = {};
  __builtin_memcpy(now, t->name, sizeof now);
  __u64 in_end = 1, others = 0, digits_at_end = 0; /* a bit each */
#pragma unroll
  for (int i = 15; i >= 0; i--) {
    __u64 c = (__u8)now[i];
    HR_OPAQUE(c);
    __u64 above_zero = (c - '0') & 0xff;
    HR_OPAQUE(above_zero);
    __u64 digit = (above_zero - 10) >> 63;
    __u64 other = (0 - c) >> 63 & ~digit; /* neither a digit nor the NUL behind the name */
    others |= other;
    in_end &= ~other;
    digits_at_end |= (in_end & digit) << i;
  }
  digits_at_end *= others; /* a name of digits alone stays */
#pragma unroll
  for (int i = 0; i < 16; i++) {
    __u64 goes = digits_at_end >> i & 1;
    __u64 first = goes & ~(i > 0 ? digits_at_end >> (i - 1) : 0);
    HR_OPAQUE(goes);
    HR_OPAQUE(first);
    now[i] = (__u64)(__u8)now[i] * (1 - goes) + '0' * first;
  }
  __builtin_memcpy(t->comm, now, sizeof now);
  return 0;
}

/* Takes over the thread's present name. */
static __always_inline void hr_take_name(struct hr_thread_state* t, struct task_struct* task) {
  const __u64 *present = (const __u64*)task->comm, *known = (const __u64*)t->name;
  if (present[0] == known[0] && present[1] == known[1]) return;
  bpf_core_read(t->name, sizeof t->name, &task->comm);
  hr_name_group(t);
}

/* Here and below `task` is a pointer the verifier knows, an argument of the hook or
 * bpf_get_current_task_btf(): its members are plain loads.
 *
 * The state of a target's thread, made at first sight; null if there is no room (counted). */
static __always_inline struct hr_thread_state* hr_thread(struct task_struct* task) {
  __u32 tid = task->pid;
  struct hr_thread_state* t = bpf_map_lookup_elem(&threads, &tid);
  if (t) return t;
  bpf_map_update_elem(&threads, &tid, (const void*)&hr_fresh_thread, BPF_NOEXIST);
  t = bpf_map_lookup_elem(&threads, &tid);
  if (!t) {
    __sync_fetch_and_add(&lost_threads_count, 1);
    return 0;
  }
  t->tid = tid;
  t->own_tid = hr_own_number(task);
  t->first = tid == (__u32)task->tgid;
  hr_take_name(t, task);
  t->tgid = task->tgid;
  return t;
}

/* The same of a thread that may be nobody's target: null then too. */
static __always_inline struct hr_thread_state* hr_target_thread(struct task_struct* task) {
  __u32 tgid = task->tgid, tid = task->pid;
  if (!hr_may_be_target(tgid)) return 0;
  struct hr_thread_state* t = bpf_map_lookup_elem(&threads, &tid);
  if (t && t->tgid == tgid) return t;
  return bpf_map_lookup_elem(&targets, &tgid) ? hr_thread(task) : 0;
}

struct hr_search {
  __u64 segment_address, found;
  __u32 own_tid;
};

/* Whether slot `i` carries the thread's number; says where it is then. For bpf_loop: 1 ends it. */
static long hr_try_slot(__u32 i, struct hr_search* search) {
  __u64 address = search->segment_address + HR_ABI_SLOTS + (__u64)i * HR_ABI_SLOT_SIZE;
  struct hr_slot_head head;
  if (bpf_probe_read_user(&head, sizeof head, (void*)address)) return 0;
  if (!head.used || head.tid != search->own_tid) return 0;
  search->found = address;
  return 1;
}

/* The user address of the slot that carries `own_tid`, or 0. In the context of that process.
 * Global, so that the verifier walks the loop once a program, not once for each way that leads
 * here. HR_LOOP (Linux 5.17): it walks the body alone, which makes loading a program 10 ms shorter
 * than 512 times the body does. */
__noinline __u64 hr_find_slot(__u64 segment_address, __u32 own_tid) {
  __u32 num_slots = 0;
  if (bpf_probe_read_user(&num_slots, sizeof num_slots,
                          (void*)(segment_address + HR_ABI_NUM_SLOTS)))
    return 0;
  if (num_slots > HR_ABI_MAX_SLOTS) num_slots = HR_ABI_MAX_SLOTS;
  struct hr_search search = {.segment_address = segment_address, .own_tid = own_tid};
#ifdef HR_LOOP
  bpf_loop(num_slots, hr_try_slot, &search, 0);
#else
  for (__u32 i = 0; i < HR_ABI_MAX_SLOTS; i++) {
    if (i >= num_slots || hr_try_slot(i, &search)) break;
  }
#endif
  return search.found;
}

/* What the current thread, whose state `t` is, is doing now: bits 0-15 operator + 1 (0: none),
 * 16-17 HR_BUSY or a wait, 20-31 resource + 1. 0 without accounts. May be called only in its
 * context. */
HR_VERIFIED_ONCE_OR_INLINED __u32 hr_current_word(struct hr_thread_state* t) {
  if (!t) return 0;
  struct hr_slot_head head;
  if (t->slot_address) {
    if (!bpf_probe_read_user(&head, sizeof head, (void*)t->slot_address) && head.used &&
        head.tid == t->own_tid)
      return head.current;
    t->slot_address = 0;
    t->seen_ns = 0; /* it left its stage, and may join another: search as for a new thread */
  }
  __u32 tgid = t->tgid;
  if (!(hr_target_mark(tgid) & HR_TARGET_ACCOUNTS)) return 0;
  struct hr_target* target = bpf_map_lookup_elem(&targets, &tgid);
  if (!target || !target->segment_address) return 0;
  /* A new thread is looked for every time, so that its first operator is seen. One that has no slot
   * after a while may never enter an operator: the longer it had none, the rarer it is looked for,
   * and never for more than a 256th of the time; but a search that was interrupted for long puts
   * the next off by HR_SEARCH_NS at most. */
  __u64 now = bpf_ktime_get_ns();
  if (!t->seen_ns) t->seen_ns = now;
  __u64 age = now - t->seen_ns, pause = t->search_ns << 8;
  if (pause < age >> 6) pause = age >> 6;
  if (pause > HR_SEARCH_NS) pause = HR_SEARCH_NS;
  if (age > HR_YOUNG_NS && now - t->searched_ns < pause) return 0;
  t->slot_address = hr_find_slot(target->segment_address, t->own_tid);
  t->searched_ns = bpf_ktime_get_ns();
  t->search_ns = t->searched_ns - now;
  if (!t->slot_address) return 0;
  if (bpf_probe_read_user(&head, sizeof head, (void*)t->slot_address)) return 0;
  return head.current;
}

/* The word of the current thread if it is a target's, made known at first sight. `*tgid` is 0 when
 * it is not a target's. */
static __always_inline __u32 hr_word_here(__u32* tgid) {
  *tgid = 0;
  struct hr_thread_state* t = hr_target_thread(bpf_get_current_task_btf());
  if (!t) return 0;
  *tgid = t->tgid;
  return hr_current_word(t);
}

/* floor(log2(v)); 0 for 0 and 1. */
static __always_inline __u32 hr_log2(__u64 v) {
  __u32 r = 0;
  if (v >> 32) v >>= 32, r += 32;
  if (v >> 16) v >>= 16, r += 16;
  if (v >> 8) v >>= 8, r += 8;
  if (v >> 4) v >>= 4, r += 4;
  if (v >> 2) v >>= 2, r += 2;
  if (v >> 1) r += 1;
  return r;
}

/* The value of `key` in an output map, made of zeros at first; null if there is no room, which adds
 * to `*lost`. Members are added to with __sync_fetch_and_add. */
#define HR_VALUE(map, key, zero, lost)                        \
  ({                                                          \
    void* value_ = bpf_map_lookup_elem((map), (key));         \
    if (!value_) {                                            \
      bpf_map_update_elem((map), (key), (zero), BPF_NOEXIST); \
      value_ = bpf_map_lookup_elem((map), (key));             \
      if (!value_) __sync_fetch_and_add((lost), 1);           \
    }                                                         \
    value_;                                                   \
  })

/* Declares the output map `name` of struct key_type -> struct value_type. Its members are read by
 * name (program.h): members of the key are dimensions, members of the value are metrics. */
#define HR_OUTPUT(name, key_type, value_type, entries) \
  struct {                                             \
    __uint(type, BPF_MAP_TYPE_HASH);                   \
    __uint(max_entries, entries);                      \
    __type(key, struct key_type);                      \
    __type(value, struct value_type);                  \
  } name SEC(".maps")

#endif /* HEADRACE_PROBES_BPF_OPERATOR_BPF_H_ */

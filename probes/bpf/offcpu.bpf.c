/* Time off the CPU of the target's threads, by operator, cause, and what the operator was doing;
 * time on it by thread; how long ready threads waited for a CPU; who woke whom.
 *
 * A period begins at the switch-out, where the thread is still current: its operator word and the
 * cause are read there and kept. It ends blocked at the wake-up, runnable at the switch-in, where
 * both parts are credited to the kept word. A period still open is added by user space (offcpu.cc),
 * which finds it in `threads`. */
#include "probes/bpf/operator.bpf.h"

char LICENSE[] SEC("license") = "GPL";

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
};

enum { kTaskDead = 0x80, kExiting = 0x4 /* PF_EXITING */ };
enum { kSocket = 0140000, kPipe = 0010000, kRegular = 0100000, kFormat = 0170000 };
enum { kFamilyUnix = 1 };

struct off_key {
  __u32 tgid;
  __u32 word;
  enum hr_cause cause;
  char comm[16]; /* of the thread */
};
struct off_value {
  __u64 blocked_ns, blocked_count;
  __u64 runnable_ns, runnable_count;
};
HR_OUTPUT(off_cpu, off_key, off_value, 16384);
__u64 lost_off_cpu_periods_count = 0;

struct thread_key {
  __u32 tgid;
  char comm[16];
};
struct thread_value {
  __u64 on_cpu_ns; /* of ended threads; living ones carry theirs in `threads` */
  __u64 voluntary_count, involuntary_count;
};
HR_OUTPUT(thread_times, thread_key, thread_value, 8192);
__u64 lost_thread_times_count = 0;

struct queue_key {
  __u32 tgid;
  __u32 bucket; /* floor(log2(ns)) */
};
struct queue_value {
  __u64 waits_count;
};
HR_OUTPUT(run_queue, queue_key, queue_value, 8192);
__u64 lost_run_queue_waits_count = 0;

struct wakeup_key {
  __u32 waker_tgid, tgid;
  enum hr_cause cause;
  char waker_comm[16];
  char comm[16];
};
struct wakeup_value {
  __u64 wakeups_count;
};
HR_OUTPUT(wakeups, wakeup_key, wakeup_value, 8192);
__u64 lost_wakeups_count = 0;

struct sock_common___family {
  unsigned short skc_family;
} __attribute__((preserve_access_index));
struct sock___family {
  struct sock_common___family __sk_common;
} __attribute__((preserve_access_index));
struct socket___family {
  struct sock___family* sk;
} __attribute__((preserve_access_index));
struct file___private {
  void* private_data;
} __attribute__((preserve_access_index));
struct task_struct___old { /* before 5.14 */
  long state;
} __attribute__((preserve_access_index));

static __always_inline unsigned int task_state(struct task_struct* task) {
  if (bpf_core_field_exists(task->__state)) return BPF_CORE_READ(task, __state);
  return (unsigned int)BPF_CORE_READ((struct task_struct___old*)task, state);
}

/* What a thread blocked in read or write of `fd` waits for. */
static __always_inline enum hr_cause cause_of_file(struct task_struct* task, unsigned int fd) {
  struct files_struct* files = BPF_CORE_READ(task, files);
  struct fdtable* table = files ? BPF_CORE_READ(files, fdt) : 0;
  if (!table || fd >= BPF_CORE_READ(table, max_fds)) return HR_CAUSE_OTHER;
  struct file** list = BPF_CORE_READ(table, fd);
  struct file* file = 0;
  bpf_core_read(&file, sizeof file, list + fd);
  if (!file) return HR_CAUSE_OTHER;
  unsigned short mode = BPF_CORE_READ(file, f_inode, i_mode) & kFormat;
  if (mode == kPipe) return HR_CAUSE_PIPE;
  if (mode == kRegular) return HR_CAUSE_STORAGE;
  if (mode != kSocket) return HR_CAUSE_OTHER;
  struct socket___family* socket = BPF_CORE_READ((struct file___private*)file, private_data);
  unsigned short family = 0;
  if (socket) family = BPF_CORE_READ(socket, sk, __sk_common.skc_family);
  return family == kFamilyUnix ? HR_CAUSE_PIPE : HR_CAUSE_NETWORK;
}

static __always_inline enum hr_cause cause_of_call(struct task_struct* task, int call,
                                                   unsigned int fd) {
#if defined(__TARGET_ARCH_x86)
  switch (call) {
    case 202: /* futex */
    case 449: /* futex_waitv */
    case 220: /* semtimedop */
    case 65:  /* semop */
      return HR_CAUSE_LOCK;
    case 35:  /* nanosleep */
    case 230: /* clock_nanosleep */
      return HR_CAUSE_SLEEP;
    case 7:   /* poll */
    case 23:  /* select */
    case 232: /* epoll_wait */
    case 270: /* pselect6 */
    case 271: /* ppoll */
    case 281: /* epoll_pwait */
    case 441: /* epoll_pwait2 */
      return HR_CAUSE_POLL;
    case 61:  /* wait4 */
    case 247: /* waitid */
      return HR_CAUSE_CHILD;
    case 0:   /* read */
    case 1:   /* write */
    case 19:  /* readv */
    case 20:  /* writev */
    case 40:  /* sendfile */
    case 275: /* splice */
    case 44:  /* sendto */
    case 45:  /* recvfrom */
    case 46:  /* sendmsg */
    case 47:  /* recvmsg */
    case 299: /* recvmmsg */
    case 307: /* sendmmsg */
    case 42:  /* connect */
    case 43:  /* accept */
    case 288: /* accept4 */
      return cause_of_file(task, fd);
    case 17:  /* pread64 */
    case 18:  /* pwrite64 */
    case 295: /* preadv */
    case 296: /* pwritev */
    case 327: /* preadv2 */
    case 328: /* pwritev2 */
    case 74:  /* fsync */
    case 75:  /* fdatasync */
    case 162: /* sync */
    case 277: /* sync_file_range */
    case 306: /* syncfs */
    case 208: /* io_getevents */
    case 333: /* io_pgetevents */
    case 426: /* io_uring_enter */
    case 2:   /* open */
    case 257: /* openat */
    case 78:  /* getdents */
    case 217: /* getdents64 */
    case 4:   /* stat */
    case 5:   /* fstat */
    case 262: /* newfstatat */
    case 332: /* statx */
      return HR_CAUSE_STORAGE;
    case -1:
      return HR_CAUSE_FAULT;
  }
#else
  switch (call) {
    case 98:  /* futex */
    case 449: /* futex_waitv */
    case 192: /* semtimedop */
    case 193: /* semop */
      return HR_CAUSE_LOCK;
    case 101: /* nanosleep */
    case 115: /* clock_nanosleep */
      return HR_CAUSE_SLEEP;
    case 22:  /* epoll_pwait */
    case 72:  /* pselect6 */
    case 73:  /* ppoll */
    case 441: /* epoll_pwait2 */
      return HR_CAUSE_POLL;
    case 260: /* wait4 */
    case 95:  /* waitid */
      return HR_CAUSE_CHILD;
    case 63:  /* read */
    case 64:  /* write */
    case 65:  /* readv */
    case 66:  /* writev */
    case 71:  /* sendfile */
    case 76:  /* splice */
    case 206: /* sendto */
    case 207: /* recvfrom */
    case 211: /* sendmsg */
    case 212: /* recvmsg */
    case 243: /* recvmmsg */
    case 269: /* sendmmsg */
    case 203: /* connect */
    case 202: /* accept */
    case 242: /* accept4 */
      return cause_of_file(task, fd);
    case 67:  /* pread64 */
    case 68:  /* pwrite64 */
    case 69:  /* preadv */
    case 70:  /* pwritev */
    case 286: /* preadv2 */
    case 287: /* pwritev2 */
    case 82:  /* fsync */
    case 83:  /* fdatasync */
    case 81:  /* sync */
    case 84:  /* sync_file_range */
    case 267: /* syncfs */
    case 4:   /* io_getevents */
    case 292: /* io_pgetevents */
    case 426: /* io_uring_enter */
    case 56:  /* openat */
    case 61:  /* getdents64 */
    case 79:  /* newfstatat */
    case 291: /* statx */
      return HR_CAUSE_STORAGE;
    case -1:
      return HR_CAUSE_FAULT;
  }
#endif
  return HR_CAUSE_OTHER;
}

/* Why the thread that is being switched out blocks. */
static __always_inline enum hr_cause cause_of(struct task_struct* task) {
  if (BPF_CORE_READ_BITFIELD_PROBED(task, in_iowait)) return HR_CAUSE_STORAGE;
  struct pt_regs* registers = (struct pt_regs*)bpf_task_pt_regs(bpf_get_current_task_btf());
  if (!registers) return HR_CAUSE_OTHER;
#if defined(__TARGET_ARCH_x86)
  int call = (int)BPF_CORE_READ(registers, orig_ax);
  unsigned int fd = (unsigned int)BPF_CORE_READ(registers, di);
#else
  int call = BPF_CORE_READ((struct pt_regs___arm64*)registers, syscallno);
  unsigned int fd = (unsigned int)BPF_CORE_READ((struct pt_regs___arm64*)registers, orig_x0);
#endif
  return cause_of_call(task, call, fd);
}

static __always_inline void fill_thread_key(struct thread_key* key, struct hr_thread_state* t) {
  key->tgid = t->tgid;
  __builtin_memcpy(key->comm, t->comm, sizeof key->comm);
}

static __always_inline void count_switch(struct hr_thread_state* t, bool voluntary,
                                         __u64 on_cpu_ns) {
  struct thread_key key = {};
  fill_thread_key(&key, t);
  struct thread_value zero = {};
  struct thread_value* value = HR_VALUE(&thread_times, &key, &zero, &lost_thread_times_count);
  if (!value) return;
  if (on_cpu_ns) __sync_fetch_and_add(&value->on_cpu_ns, on_cpu_ns);
  if (voluntary)
    __sync_fetch_and_add(&value->voluntary_count, 1);
  else
    __sync_fetch_and_add(&value->involuntary_count, 1);
}

static __noinline int switched_out(struct task_struct* task, __u64 now, int preempted) {
  struct hr_thread_state* t = hr_thread(task);
  if (!t) return 0;
  unsigned int state = task_state(task);
  if (t->on_since_ns) t->on_cpu_ns += now - t->on_since_ns;
  t->on_since_ns = 0;
  bpf_core_read(&t->comm, sizeof t->comm, &task->comm); /* it may have given itself a name */
  if (state & kTaskDead) {
    count_switch(t, true, t->on_cpu_ns);
    __u32 tid = BPF_CORE_READ(task, pid);
    bpf_map_delete_elem(&threads, &tid);
    return 0;
  }
  t->word = hr_current_word(t);
  int runnable = preempted || state == 0;
  t->cause = runnable ? HR_CAUSE_PREEMPTED : cause_of(task);
  t->woken_ns = runnable ? now : 0;
  t->off_since_ns = now;
  count_switch(t, !runnable, 0);
  return 0;
}

static __noinline int switched_in(struct task_struct* task, __u64 now) {
  struct hr_thread_state* t = hr_thread(task);
  if (!t) return 0;
  t->on_since_ns = now;
  __u64 since = t->off_since_ns;
  if (!since) return 0;
  t->off_since_ns = 0;
  __u64 woken = t->woken_ns ? t->woken_ns : now;
  if (woken < since) woken = since;
  if (woken > now) woken = now;
  struct off_key key = {};
  key.tgid = t->tgid;
  key.word = t->word;
  key.cause = t->cause;
  __builtin_memcpy(key.comm, t->comm, sizeof key.comm);
  struct off_value zero = {};
  struct off_value* value = HR_VALUE(&off_cpu, &key, &zero, &lost_off_cpu_periods_count);
  if (value) {
    if (woken > since) {
      __sync_fetch_and_add(&value->blocked_ns, woken - since);
      __sync_fetch_and_add(&value->blocked_count, 1);
    }
    __sync_fetch_and_add(&value->runnable_ns, now - woken);
    __sync_fetch_and_add(&value->runnable_count, 1);
  }
  struct queue_key queue = {.tgid = t->tgid, .bucket = hr_log2(now - woken)};
  struct queue_value none = {};
  struct queue_value* waits = HR_VALUE(&run_queue, &queue, &none, &lost_run_queue_waits_count);
  if (waits) __sync_fetch_and_add(&waits->waits_count, 1);
  return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct* prev, struct task_struct* next) {
  __u64 now = 0;
  if (hr_target_of(prev->tgid)) {
    now = bpf_ktime_get_ns();
    switched_out(prev, now, preempt);
  }
  if (hr_target_of(next->tgid)) {
    if (!now) now = bpf_ktime_get_ns();
    switched_in(next, now);
  }
  return 0;
}

static __always_inline int woken(struct task_struct* task) {
  if (!hr_target_of(task->tgid)) return 0;
  __u32 tid = task->pid;
  struct hr_thread_state* t = bpf_map_lookup_elem(&threads, &tid);
  if (!t || !t->off_since_ns || t->woken_ns) return 0;
  t->woken_ns = bpf_ktime_get_ns();
  /* The current task is the waker only if it is doing something for itself: a lock, a pipe or a
   * socket it writes, a child it ends. Devices and timers wake from interrupts of anyone. */
  __u32 cause = t->cause;
  if (cause == HR_CAUSE_STORAGE || cause == HR_CAUSE_SLEEP || cause == HR_CAUSE_FAULT ||
      cause == HR_CAUSE_NETWORK || cause == HR_CAUSE_OTHER)
    return 0;
  __u64 id = bpf_get_current_pid_tgid();
  if ((__u32)id == 0 || !hr_target_of(id >> 32)) return 0;
  struct wakeup_key key = {};
  key.waker_tgid = id >> 32;
  key.tgid = t->tgid;
  key.cause = cause;
  bpf_get_current_comm(&key.waker_comm, sizeof key.waker_comm);
  __builtin_memcpy(key.comm, t->comm, sizeof key.comm);
  struct wakeup_value zero = {};
  struct wakeup_value* value = HR_VALUE(&wakeups, &key, &zero, &lost_wakeups_count);
  if (value) __sync_fetch_and_add(&value->wakeups_count, 1);
  return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct* task) { return woken(task); }

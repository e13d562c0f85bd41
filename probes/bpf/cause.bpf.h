/* Why a thread blocks: told at its switch-out, where it is still current, from the kernel's mark
 * for waits on devices, else from the system call it is in and the kind of file it uses. */
#ifndef HEADRACE_PROBES_BPF_CAUSE_BPF_H_
#define HEADRACE_PROBES_BPF_CAUSE_BPF_H_

#include "probes/bpf/operator.bpf.h"

/* Bits of a task's state. */
enum {
  kInterruptible = 1,
  kUninterruptible = 2,
  kStopped = 4, /* by a signal */
  kTraced = 8,  /* by a debugger */
  kTaskDead = 0x80,
};
enum { kSocket = 0140000, kPipe = 0010000, kRegular = 0100000, kFormat = 0170000 };
enum { kFamilyUnix = 1 };

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
  if (bpf_core_field_exists(task->__state)) return task->__state;
  return (unsigned int)BPF_CORE_READ((struct task_struct___old*)task, state);
}

/* What a thread blocked in read or write of `fd` waits for. */
static __always_inline enum hr_cause cause_of_file(struct task_struct* task, unsigned int fd) {
  struct files_struct* files = task->files;
  struct fdtable* table = files ? files->fdt : 0;
  if (!table || fd >= table->max_fds) return HR_CAUSE_OTHER;
  struct file** list = table->fd;
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
    case 72:  /* fcntl, for a lock on a file */
    case 73:  /* flock */
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
    case 25:  /* fcntl, for a lock on a file */
    case 32:  /* flock */
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

/* Why the thread that is being switched out in `state` blocks. A stopped one still has the numbers
 * of the call that it was stopped in. */
static __always_inline enum hr_cause cause_of(struct task_struct* task, unsigned int state) {
  if (state & (kStopped | kTraced)) return HR_CAUSE_STOPPED;
  if (BPF_CORE_READ_BITFIELD(task, in_iowait)) return HR_CAUSE_STORAGE;
  struct pt_regs* registers = (struct pt_regs*)bpf_task_pt_regs(task);
  if (!registers) return HR_CAUSE_OTHER;
#if defined(__TARGET_ARCH_x86)
  int call = (int)registers->orig_ax;
  unsigned int fd = (unsigned int)registers->di;
#else
  struct pt_regs___hr_arm64* saved = (struct pt_regs___hr_arm64*)registers;
  int call = saved->syscallno;
  unsigned int fd = (unsigned int)saved->orig_x0;
#endif
  return cause_of_call(task, call, fd);
}

#endif /* HEADRACE_PROBES_BPF_CAUSE_BPF_H_ */

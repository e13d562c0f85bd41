/* The kernel's structures as far as our programs read them: fields only, without their places. The
 * places are found in the running kernel's BTF when a program is loaded (CO-RE), so that no header
 * of one kernel is in the tree. A name after ___ is another form of the same structure. */
#ifndef HEADRACE_PROBES_BPF_KERNEL_TYPES_BPF_H_
#define HEADRACE_PROBES_BPF_KERNEL_TYPES_BPF_H_

#include <asm/posix_types.h>
#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
  unsigned int inum;
};
struct pid_namespace {
  struct ns_common ns;
};
struct upid {
  int nr;
  struct pid_namespace* ns;
};
struct pid {
  unsigned int level;
  struct upid numbers[1];
};

struct inode {
  unsigned short i_mode;
  unsigned long i_ino;
};
struct file {
  struct inode* f_inode;
};
struct fdtable {
  unsigned int max_fds;
  struct file** fd;
};
struct files_struct {
  struct fdtable* fdt;
};

struct sched_info {
  unsigned long long run_delay;
};
struct sched_entity {
  __u64 sum_exec_runtime;
};
struct task_struct {
  unsigned int __state;
  int pid;
  int tgid;
  unsigned int flags;
  struct task_struct* real_parent;
  struct pid* thread_pid;
  char comm[16];
  unsigned int in_iowait : 1;
  struct files_struct* files;
  struct sched_entity se;
  struct sched_info sched_info;
};

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
  unsigned long di, si, dx, orig_ax, ip, sp, bp;
};
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs___hr_arm64 {
  unsigned long orig_x0;
  int syscallno;
};
#endif

#pragma clang attribute pop

#endif /* HEADRACE_PROBES_BPF_KERNEL_TYPES_BPF_H_ */

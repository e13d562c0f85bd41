/* What the stack programs and their readers share. A stack is stored once, under a hash of its
 * addresses; counts refer to it. Everything comes in two generations: the programs fill one while
 * the other is read a last time and cleared. */
#ifndef HEADRACE_PROBES_BPF_STACK_RECORD_H_
#define HEADRACE_PROBES_BPF_STACK_RECORD_H_
#include <linux/types.h>

enum {
  HR_STACK_KERNEL_FRAMES = 32,
  HR_STACK_USER_FRAMES = 96,
  HR_STACK_TOP_WORDS = 32,    /* of the user stack: shows callers that frame pointers hide */
  HR_STACK_COPY_BYTES = 8192, /* of the user stack, where frame pointers do not lead to its end */
  HR_STACK_REGISTERS = 33,    /* by DWARF number; x86-64 uses 16 of them, AArch64 32 */
  HR_STACK_GROUP_BYTES = 16
};

/* Ids of copied stacks have this bit, hashes do not; 0: the stack is not known. */
#define HR_STACK_COPIED (1ull << 63)

struct hr_stack {
  __u32 kernel_count, user_count; /* frames, innermost first */
  __u64 stack_pointer, frame_pointer;
  __u32 top_count;
  __u32 reserved;
  __u64 top[HR_STACK_TOP_WORDS]; /* at stack_pointer and up */
  __u64 kernel[HR_STACK_KERNEL_FRAMES];
  __u64 user[HR_STACK_USER_FRAMES];
};

struct hr_stack_key {
  __u64 stack; /* hash, id of a copy, or 0 */
  __u32 tgid;
  __u32 word;  /* the account's current word, 0 without accounts */
  __u32 cause; /* off-CPU: why; enum of the program */
  __u32 reserved;
  char group[HR_STACK_GROUP_BYTES]; /* thread name without digits at its end */
};

struct hr_stack_count {
  __u64 samples_count;
  __u64 time_ns;
};

/* A stack too poor in frame pointers, to be unwound from its registers and bytes. */
struct hr_stack_copy {
  __u64 id; /* with HR_STACK_COPIED */
  __u32 tgid;
  __u32 size; /* bytes of `bytes` */
  __u64 pc;
  __u64 registers[HR_STACK_REGISTERS];
  struct hr_stack stack; /* what frame pointers gave */
  unsigned char bytes[HR_STACK_COPY_BYTES];
};

/* Code of a process whose stacks are to be copied when their chain does not end where threads
 * begin: in one of the first num_roots ranges. The others are the program's own code. */
enum { HR_STACK_RANGES = 8 };
struct hr_stack_root {
  __u32 num_roots, one_in;
  struct {
    __u64 begin, end;
  } range[HR_STACK_RANGES]; /* unused ones are empty */
};

#endif

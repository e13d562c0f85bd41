// Captures and counts stacks, for the programs that sample them. A program includes this once.
#pragma once
#include "probes/bpf/operator.bpf.h"
#include "probes/bpf/stack_record.h"

const volatile __u32 with_kernel = 1;  // kernel frames too

// Losses, each a reason why a figure is too small; samples_count is the number of samples in the
// figures.
__u64 samples_count = 0;
__u64 lost_counts_count = 0;  // samples: no room in a counts map
__u64 lost_stacks_count = 0;  // stacks: no room; their samples are counted without a stack
__u64 lost_copies_count = 0;  // copies: no room in the ring; counted with the less complete stack

// Which of the maps are filled: 0 or 1, changed by the reader.
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, __u32);
} generation SEC(".maps");

#define HR_STACKS_MAP(name, key_type, value_type, entries) \
  struct {                                                 \
    __uint(type, BPF_MAP_TYPE_HASH);                       \
    __uint(max_entries, entries);                          \
    __type(key, key_type);                                 \
    __type(value, value_type);                             \
  } name SEC(".maps")

HR_STACKS_MAP(stacks_0, __u64, struct hr_stack, 1024);
HR_STACKS_MAP(stacks_1, __u64, struct hr_stack, 1024);
HR_STACKS_MAP(counts_0, struct hr_stack_key, struct hr_stack_count, 4096);
HR_STACKS_MAP(counts_1, struct hr_stack_key, struct hr_stack_count, 4096);
HR_STACKS_MAP(roots, __u32, struct hr_stack_root, 1024);

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 1 << 20);
} copies SEC(".maps");

#if defined(__TARGET_ARCH_arm64)
struct pt_regs___hr {
  __u64 regs[31], sp, pc;
} __attribute__((preserve_access_index));
#else
struct pt_regs___hr {
  unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs,
      flags, sp, ss;
} __attribute__((preserve_access_index));
#endif

// The user's registers of the current task, by DWARF number.
struct hr_registers {
  __u64 pc, sp, fp;
  __u64 value[HR_STACK_REGISTERS];
};

// Too large for a program's own stack.
struct hr_scratch {
  struct hr_stack stack;
  struct hr_registers registers;
};
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct hr_scratch);
} scratch SEC(".maps");

static __always_inline int hr_user_registers(struct hr_registers* r) {
  struct pt_regs___hr* p = (void*)bpf_task_pt_regs(bpf_get_current_task_btf());
  if (!p) return 0;
#if defined(__TARGET_ARCH_arm64)
#pragma unroll
  for (int i = 0; i < 31; i++) r->value[i] = p->regs[i];
  r->value[31] = r->sp = p->sp;
  r->pc = p->pc;
  r->fp = r->value[29];
#else
  r->value[0] = p->ax;
  r->value[1] = p->dx;
  r->value[2] = p->cx;
  r->value[3] = p->bx;
  r->value[4] = p->si;
  r->value[5] = p->di;
  r->value[6] = r->fp = p->bp;
  r->value[7] = r->sp = p->sp;
  r->value[8] = p->r8;
  r->value[9] = p->r9;
  r->value[10] = p->r10;
  r->value[11] = p->r11;
  r->value[12] = p->r12;
  r->value[13] = p->r13;
  r->value[14] = p->r14;
  r->value[15] = p->r15;
  r->pc = p->ip;
#endif
  return r->pc != 0;
}

static __always_inline __u32 hr_generation(void) {
  __u32 zero = 0;
  const __u32* value = bpf_map_lookup_elem(&generation, &zero);
  return value ? *value & 1 : 0;
}

struct hr_group_name {
  char characters[HR_STACK_GROUP_BYTES];
};

// A thread's name without digits at its end and one separator before them, as ThreadGroupName
// (program.h) does it: one name for all threads of a pool keeps the counts few.
HR_VERIFIED_ONCE_OR_INLINED int hr_group(struct hr_group_name* group,
                                         const struct hr_group_name* name) {
  if (!group || !name) return 0;
  const char* comm = name->characters;
  int end = 0, length = 0;
  for (int i = 0; i < HR_STACK_GROUP_BYTES; i++) {
    const char c = comm[i];
    if (!c) break;
    length = i + 1;
    if (c < '0' || c > '9') end = i + 1;
  }
  if (end > 0 && end < length) {
    const char c = comm[(end - 1) & 15];
    if (c == '-' || c == '_' || c == ':' || c == '/' || c == '#' || c == '.' || c == ' ') end--;
  }
  if (end <= 0) end = length;
  for (int i = 0; i < HR_STACK_GROUP_BYTES; i++) group->characters[i] = i < end ? comm[i] : 0;
  return 0;
}

HR_VERIFIED_ONCE_OR_INLINED __u64 hr_hash(const struct hr_stack* s) {
  if (!s) return 1;
  __u64 hash = 0xcbf29ce484222325ull;
  for (__u32 i = 0; i < HR_STACK_KERNEL_FRAMES; i++) {
    if (i >= s->kernel_count) break;
    hash = (hash ^ s->kernel[i]) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 29;
  }
  for (__u32 i = 0; i < HR_STACK_USER_FRAMES; i++) {
    if (i >= s->user_count) break;
    hash = (hash ^ s->user[i]) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 32;
  }
  hash &= ~HR_STACK_COPIED;
  return hash ? hash : 1;
}

// Copies the stack for unwinding; 0 if there is no room.
static __always_inline __u64 hr_copy_stack(const struct hr_stack* s, const struct hr_registers* r,
                                           __u32 tgid) {
  struct hr_stack_copy* copy = bpf_ringbuf_reserve(&copies, sizeof(*copy), 0);
  if (!copy) {
    __sync_fetch_and_add(&lost_copies_count, 1);
    return 0;
  }
  const __u64 id = HR_STACK_COPIED | (bpf_ktime_get_ns() << 8 & ~HR_STACK_COPIED) |
                   (bpf_get_smp_processor_id() & 0xff);
  copy->id = id;
  copy->tgid = tgid;
  copy->pc = r->pc;
  __builtin_memcpy(copy->registers, r->value, sizeof(copy->registers));
  bpf_probe_read_kernel(&copy->stack, sizeof(copy->stack), s);
  __u32 size = 0;
  for (int i = 0; i < HR_STACK_COPY_BYTES / 1024; i++) {  // up to the end of the stack's memory
    if (bpf_probe_read_user(copy->bytes + i * 1024, 1024, (void*)(r->sp + i * 1024))) break;
    size += 1024;
  }
  copy->size = size;
  bpf_ringbuf_submit(copy, BPF_RB_NO_WAKEUP);
  return id;
}

// Threads tend to block in the same places. So a stack is not copied again if it has the same
// depth, the same innermost code and the same code addresses in its top words as an already copied
// one.
struct hr_recent_key {
  __u64 pc, sp, code;
  __u32 tid, reserved;
};
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 2048);
  __type(key, struct hr_recent_key);
  __type(value, __u64);
} recent SEC(".maps");

static __always_inline int hr_is_code(const struct hr_stack_root* root, __u64 address,
                                      __u32 ranges) {
  for (__u32 i = 0; i < HR_STACK_RANGES; i++) {
    if (i >= ranges) break;
    if (address >= root->range[i].begin && address < root->range[i].end) return 1;
  }
  return 0;
}

// The id of a copy of the current stack, made before or now; 0 if there is none.
HR_VERIFIED_ONCE_OR_CALLED __u64 hr_copied_stack(struct hr_scratch* room,
                                                 const struct hr_stack_root* root, int reuse) {
  if (!room || !root) return 0;
  const __u64 id = bpf_get_current_pid_tgid();
  if (!reuse) {
    if (root->one_in > 1 && bpf_get_prandom_u32() % root->one_in) return 0;
    return hr_copy_stack(&room->stack, &room->registers, id >> 32);
  }
  struct hr_recent_key key = {};
  key.pc = room->registers.pc;
  key.sp = room->registers.sp;
  key.tid = (__u32)id;
  if (!bpf_probe_read_user(room->stack.top, sizeof(room->stack.top), (void*)key.sp)) {
    for (int i = 0; i < HR_STACK_TOP_WORDS; i++) {
      const __u64 word = room->stack.top[i];
      if (hr_is_code(root, word, HR_STACK_RANGES))
        key.code = (key.code ^ word) * 0x9e3779b97f4a7c15ull;
    }
  }
  const __u64* known = bpf_map_lookup_elem(&recent, &key);
  if (known) return *known;
  if (root->one_in > 1 && bpf_get_prandom_u32() % root->one_in) return 0;
  const __u64 copied = hr_copy_stack(&room->stack, &room->registers, id >> 32);
  if (copied) bpf_map_update_elem(&recent, &key, &copied, BPF_ANY);
  return copied;
}

// Stores the current task's stack and returns its id; 0 if it could not be stored. `reuse`: a copy
// of an equal stack may be used instead.
static __always_inline __u64 hr_store_stack(void* ctx, __u32 tgid, int reuse) {
  __u32 zero = 0;
  struct hr_scratch* room = bpf_map_lookup_elem(&scratch, &zero);
  if (!room) return 0;
  struct hr_stack* s = &room->stack;
  struct hr_registers* registers = &room->registers;
  long n = bpf_get_stack(ctx, s->user, sizeof(s->user), BPF_F_USER_STACK);
  s->user_count = n > 0 ? (__u32)n / 8 : 0;
  n = with_kernel ? bpf_get_stack(ctx, s->kernel, sizeof(s->kernel), 0) : 0;
  s->kernel_count = n > 0 ? (__u32)n / 8 : 0;
  s->top_count = 0;
  s->reserved = 0;
  s->stack_pointer = s->frame_pointer = 0;
  if (!s->user_count && !s->kernel_count) return 0;

  const int has_registers = hr_user_registers(registers);
  const struct hr_stack_root* root = bpf_map_lookup_elem(&roots, &tgid);
  if (root && has_registers) {
    __u32 last = s->user_count - 1;
    __u64 end = 0;
    if (last > 0) {
      // One comparison with one register: older verifiers do not see through what is made of two.
      asm volatile("" : "+r"(last));
      if (last < HR_STACK_USER_FRAMES) end = s->user[last];
    }
    if (!end || !hr_is_code(root, end, root->num_roots)) {
      const __u64 id = hr_copied_stack(room, root, reuse);
      if (id) return id;
    }
  }

  const __u64 hash = hr_hash(s);
  void* stacks = hr_generation() ? (void*)&stacks_1 : (void*)&stacks_0;
  if (bpf_map_lookup_elem(stacks, &hash)) return hash;
  if (has_registers) {
    s->stack_pointer = registers->sp;
    s->frame_pointer = registers->fp;
    if (!bpf_probe_read_user(s->top, sizeof(s->top), (void*)registers->sp)) {
      s->top_count = HR_STACK_TOP_WORDS;
    }
  }
  const long error = bpf_map_update_elem(stacks, &hash, s, BPF_NOEXIST);
  if (error && error != -17 /* EEXIST: another CPU was faster */) {
    __sync_fetch_and_add(&lost_stacks_count, 1);
    return 0;
  }
  return hash;
}

static __always_inline void hr_count_stack(const struct hr_stack_key* key, __u64 samples,
                                           __u64 time_ns) {
  void* counts = hr_generation() ? (void*)&counts_1 : (void*)&counts_0;
  struct hr_stack_count* count = bpf_map_lookup_elem(counts, key);
  if (!count) {
    const struct hr_stack_count none = {};
    bpf_map_update_elem(counts, key, &none, BPF_NOEXIST);
    count = bpf_map_lookup_elem(counts, key);
  }
  if (!count) {
    __sync_fetch_and_add(&lost_counts_count, samples);
    return;
  }
  __sync_fetch_and_add(&samples_count, samples);
  __sync_fetch_and_add(&count->samples_count, samples);
  __sync_fetch_and_add(&count->time_ns, time_ns);
}

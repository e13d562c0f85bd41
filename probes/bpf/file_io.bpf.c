/* What enters the page cache, by operator: bytes brought in from devices because of its reads, its
 * page faults and the read-ahead these set off; and what leaves the cache without having been read.
 *
 * Pages are added in the context of the thread whose read or fault asks for them. Who brought in a
 * page that is removed is known by file: the last one to add a page to it. */
#include "probes/bpf/operator.bpf.h"

char LICENSE[] SEC("license") = "GPL";

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct address_space;
struct memdesc_flags {
  unsigned long f;
};
struct folio {
  unsigned long flags;
  struct address_space* mapping;
  unsigned long _flags_1;
  unsigned int _nr_pages;
};
struct folio___wrapped { /* 6.18 */
  struct memdesc_flags flags;
};
struct folio___nr_pages { /* 6.6 to 6.14 */
  unsigned int _folio_nr_pages;
};
#pragma clang attribute pop
enum pageflags {
  PG_referenced,
  PG_active,
  PG_workingset,
  PG_head,
};

const volatile __u32 page_bytes = 4096;

struct add_key {
  __u32 tgid, word;
};
struct add_value {
  __u64 added_bytes;
  __u64 dropped_bytes; /* left the cache, but not for want of memory */
  __u64 unused_bytes;  /* of these, not marked as read */
};
HR_OUTPUT(adds, add_key, add_value, 4096);
__u64 lost_page_cache_adds_count = 0;

/* The last target's operator that added to a file. */
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 8192);
  __type(key, __u64); /* address_space */
  __type(value, struct add_key);
} files SEC(".maps");

/* Before 5.16 the cache held single pages, and the hooks' argument is one. */
static __always_inline unsigned long flags_of(struct folio* folio) {
  unsigned long flags = 0;
  if (!bpf_core_type_exists(struct folio)) return 0;
  if (bpf_core_field_exists(((struct folio___wrapped*)0)->flags))
    bpf_core_read(&flags, sizeof flags, &((struct folio___wrapped*)folio)->flags.f);
  else
    bpf_core_read(&flags, sizeof flags, &folio->flags);
  return flags;
}

static __always_inline __u64 bytes_of(struct folio* folio, unsigned long flags) {
  if (!bpf_core_type_exists(struct folio)) return page_bytes;
  if (!(flags >> bpf_core_enum_value(enum pageflags, PG_head) & 1)) return page_bytes;
  unsigned int pages = 0;
  if (bpf_core_field_exists(folio->_nr_pages))
    bpf_core_read(&pages, sizeof pages, &folio->_nr_pages);
  else if (bpf_core_field_exists(struct folio___nr_pages, _folio_nr_pages))
    bpf_core_read(&pages, sizeof pages, &((struct folio___nr_pages*)folio)->_folio_nr_pages);
  else if (bpf_core_field_exists(folio->_flags_1)) {
    unsigned long order = 0;
    bpf_core_read(&order, sizeof order, &folio->_flags_1);
    pages = 1u << (order & 31);
  }
  return (__u64)(pages ? pages : 1) * page_bytes;
}

SEC("tp_btf/mm_filemap_add_to_page_cache")
int BPF_PROG(on_add, struct folio* folio) {
  struct add_key key = {};
  key.word = hr_word_here(&key.tgid) & 0xffff;
  if (!key.tgid) return 0;
  struct add_value zero = {};
  struct add_value* value = HR_VALUE(&adds, &key, &zero, &lost_page_cache_adds_count);
  if (!value) return 0;
  __sync_fetch_and_add(&value->added_bytes, bytes_of(folio, flags_of(folio)));
  __u64 mapping = 0;
  if (bpf_core_type_exists(struct folio)) bpf_core_read(&mapping, sizeof mapping, &folio->mapping);
  if (mapping) bpf_map_update_elem(&files, &mapping, &key, BPF_ANY);
  return 0;
}

enum { kReclaiming = 0x800, kKswapd = 0x20000 }; /* PF_MEMALLOC, PF_KSWAPD */

SEC("tp_btf/mm_filemap_delete_from_page_cache")
int BPF_PROG(on_delete, struct folio* folio) {
  if (!bpf_core_type_exists(struct folio)) return 0;
  __u64 mapping = 0;
  bpf_core_read(&mapping, sizeof mapping, &folio->mapping);
  struct add_key* owner = bpf_map_lookup_elem(&files, &mapping);
  if (!owner) return 0;
  /* Reclaim takes the marks away before it takes the page. */
  struct task_struct* task = (struct task_struct*)bpf_get_current_task();
  if (BPF_CORE_READ(task, flags) & (kReclaiming | kKswapd)) return 0;
  struct add_key key = *owner;
  struct add_value* value = bpf_map_lookup_elem(&adds, &key);
  if (!value) return 0;
  unsigned long flags = flags_of(folio);
  __u64 bytes = bytes_of(folio, flags);
  __sync_fetch_and_add(&value->dropped_bytes, bytes);
  unsigned long read = 1ul << bpf_core_enum_value(enum pageflags, PG_referenced) |
                       1ul << bpf_core_enum_value(enum pageflags, PG_active) |
                       1ul << bpf_core_enum_value(enum pageflags, PG_workingset);
  if (!(flags & read)) __sync_fetch_and_add(&value->unused_bytes, bytes);
  return 0;
}

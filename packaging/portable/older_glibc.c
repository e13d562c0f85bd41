// What the static parts of GCC 12 (libstdc++, libgcc) call and glibc before 2.36 does not have. Linked into the portable program alone.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/random.h>

#ifndef DLFO_STRUCT_HAS_EH_DBASE
#error "needs the headers of glibc 2.35 or later"
#endif

// glibc 2.32: whether the process has one thread, so that counts of references need no atomic instruction. Never said here.
char __libc_single_threaded = 0;

// glibc 2.36: std::random_device.
uint32_t arc4random(void) {
  uint32_t value;
  while (getrandom(&value, sizeof value, 0) != (ssize_t)sizeof value) {
  }
  return value;
}

struct search {
  uintptr_t address;
  struct dl_find_object* found;
};

static int look_in(struct dl_phdr_info* object, size_t size, void* argument) {
  (void)size;
  struct search* search = argument;
  const ElfW(Phdr)* frames = NULL;
  uintptr_t first = UINTPTR_MAX, end = 0;
  int inside = 0;
  for (int i = 0; i < object->dlpi_phnum; i++) {
    const ElfW(Phdr)* part = &object->dlpi_phdr[i];
    const uintptr_t begins = object->dlpi_addr + part->p_vaddr, ends = begins + part->p_memsz;
    if (part->p_type == PT_GNU_EH_FRAME) frames = part;
    if (part->p_type != PT_LOAD) continue;
    if (begins < first) first = begins;
    if (ends > end) end = ends;
    inside |= search->address >= begins && search->address < ends;
  }
  if (!inside) return 0;
  if (frames == NULL) return -1;
  search->found->dlfo_map_start = (void*)first;
  search->found->dlfo_map_end = (void*)end;
  search->found->dlfo_eh_frame = (void*)(object->dlpi_addr + frames->p_vaddr);
  return 1;
}

// glibc 2.35: the loaded object that has an address, and its table for unwinding; how an exception finds its handler. Returns 0, or -1
// where there is none. The link map is left out: libgcc does not look at it.
int _dl_find_object(void* address, struct dl_find_object* found) {
  *found = (struct dl_find_object){0};
  struct search search = {(uintptr_t)address, found};
  return dl_iterate_phdr(look_in, &search) == 1 ? 0 : -1;
}

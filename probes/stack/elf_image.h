// ElfImage: what a profiler needs from a 64-bit little-endian ELF file: the address at which a file
// offset is loaded, the names of its functions, and the location of its unwind tables.
//
// The file is untrusted: every offset, size and index is checked, and the numbers of headers, of
// symbols and of a name's bytes are limited. Damage means fewer names, never a crash. "Address" is
// always the file's own (as linked); a process adds its load bias.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "probes/stack/byte_source.h"

namespace headrace::probes::stack {

class ElfImage {
 public:
  struct Section {
    uint64_t address = 0, offset = 0, size = 0;
  };
  struct Function {
    std::string name;     // as in the file, mangled
    uint64_t offset = 0;  // distance of the address from the function's start
  };

  // Absent if this is not a 64-bit little-endian ELF file with loadable segments.
  static std::optional<ElfImage> Read(std::shared_ptr<const ByteSource> source);

  const ByteSource& source() const { return *source_; }
  uint16_t machine() const { return machine_; }                  // EM_*
  const std::string& build_id() const { return build_id_; }      // lower-case hex, "" if none
  const std::string& debug_link() const { return debug_link_; }  // file name, "" if none
  bool has_symbol_table() const { return has_symbol_table_; }    // .symtab, not only .dynsym
  const std::optional<Section>& eh_frame_header() const { return eh_frame_header_; }
  const std::optional<Section>& eh_frame() const { return eh_frame_; }

  // The address at which the byte at a file offset is loaded; absent outside every segment.
  std::optional<uint64_t> AddressOf(uint64_t file_offset) const;
  // The file offset of `size` loaded bytes at an address; absent if they are not in the file.
  std::optional<uint64_t> OffsetOf(uint64_t address, uint64_t size) const;

  // The function that contains an address. The first call reads the symbol table: 1 ms for 10,000
  // symbols.
  std::optional<Function> FindFunction(uint64_t address) const;
  size_t num_functions() const;
  // Replaces its functions by those of `debug`, the file with this file's debug information.
  void TakeFunctions(const ElfImage& debug);

 private:
  struct Segment {
    uint64_t address, offset, file_size;
  };
  struct Symbol {
    uint64_t address;
    uint32_t size;  // 0: unknown; it extends to the next symbol
    uint32_t name;  // offset in the table's strings; top bit: the dynamic table's
  };
  struct Functions;

  void ReadSections(uint64_t offset, size_t count, size_t names_index);
  void ReadNotes(uint64_t offset, uint64_t size);
  std::shared_ptr<const Functions> LoadFunctions() const;
  const Functions& functions() const;

  std::shared_ptr<const ByteSource> source_;
  uint16_t machine_ = 0;
  std::vector<Segment> segments_;
  std::string build_id_, debug_link_;
  bool has_symbol_table_ = false;
  std::optional<Section> eh_frame_header_, eh_frame_, symbols_, dynamic_symbols_;
  uint64_t symbol_names_ = 0, symbol_names_size_ = 0;
  uint64_t dynamic_names_ = 0, dynamic_names_size_ = 0;
  mutable std::shared_ptr<const Functions> functions_;  // read at first use
};

}  // namespace headrace::probes::stack

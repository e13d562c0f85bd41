#include "probes/stack/elf_image.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

namespace headrace::probes::stack {
namespace {

constexpr size_t kMaxSegments = 256;
constexpr size_t kMaxSections = 65536;
constexpr uint64_t kMaxSymbols = 4u << 20;  // of one table; both, twice, are 256 MiB while sorted
constexpr size_t kMaxNameBytes = 1024;
constexpr uint32_t kDynamicName = 1u << 31;
constexpr int kDigitBits = 11;             // counts of a digit's values stay in the L1 cache
constexpr uint64_t kSymbolsAtOnce = 2048;  // as they are read: 48 KiB

// Stable. Digit by digit: large libraries have 500,000 symbols in no order, and a program waits for
// a CPU while they are compared.
template <typename Symbol>
void SortByAddress(std::vector<Symbol>& symbols) {
  uint64_t differing = 0;
  for (const Symbol& symbol : symbols) differing |= symbol.address ^ symbols.front().address;
  std::vector<Symbol> other(symbols.size());
  for (int shift = 0; shift < 64 && differing >> shift != 0; shift += kDigitBits) {
    const auto digit = [shift](const Symbol& symbol) {
      return symbol.address >> shift & ((1u << kDigitBits) - 1);
    };
    std::array<uint32_t, 1u << kDigitBits> next{};
    for (const Symbol& symbol : symbols) ++next[digit(symbol)];
    std::exclusive_scan(next.begin(), next.end(), next.begin(), 0u);
    for (const Symbol& symbol : symbols) other[next[digit(symbol)]++] = symbol;
    symbols.swap(other);
  }
}

}  // namespace

struct ElfImage::Functions {
  std::shared_ptr<const ByteSource> source;
  uint64_t names = 0, names_size = 0, dynamic_names = 0, dynamic_names_size = 0;
  std::vector<Symbol> symbols;  // by address, one at each

  std::string NameOf(const Symbol& symbol) const {
    const bool dynamic = (symbol.name & kDynamicName) != 0;
    const uint64_t at = symbol.name & ~kDynamicName;
    const uint64_t size = dynamic ? dynamic_names_size : names_size;
    if (at >= size) return "";
    return source->ReadText((dynamic ? dynamic_names : names) + at,
                            std::min<uint64_t>(kMaxNameBytes, size - at));
  }
};

std::optional<ElfImage> ElfImage::Read(std::shared_ptr<const ByteSource> source) {
  Elf64_Ehdr header;
  if (!source || !source->ReadValue(0, &header) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB) {
    return std::nullopt;
  }
  ElfImage image;
  image.source_ = std::move(source);
  image.machine_ = header.e_machine;
  if (header.e_phentsize == sizeof(Elf64_Phdr)) {
    for (size_t i = 0; i < std::min<size_t>(header.e_phnum, kMaxSegments); ++i) {
      Elf64_Phdr segment;
      if (!image.source_->ReadValue(header.e_phoff + i * sizeof segment, &segment)) break;
      if (segment.p_type == PT_LOAD) {
        image.segments_.push_back({segment.p_vaddr, segment.p_offset, segment.p_filesz});
      } else if (segment.p_type == PT_GNU_EH_FRAME) {
        image.eh_frame_header_ = Section{segment.p_vaddr, segment.p_offset, segment.p_filesz};
      } else if (segment.p_type == PT_NOTE) {
        image.ReadNotes(segment.p_offset, segment.p_filesz);
      }
    }
  }
  if (image.segments_.empty()) return std::nullopt;
  if (header.e_shentsize == sizeof(Elf64_Shdr)) {
    image.ReadSections(header.e_shoff, header.e_shnum, header.e_shstrndx);
  }
  return image;
}

void ElfImage::ReadSections(uint64_t offset, size_t count, size_t names_index) {
  count = std::min(count, kMaxSections);
  if (count == 0 || offset > source_->size() ||
      (source_->size() - offset) / sizeof(Elf64_Shdr) < count) {
    return;
  }
  std::vector<Elf64_Shdr> sections(count);
  if (!source_->Read(offset, sections.data(), count * sizeof(Elf64_Shdr))) return;
  const auto inside = [&](const Elf64_Shdr& s) {
    return s.sh_type != SHT_NOBITS && s.sh_offset <= source_->size() &&
           s.sh_size <= source_->size() - s.sh_offset;
  };
  for (const Elf64_Shdr& section : sections) {
    if (!inside(section)) continue;
    const Section place{section.sh_addr, section.sh_offset, section.sh_size};
    if (section.sh_type == SHT_SYMTAB || section.sh_type == SHT_DYNSYM) {
      if (section.sh_entsize != sizeof(Elf64_Sym) || section.sh_link >= count ||
          !inside(sections[section.sh_link])) {
        continue;
      }
      const Elf64_Shdr& names = sections[section.sh_link];
      if (section.sh_type == SHT_SYMTAB) {
        has_symbol_table_ = true;
        symbols_ = place;
        symbol_names_ = names.sh_offset;
        symbol_names_size_ = names.sh_size;
      } else {
        dynamic_symbols_ = place;
        dynamic_names_ = names.sh_offset;
        dynamic_names_size_ = names.sh_size;
      }
    } else if (names_index < count && inside(sections[names_index]) &&
               section.sh_name < sections[names_index].sh_size) {
      const std::string name = source_->ReadText(
          sections[names_index].sh_offset + section.sh_name,
          std::min<uint64_t>(32, sections[names_index].sh_size - section.sh_name));
      if (name == ".eh_frame") eh_frame_ = place;
      if (name == ".gnu_debuglink")
        debug_link_ = source_->ReadText(place.offset, std::min<uint64_t>(place.size, 255));
      if (section.sh_type == SHT_NOTE) ReadNotes(place.offset, place.size);
    }
  }
}

void ElfImage::ReadNotes(uint64_t offset, uint64_t size) {
  if (!build_id_.empty() || size > 65536) return;
  std::vector<uint8_t> notes(size);
  if (!source_->Read(offset, notes.data(), notes.size())) return;
  size_t at = 0;
  Elf64_Nhdr note;
  while (notes.size() - at >= sizeof note) {
    std::memcpy(&note, &notes[at], sizeof note);
    at += sizeof note;
    const uint64_t name = (uint64_t{note.n_namesz} + 3) & ~3ull;
    const uint64_t body = (uint64_t{note.n_descsz} + 3) & ~3ull;
    if (name > notes.size() - at || body > notes.size() - at - name) return;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        std::memcmp(&notes[at], "GNU", 4) == 0 && note.n_descsz >= 4 && note.n_descsz <= 64) {
      static constexpr char kDigits[] = "0123456789abcdef";
      for (size_t i = 0; i < note.n_descsz; ++i) {
        const uint8_t byte = notes[at + name + i];
        build_id_ += {kDigits[byte >> 4], kDigits[byte & 15]};
      }
      return;
    }
    at += name + body;
  }
}

std::optional<uint64_t> ElfImage::AddressOf(uint64_t file_offset) const {
  for (const Segment& s : segments_) {
    if (file_offset >= s.offset && file_offset - s.offset < s.file_size) {
      return s.address + (file_offset - s.offset);
    }
  }
  return std::nullopt;
}

std::optional<uint64_t> ElfImage::OffsetOf(uint64_t address, uint64_t size) const {
  for (const Segment& s : segments_) {
    if (address >= s.address && address - s.address < s.file_size &&
        size <= s.file_size - (address - s.address)) {
      return s.offset + (address - s.address);
    }
  }
  return std::nullopt;
}

std::shared_ptr<const ElfImage::Functions> ElfImage::LoadFunctions() const {
  auto functions = std::make_shared<Functions>();
  functions->source = source_;
  functions->names = symbol_names_;
  functions->names_size = symbol_names_size_;
  functions->dynamic_names = dynamic_names_;
  functions->dynamic_names_size = dynamic_names_size_;
  std::vector<Symbol>& all = functions->symbols;
  const auto load = [&](const std::optional<Section>& table, uint32_t flag) {
    if (!table) return;
    uint64_t left = std::min(table->size / sizeof(Elf64_Sym), kMaxSymbols);
    std::vector<Elf64_Sym> chunk;
    for (uint64_t offset = table->offset; left > 0;) {
      chunk.resize(std::min<uint64_t>(left, kSymbolsAtOnce));
      if (!source_->Read(offset, chunk.data(), chunk.size() * sizeof(Elf64_Sym))) return;
      for (const Elf64_Sym& s : chunk) {
        const int type = ELF64_ST_TYPE(s.st_info);
        if ((type != STT_FUNC && type != STT_GNU_IFUNC) || s.st_shndx == SHN_UNDEF ||
            s.st_name == 0 || s.st_name >= kDynamicName || s.st_value == 0) {
          continue;
        }
        all.push_back({s.st_value, static_cast<uint32_t>(std::min<uint64_t>(s.st_size, UINT32_MAX)),
                       s.st_name | flag});
      }
      offset += chunk.size() * sizeof(Elf64_Sym);
      left -= chunk.size();
    }
  };
  load(symbols_, 0);
  load(dynamic_symbols_, kDynamicName);
  SortByAddress(all);
  // Aliases: one name an address is enough, that of the largest, and of those alike the last.
  size_t kept = 0;
  for (const Symbol& symbol : all) {
    const bool is_alias = kept > 0 && all[kept - 1].address == symbol.address;
    if (!is_alias) {
      all[kept++] = symbol;
    } else if (symbol.size >= all[kept - 1].size) {
      all[kept - 1] = symbol;
    }
  }
  all.resize(kept);
  all.shrink_to_fit();
  return functions;
}

const ElfImage::Functions& ElfImage::functions() const {
  if (!functions_) functions_ = LoadFunctions();
  return *functions_;
}

size_t ElfImage::num_functions() const { return functions().symbols.size(); }

void ElfImage::TakeFunctions(const ElfImage& debug) {
  debug.functions();
  functions_ = debug.functions_;
}

std::optional<ElfImage::Function> ElfImage::FindFunction(uint64_t address) const {
  const Functions& all = functions();
  auto it = std::upper_bound(all.symbols.begin(), all.symbols.end(), address,
                             [](uint64_t a, const Symbol& s) { return a < s.address; });
  // A few steps back: a small function's symbol may lie inside a larger one's range.
  for (int step = 0; step < 8 && it != all.symbols.begin(); ++step) {
    --it;
    const bool inside = it->size != 0 ? address - it->address < it->size
                                      : step == 0 && address - it->address < 65536;
    if (!inside) continue;
    std::string name = all.NameOf(*it);
    if (name.empty()) return std::nullopt;
    return Function{std::move(name), address - it->address};
  }
  return std::nullopt;
}

}  // namespace headrace::probes::stack

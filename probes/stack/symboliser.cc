#include "probes/stack/symboliser.h"

#include <cxxabi.h>
#include <elf.h>
#include <fmt/format.h>
#include <sys/auxv.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <future>

#include "base/clock.h"
#include "base/error.h"
#include "probes/helper_cpu.h"

namespace headrace::probes::stack {
namespace {

constexpr int kMaxLooks = 16;
constexpr int64_t kLookAgainNs = 1'000'000'000;
constexpr size_t kMaxNamesKept = 65536;  // per process; then the cache begins anew
constexpr size_t kMaxSymbolBytes = 1024;
constexpr size_t kMaxDemangledBytes = 4096;
constexpr size_t kMaxPerfMapBytes = 64 << 20;
constexpr size_t kMaxModules = 1024;  // files held open

// Upper bound of what back references can do to the length of a name is about 1.44^n: each may
// stand for a text made of others. 32 of them stay below some megabytes for an instant.
bool MayExplode(const std::string& symbol) {
  int references = 0;
  for (size_t i = 0; i + 1 < symbol.size(); ++i) {
    const char next = symbol[i + 1];
    const bool reference =
        next == '_' || (next >= '0' && next <= '9') || (next >= 'A' && next <= 'Z');
    if ((symbol[i] == 'S' || symbol[i] == 'T') && reference) ++references;
  }
  return references > 32;
}

// The names that a nested name begins with: "_ZN1a2bcI..." -> "a::bc".
std::string LeadingNames(const std::string& symbol) {
  std::string names;
  size_t at = symbol.find_first_not_of("KVrRO", 3);
  while (symbol.starts_with("_ZN") && at < symbol.size() && symbol[at] >= '1' &&
         symbol[at] <= '9') {
    size_t size = 0;
    for (; at < symbol.size() && symbol[at] >= '0' && symbol[at] <= '9' && size < 1024; ++at) {
      size = size * 10 + static_cast<size_t>(symbol[at] - '0');
    }
    if (size > symbol.size() - at) break;
    names += (names.empty() ? "" : "::") + symbol.substr(at, size);
    at += size;
  }
  return names;
}

// "" if `symbol` is no C++ symbol.
std::string Demangle(const std::string& symbol) {
  if (!symbol.starts_with("_Z")) return "";
  if (symbol.size() > kMaxSymbolBytes || MayExplode(symbol)) return LeadingNames(symbol);
  int status = 0;
  char* text = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  std::string name(text ? text : "", text ? strnlen(text, kMaxDemangledBytes) : 0);
  std::free(text);
  return name;
}

// "f(int) const [clone .cold]" -> "f": parameters make stacks long, and say little.
void CutParameters(std::string* name) {
  const size_t clone = name->find(" [clone ");
  if (clone != std::string::npos) name->resize(clone);
  const size_t close = name->rfind(')');
  if (close == std::string::npos ||
      name->find_first_not_of(" const&volatile", close + 1) != std::string::npos) {
    return;
  }
  int depth = 0;
  for (size_t at = close + 1; at-- > 0;) {
    if ((*name)[at] == ')') ++depth;
    if ((*name)[at] == '(' && --depth == 0) {
      const bool call_operator = at >= 8 && name->compare(at - 8, 8, "operator") == 0;
      if (at > 0 && !call_operator) name->resize(at);
      return;
    }
  }
}

// "f.constprop.0" -> "f", "memcpy@GLIBC_2.14" -> "memcpy": copies and versions of one function.
std::string_view CutCopies(std::string_view symbol) {
  static constexpr std::string_view kMarks[] = {".constprop.", ".isra.", ".part.", ".cold",
                                                ".lto_priv.",  ".llvm.", "@"};
  for (const std::string_view mark : kMarks) {
    const size_t at = symbol.find(mark);
    if (at != std::string_view::npos && at > 0) symbol = symbol.substr(0, at);
  }
  return symbol;
}

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Libraries whose functions are the first of a thread. They are compiled without frame pointers, so
// that a chain of them ends there.
bool BeginsThreads(const std::string& module) {
  static constexpr std::string_view kStarts[] = {"libc.so", "libc-2",    "libpthread", "ld-linux",
                                                 "ld-musl", "libc.musl", "libc++",     "libstdc++",
                                                 "libgomp", "libiomp5.", "libomp.",    "libtbb"};
  return std::any_of(std::begin(kStarts), std::end(kStarts),
                     [&](std::string_view start) { return module.starts_with(start); });
}

// The vDSO as this process has it mapped; its code is the same in every process of the machine.
std::shared_ptr<const ByteSource> VdsoSource() {
  const auto* begin = reinterpret_cast<const char*>(getauxval(AT_SYSINFO_EHDR));
  if (!begin) return nullptr;
  Elf64_Ehdr header;
  std::memcpy(&header, begin, sizeof header);
  const uint64_t size = header.e_shoff + uint64_t{header.e_shnum} * header.e_shentsize;
  if (size > 65536) return nullptr;
  return std::make_shared<MemorySource>(std::string(begin, size));
}

}  // namespace

std::string ReadableName(const std::string& text, size_t max_bytes) {
  const std::string symbol(CutCopies(text));
  std::string name = Demangle(symbol);
  if (name.empty()) {
    name = symbol;
  } else {
    CutParameters(&name);
  }
  for (char& c : name) {
    if (c == ';') c = ':';
    if (c == '\n' || c == '\r') c = ' ';
  }
  return Printable(name, max_bytes);
}

Symboliser::Symboliser(const Host& host) : host_(host) {}

void Symboliser::ExpectKernel() {
  if (!kernel_) kernel_ = KernelSymbols::Expect(host_);
}

std::shared_ptr<Symboliser::Module> Symboliser::OpenModule(int64_t pid, const Mapping& mapping) {
  if (mapping.path == "[vdso]") {
    auto& known = modules_[{0, mapping.path}];
    auto module = known.lock();
    if (!module) {
      module = std::make_shared<Module>(Module{"[vdso]", "", VdsoSource(), nullptr, false});
      known = module;
    }
    return module;
  }
  if (mapping.inode == 0 || mapping.path.empty() || mapping.path[0] != '/') return nullptr;
  auto& known = modules_[{mapping.inode, mapping.path}];
  if (auto module = known.lock()) return module;
  auto module = std::make_shared<Module>(Module{BaseName(mapping.path),
                                                mapping.path.substr(0, mapping.path.rfind('/')),
                                                nullptr, nullptr, false});
  known = module;
  if (modules_.size() > kMaxModules) {
    std::erase_if(modules_, [](const auto& entry) { return entry.second.expired(); });
    if (modules_.size() > kMaxModules) return module;
  }
  // map_files leads to the very file, deleted or not, but may be refused; the path leads to it if
  // nothing took its place. /proc/PID/root crosses into the process's own file system.
  const std::string proc = fmt::format("/proc/{}", pid);
  const std::string links[] = {
      fmt::format("{}/map_files/{:x}-{:x}", proc, mapping.start, mapping.end), proc + "/exe",
      proc + "/root" + mapping.path, mapping.path};
  for (const std::string& link : links) {
    auto file = FileSource::Open(host_.Path(link));
    if (file && file->inode() == mapping.inode) {
      module->source = std::move(file);
      break;
    }
  }
  return module;
}

void Symboliser::SetNow(int64_t now_ns) {
  now_ns_ = now_ns;
  looks_ = 0;
}

void Symboliser::Look(int64_t pid) {
  Process& process = processes_[pid];
  if (process.looked_ns == INT64_MIN && ++looks_ <= kMaxLooks) ReadProcess(pid, process);
}

bool Symboliser::LookAgain(int64_t pid, Process& process) {
  if (process.looked_ns == now_ns_ || now_ns_ < process.look_again_ns) return false;
  process.look_again_ns = now_ns_ + kLookAgainNs;
  ReadProcess(pid, process);
  return true;
}

const Mapping* Symboliser::Locate(int64_t pid, Process& process, uint64_t address) {
  const Mapping* mapping = FindMapping(process.maps, address);
  if (mapping || !LookAgain(pid, process)) return mapping;
  mapping = FindMapping(process.maps, address);
  if (mapping) process.look_again_ns = now_ns_;  // it helped
  return mapping;
}

void Symboliser::ReadProcess(int64_t pid, Process& process) {
  process.looked_ns = now_ns_;
  std::vector<Mapping> maps = ReadMaps(host_, pid);
  if (maps.empty()) return;  // it ended: what was seen before still holds
  std::vector<std::shared_ptr<Module>> modules;
  for (const Mapping& mapping : maps) modules.push_back(OpenModule(pid, mapping));
  process.maps = std::move(maps);
  process.modules = std::move(modules);
  process.names.clear();

  // The JIT names its map after the pid it sees itself.
  const std::string status = host_.Read(fmt::format("/proc/{}/status", pid), 1 << 16).value_or("");
  const size_t at = status.find("\nNSpid:");
  std::string own = fmt::format("{}", pid);
  if (at != std::string::npos) {
    const std::string line = status.substr(at + 7, status.find('\n', at + 7) - at - 7);
    own = line.substr(line.find_last_of(" \t") + 1);
  }
  const auto file =
      FileSource::Open(host_.Path(fmt::format("/proc/{}/root/tmp/perf-{}.map", pid, own)));
  if (!file || file->size() == process.perf_map_size || file->size() > kMaxPerfMapBytes) return;
  std::string text(file->size(), '\0');
  if (!file->Read(0, text.data(), text.size())) return;
  process.perf_map = SymbolList::FromPerfMap(text);
  process.perf_map_size = text.size();
}

void Symboliser::Forget(const std::vector<int64_t>& pids) {
  for (auto it = processes_.begin(); it != processes_.end();) {
    const bool live = std::find(pids.begin(), pids.end(), it->first) != pids.end();
    const bool keep = live || it->second.used;
    it->second.used = false;
    it = keep ? std::next(it) : processes_.erase(it);
  }
}

const ElfImage* Symboliser::Image(Module& module, int64_t pid) {
  if (module.tried) return module.image.get();
  module.tried = true;
  // Once for each file, and for a large library 20 ms: in a thread of its own, for the collector
  // paces readings by the CPU time that they take on its thread, and this tells nothing of the
  // next.
  const int64_t took_ns = std::async(std::launch::async, [&] {
                            if (auto image = ElfImage::Read(module.source)) {
                              module.image = std::make_shared<ElfImage>(std::move(*image));
                              if (!module.image->has_symbol_table()) ReadDebugFile(module, pid);
                              module.image->num_functions();  // reads them
                              ++cost_.images;
                            }
                            return ThreadCpuNs();
                          }).get();
  cost_.time_ns += took_ns;
  OnceCpuNs() += took_ns;
  return module.image.get();
}

void Symboliser::ReadDebugFile(Module& module, int64_t pid) {
  std::vector<std::string> candidates;
  const std::string& id = module.image->build_id();
  for (const std::string& root : {fmt::format("/proc/{}/root", pid), std::string()}) {
    if (id.size() > 2) {
      candidates.push_back(fmt::format("{}/usr/lib/debug/.build-id/{}/{}.debug", root,
                                       id.substr(0, 2), id.substr(2)));
    }
    const std::string& link = module.image->debug_link();
    if (!link.empty() && link.find('/') == std::string::npos) {
      candidates.push_back(root + "/usr/lib/debug/" + link);
      candidates.push_back(root + module.folder + "/.debug/" + link);  // as gdb looks for it
    }
  }
  for (const std::string& path : candidates) {
    const auto debug = ElfImage::Read(FileSource::Open(host_.Path(path)));
    // A debug file of another build would give wrong names: the ids must agree.
    if (debug && debug->has_symbol_table() && debug->build_id() == id && !id.empty()) {
      module.image->TakeFunctions(*debug);
      return;
    }
  }
}

std::string Symboliser::NameIn(int64_t pid, Process& process, uint64_t address) {
  const Mapping* mapping = Locate(pid, process, address);
  std::optional<std::string_view> made = process.perf_map.Find(address);
  if (!made && mapping && mapping->inode == 0 && mapping->path != "[vdso]" &&
      LookAgain(pid, process)) {
    made = process.perf_map.Find(address);  // it may have grown
    mapping = FindMapping(process.maps, address);
  }
  if (made) return ReadableName(std::string(*made));
  if (!mapping) {
    return process.maps.empty() ? "[process not seen alive]" : "[unknown]";
  }
  const auto& module = process.modules[static_cast<size_t>(mapping - process.maps.data())];
  if (!module) return "[code made at run time]";
  const uint64_t offset = address - mapping->start + mapping->offset;
  if (const ElfImage* image = Image(*module, pid)) {
    const auto at = image->AddressOf(offset);
    const auto function = at ? image->FindFunction(*at) : std::nullopt;
    if (function) return ReadableName(function->name);
  }
  // The page is near enough: exact offsets would make every sample a stack of its own.
  return fmt::format("[{}+{:#x}]", ReadableName(module->name, 64), offset & ~0xfffull);
}

const std::string& Symboliser::Name(int64_t pid, uint64_t address) {
  Process& process = processes_[pid];
  process.used = true;
  if (const auto it = process.names.find(address); it != process.names.end()) return it->second;
  const int64_t begin = ThreadCpuNs();
  ++cost_.names;
  std::string name = NameIn(pid, process, address);
  cost_.time_ns += ThreadCpuNs() - begin;
  if (process.names.size() >= kMaxNamesKept) process.names.clear();
  return process.names.insert_or_assign(address, std::move(name)).first->second;
}

const std::string& Symboliser::KernelName(uint64_t address) {
  ExpectKernel();
  if (kernel_names_.size() >= kMaxNamesKept) kernel_names_.clear();
  const auto [it, added] = kernel_names_.try_emplace(address);
  if (added) {
    const auto name = kernel_->Get().Find(address);
    it->second = name ? fmt::format("{}_[k]", ReadableName(std::string(*name))) : "[kernel]";
  }
  return it->second;
}

bool Symboliser::IsRoot(int64_t pid, uint64_t address) {
  static constexpr std::string_view kRoots[] = {"_start",
                                                "__libc_start_main",
                                                "__libc_start_main_impl",
                                                "__libc_start_call_main",
                                                "clone",
                                                "start_thread",
                                                "__clone",
                                                "__clone3",
                                                "clone3",
                                                "thread_start",
                                                "_dl_start_user",
                                                "runtime.goexit",
                                                "runtime.goexit.abi0",
                                                "runtime.mstart",
                                                "runtime.rt0_go",
                                                "runtime.mcall"};
  const auto it = processes_.find(pid);
  const Mapping* mapping = it == processes_.end() ? nullptr : Locate(pid, it->second, address);
  if (!mapping) return false;
  if (BeginsThreads(BaseName(mapping->path))) return true;
  const std::string& name = Name(pid, address);
  return std::find(std::begin(kRoots), std::end(kRoots), name) != std::end(kRoots);
}

bool Symboliser::IsCode(int64_t pid, uint64_t address) {
  const auto it = processes_.find(pid);
  return it == processes_.end() || it->second.maps.empty() ||
         Locate(pid, it->second, address) != nullptr;
}

LoadedImage Symboliser::Find(int64_t pid, uint64_t address) {
  const auto it = processes_.find(pid);
  if (it == processes_.end()) return {};
  const Mapping* mapping = Locate(pid, it->second, address);
  if (!mapping) return {};
  const auto& module = it->second.modules[static_cast<size_t>(mapping - it->second.maps.data())];
  if (!module || !Image(*module, pid)) return {};
  const uint64_t offset = address - mapping->start + mapping->offset;
  const auto at = module->image->AddressOf(offset);
  if (!at) return {};
  return {module->image, address - *at};
}

int64_t Symboliser::LookedNs(int64_t pid) const {
  const auto it = processes_.find(pid);
  return it == processes_.end() || it->second.maps.empty() ? 0 : it->second.looked_ns;
}

Symboliser::CodeRanges Symboliser::Ranges(int64_t pid) {
  CodeRanges ranges;
  const auto it = processes_.find(pid);
  if (it == processes_.end() || it->second.maps.empty()) return ranges;
  const std::string& program = it->second.maps.front().path;  // linked at the lowest addresses
  for (const Mapping& mapping : it->second.maps) {
    if (BeginsThreads(BaseName(mapping.path))) {
      ranges.roots.push_back({mapping.start, mapping.end});
    } else if (mapping.path == program || BaseName(mapping.path).starts_with("libpython")) {
      ranges.program.push_back({mapping.start, mapping.end});
    }
  }
  return ranges;
}

}  // namespace headrace::probes::stack

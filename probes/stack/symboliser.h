// Symboliser: finds names for code addresses of processes, while they live and afterwards.
//
// The mappings of a process are read, and the files in them opened, when it is first looked at;
// names are read from the files later, so they are found even when process or file is gone. In
// order: perf map of a JIT compiler, symbol table, separate debug file (by build id or debug link,
// if it is on this machine), dynamic symbols, "[file+0xoffset]", "[unknown]". Not for use by
// several threads.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "probes/host.h"
#include "probes/stack/elf_image.h"
#include "probes/stack/kernel_symbols.h"
#include "probes/stack/process_maps.h"
#include "probes/stack/symbol_list.h"
#include "probes/stack/unwind.h"

namespace headrace::probes::stack {

// A name for people: demangled, at most `max_bytes`, without the ';' and line breaks that separate
// frames in folded text.
std::string ReadableName(const std::string& symbol, size_t max_bytes = 256);

class Symboliser {
 public:
  // Begins to read the kernel's symbols, in a thread of its own: 30 ms that no reading waits for.
  explicit Symboliser(const Host& host);

  // Sets the time; call at the beginning of a reading.
  void SetNow(int64_t now_ns);
  // Reads a live process's mappings if they were not yet read: of at most 16 processes per reading,
  // of the others once one of their addresses is asked for. When an address lies in no known
  // mapping (a library was loaded, the process executed another program), the mappings are read
  // again at once, but at most every second if that does not help.
  void Look(int64_t pid);
  // Forgets processes that are not in `pids` and have not been asked for since the last call.
  void Forget(const std::vector<int64_t>& pids);

  // The name of the code at a user address; for a return address pass the address - 1.
  const std::string& Name(int64_t pid, uint64_t address);
  // Begins to read the kernel's names, which takes some 60 ms of another thread. Without it they
  // are read when the first is asked for, and that waits.
  void ExpectKernel();
  // Marks kernel functions with "_[k]".
  const std::string& KernelName(uint64_t address);
  // True if a stack that ends with `address` begins where a thread or process begins.
  bool IsRoot(int64_t pid, uint64_t address);
  // True if the address lies in an executable mapping, or no mapping is known.
  bool IsCode(int64_t pid, uint64_t address);
  // For unwinding: the file at an address. Null image where there is none.
  LoadedImage Find(int64_t pid, uint64_t address);
  // Executable mappings of a process: first those of libraries in which threads begin (IsRoot),
  // then the program's own.
  struct Range {
    uint64_t begin = 0, end = 0;
  };
  struct CodeRanges {
    std::vector<Range> roots, program;
  };
  CodeRanges Ranges(int64_t pid);
  // When a process was last looked at; 0 never, or nothing was seen.
  int64_t LookedNs(int64_t pid) const;

  struct Cost {
    int64_t names = 0;    // names looked up, without those from the cache
    int64_t images = 0;   // files whose symbols were read
    int64_t time_ns = 0;  // on a CPU, in both
  };
  const Cost& cost() const { return cost_; }

 private:
  struct Module {
    std::string name;                          // of the file, without folder
    std::string folder;                        // of the file, as the process sees it; may be ""
    std::shared_ptr<const ByteSource> source;  // null: could not be opened
    std::shared_ptr<ElfImage> image;           // null: not read yet, or not ELF
    bool tried = false;
  };
  struct Process {
    std::vector<Mapping> maps;
    std::vector<std::shared_ptr<Module>> modules;  // parallel to maps; null: no file
    SymbolList perf_map;
    uint64_t perf_map_size = 0;
    int64_t looked_ns = INT64_MIN, look_again_ns = INT64_MIN;
    bool used = false;
    std::unordered_map<uint64_t, std::string> names;
  };

  std::shared_ptr<Module> OpenModule(int64_t pid, const Mapping& mapping);
  const ElfImage* Image(Module& module, int64_t pid);
  void ReadDebugFile(Module& module, int64_t pid);
  void ReadProcess(int64_t pid, Process& process);
  // The mapping that contains an address; looks at the process again if there is none.
  const Mapping* Locate(int64_t pid, Process& process, uint64_t address);
  bool LookAgain(int64_t pid, Process& process);
  std::string NameIn(int64_t pid, Process& process, uint64_t address);

  const Host& host_;
  int64_t now_ns_ = 0;
  int looks_ = 0;  // processes looked at in this reading
  std::map<int64_t, Process> processes_;
  // Files by (inode, path): most processes of a tree share theirs.
  std::map<std::pair<uint64_t, std::string>, std::weak_ptr<Module>> modules_;
  std::shared_ptr<KernelSymbols> kernel_;
  std::unordered_map<uint64_t, std::string> kernel_names_;
  Cost cost_;
};

}  // namespace headrace::probes::stack

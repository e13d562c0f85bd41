#include <elf.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "base/clock.h"
#include "probes/helper_cpu.h"
#include "probes/stack/stack_folder.h"
#include "probes/stack/unwind.h"
#include "tests/probes/stack/target.h"
#include "tests/seed.h"

namespace headrace::probes::stack {
namespace {

std::string FileBytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string TargetPath(const std::string& kind) {
  return std::string(HEADRACE_BINARY_DIR) + "/stack_target_" + kind;
}

TEST(ProcessMaps, LinesOfEveryKindAndDamage) {
  const auto maps = ParseMaps(
      "7f0000002000-7f0000003000 r-xp 00001000 fe:01 42                         /usr/lib/a b.so\n"
      "55d000000000-55d000001000 r-xp 00000000 fe:01 7 /tmp/x (deleted)\n"
      "55d000001000-55d000002000 rw-p 00001000 fe:01 7 /tmp/x\n"  // no code
      "7f0000000000-7f0000001000 rwxp 00000000 00:00 0 \n"        // made at run time
      "7ffc00000000-7ffc00001000 r-xp 00000000 00:00 0                          [vdso]\n"
      "5000-4000 r-xp 00000000 00:00 0 /ends before it begins\n"
      "zzzz-4000 r-xp 00000000 00:00 0 /no number\n"
      "4000\n\n4000-5000 r-x\n4000-5000 r-xp\n"
      "fffffffffffffffffffff-5000 r-xp 00000000 00:00 0 /too long\n"
      "9000-a000 r-xp 0000");
  ASSERT_EQ(maps.size(), 4u);
  EXPECT_EQ(maps[0].path, "/tmp/x");
  EXPECT_TRUE(maps[0].deleted);
  EXPECT_EQ(maps[1].path, "");
  EXPECT_EQ(maps[2].path, "/usr/lib/a b.so");
  EXPECT_EQ(maps[2].inode, 42u);
  EXPECT_EQ(maps[2].offset, 0x1000u);
  EXPECT_EQ(FindMapping(maps, 0x7f0000002fff), &maps[2]);
  EXPECT_EQ(FindMapping(maps, 0x7f0000003000), nullptr);
  EXPECT_EQ(FindMapping(maps, 0), nullptr);
}

TEST(SymbolList, PerfMapLinesAndDamage) {
  const auto list = SymbolList::FromPerfMap(
      "1000 10 first\n2000 20 py::function with blanks:/a.py\n1000 8 later line counts\n"
      "3000\n3000 5\n3000 5 \nzz 5 no\n4000 0 empty\n5000 ffffffffffffffffff huge\n"
      "6000 ffffffffffffffff all\n");
  EXPECT_EQ(list.Find(0x1007), "later line counts");
  EXPECT_EQ(list.Find(0x1008), std::nullopt);
  EXPECT_EQ(list.Find(0x201f), "py::function with blanks:/a.py");
  EXPECT_EQ(list.Find(0xfff), std::nullopt);
  EXPECT_EQ(list.Find(0x3000), std::nullopt);
  EXPECT_EQ(SymbolList::FromPerfMap(std::string(100'000, '\0')).size(), 0u);
}

TEST(SymbolList, KernelSymbols) {
  const auto list = SymbolList::FromKallsyms(
      "ffffffff81000000 T _text\nffffffff81000100 t helper\t[module]\nffffffff81000200 D data\n"
      "ffffffff81000300 T last\n");
  EXPECT_EQ(list.Find(0xffffffff81000150), "helper");
  EXPECT_EQ(list.Find(0xffffffff81000250), "helper");  // data is no code: no end is known
  EXPECT_EQ(list.Find(0xffffffff81000301), "last");
  EXPECT_EQ(list.AddressOf("helper"), 0xffffffff81000100);
  EXPECT_EQ(list.AddressOf("data"), std::nullopt);
  EXPECT_TRUE(SymbolList::FromKallsyms("0000000000000000 T _text\n").empty());  // hidden
}

TEST(ReadableName, Table) {
  struct Case {
    std::string symbol, name;
  };
  std::string exploding = "_Z1f";
  for (int i = 0; i < 200; ++i) exploding += "1AIS_S_E";
  for (const Case& c : std::vector<Case>{{"main", "main"},
                                         {"f.constprop.0", "f"},
                                         {"memcpy@GLIBC_2.14", "memcpy"},
                                         {"_ZN8headrace6probes4FindEi", "headrace::probes::Find"},
                                         {"_ZNSt6vectorIiSaIiEE9push_backERKi",
                                          "std::vector<int, std::allocator<int> >::push_back"},
                                         {"_ZN1AclEi", "A::operator()"},
                                         {"_ZNK1A3getEv", "A::get"},
                                         {"_Znot a symbol", "_Znot a symbol"},
                                         {"a;b\nc", "a:b c"},
                                         {"_ZN99999999999999999999x", "_ZN99999999999999999999x"},
                                         {"_ZN1a2bc" + std::string(2000, 'I'), "a::bc"}}) {
    EXPECT_EQ(ReadableName(c.symbol), c.name);
  }
  EXPECT_LE(ReadableName(exploding).size(), 260u);
  EXPECT_LE(ReadableName(std::string(5000, 'x')).size(), 260u);
}

extern "C" __attribute__((noinline)) int FunctionToBeFound(int x) { return x * 3 + 1; }

TEST(Symboliser, FindsOwnFunctionsAndTheKernels) {
  volatile int x = FunctionToBeFound(1);
  (void)x;
  const Host host;
  Symboliser symboliser(host);
  symboliser.SetNow(MonotonicNs());
  symboliser.Look(getpid());
  const int64_t before_ns = OnceCpuNs();
  const auto name = [&] {
    return symboliser.Name(getpid(), reinterpret_cast<uintptr_t>(&FunctionToBeFound) + 2);
  };
  EXPECT_EQ(name(), "FunctionToBeFound");
  const int64_t once_ns = OnceCpuNs();
  EXPECT_GT(once_ns, before_ns) << "the symbols of a file are read";
  EXPECT_EQ(name(), "FunctionToBeFound");
  EXPECT_EQ(OnceCpuNs(), once_ns) << "once";
  EXPECT_EQ(symboliser.Name(getpid(), 1), "[unknown]");
  EXPECT_TRUE(symboliser.KernelName(1).starts_with("[kernel]"));
  EXPECT_EQ(symboliser.Name(999'999'999, 4096), "[process not seen alive]");
}

// A copy of the target in a folder of its own, which goes with the object.
class TargetCopy {
 public:
  TargetCopy() {
    std::string name = (std::filesystem::temp_directory_path() / "headrace_stack_XXXXXX").string();
    folder_ = mkdtemp(name.data());
    std::filesystem::copy_file(TargetPath("without"), path());
  }
  ~TargetCopy() { std::filesystem::remove_all(folder_); }
  std::string folder() const { return folder_; }
  std::string path() const { return folder_ + "/target"; }

 private:
  std::string folder_;
};

// Where function hot_40 of the target lies in a process that runs the file `path`; 0: nowhere.
uint64_t AddressOfHot40(const Host& host, int64_t pid, const std::string& path) {
  const auto image = ElfImage::Read(FileSource::Open(TargetPath("without")));
  if (!image) return 0;
  for (const Mapping& m : ReadMaps(host, pid)) {
    if (m.path != path) continue;
    for (uint64_t at = m.offset; at < m.offset + 65536; at += 4) {
      const auto address = image->AddressOf(at);
      const auto function = address ? image->FindFunction(*address) : std::nullopt;
      if (function && function->name == "hot_40") return m.start + at - m.offset;
    }
  }
  return 0;
}

TEST(Symboliser, NamesAfterTheProcessAndItsFileAreGone) {
  const TargetCopy copy;
  TargetProcess process("spin", "", copy.path());
  ASSERT_TRUE(process.ready());
  const int64_t pid = process.pid();
  const bool map_files = access(("/proc/" + std::to_string(pid) + "/map_files").c_str(), R_OK) == 0;
  std::filesystem::remove(copy.path());  // before anybody looked
  const Host host;
  Symboliser symboliser(host);
  symboliser.SetNow(MonotonicNs());
  symboliser.Look(pid);
  const uint64_t address = AddressOfHot40(host, pid, copy.path());
  ASSERT_NE(address, 0u) << "the target has no hot_40";
  for (const Mapping& m : ReadMaps(host, pid)) {
    if (m.path != copy.path()) continue;
    EXPECT_TRUE(m.deleted);
  }
  process.End();
  // /proc/PID/exe leads to it even where map_files may not be read.
  EXPECT_EQ(symboliser.Name(pid, address), "hot_40") << map_files;
}

// As `make install` leaves headrace: stripped, its symbols in .debug beside it.
TEST(Symboliser, NamesFromASymbolFileBesideTheProgram) {
  if (std::system("objcopy --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no objcopy here";
  const TargetCopy copy;
  const std::string apart =
      "cd " + copy.folder() +
      " && mkdir .debug && objcopy --only-keep-debug target .debug/target.debug && objcopy "
      "--strip-all --add-gnu-debuglink=.debug/target.debug target";
  ASSERT_EQ(std::system(apart.c_str()), 0);
  TargetProcess process("spin", "", copy.path());
  ASSERT_TRUE(process.ready());
  const int64_t pid = process.pid();
  const Host host;
  Symboliser symboliser(host);
  symboliser.SetNow(MonotonicNs());
  symboliser.Look(pid);
  const uint64_t address = AddressOfHot40(host, pid, copy.path());
  ASSERT_NE(address, 0u) << "the target has no hot_40";
  EXPECT_EQ(symboliser.Name(pid, address), "hot_40");
}

TEST(ElfImage, KnowsTheTarget) {
  const auto image = ElfImage::Read(FileSource::Open(TargetPath("without")));
  ASSERT_TRUE(image.has_value());
  EXPECT_TRUE(image->has_symbol_table());
  EXPECT_EQ(image->build_id().size() % 2, 0u);
  EXPECT_TRUE(image->eh_frame_header().has_value());
  EXPECT_GT(image->num_functions(), 10u);
}

TEST(ElfImage, IsNoElfFile) {
  for (const std::string& bytes :
       {std::string(),
        std::string("\x7f"
                    "ELF"),
        std::string(64, '\xff'), std::string(100'000, '\0'), std::string("#!/bin/sh\n")}) {
    EXPECT_FALSE(ElfImage::Read(std::make_shared<MemorySource>(bytes)).has_value());
  }
  EXPECT_FALSE(ElfImage::Read(nullptr).has_value());
  EXPECT_EQ(FileSource::Open("/"), nullptr);
  EXPECT_EQ(FileSource::Open("/dev/zero"), nullptr);
  EXPECT_EQ(FileSource::Open("/nonexistent"), nullptr);
}

// Everything that can be asked of a file, whatever is in it.
void AskEverything(const std::string& bytes, uint64_t step) {
  auto image = ElfImage::Read(std::make_shared<MemorySource>(bytes));
  if (!image) return;
  auto shared = std::make_shared<ElfImage>(std::move(*image));
  Unwinder unwinder(64);
  std::vector<uint8_t> memory(512, 0x41);
  for (uint64_t at = 0; at < bytes.size(); at += step) {
    const auto address = shared->AddressOf(at);
    if (!address) continue;
    shared->FindFunction(*address);
    FindUnwindRule(*shared, *address);
    Registers registers;
    registers.pc = *address;
    for (int r = 0; r < 17; ++r) registers.Set(r, 0x1000);
    const auto stack = unwinder.Unwind(registers, {0x1000, memory}, [&](uint64_t) {
      return LoadedImage{shared, 0};
    });
    EXPECT_LE(stack.addresses.size(), 127u);
  }
}

TEST(ElfImage, DamageNeverHarms) {
  const std::string good = FileBytes(TargetPath("without"));
  ASSERT_GT(good.size(), 1000u);
  AskEverything(good, 16);
  const uint64_t seed = TestSeed();
  SCOPED_TRACE("HEADRACE_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 60; ++round) {
    std::string bad = good;
    if (round % 3 == 0) bad.resize(random() % bad.size());
    const size_t changes = 1 + random() % 6;
    // Half of the changes to headers and tables, where they hurt.
    for (size_t i = 0; i < changes && !bad.empty(); ++i) {
      const size_t within = i % 2 == 0 ? std::min<size_t>(bad.size(), 1024) : bad.size();
      bad[random() % within] = static_cast<char>(random());
    }
    AskEverything(bad, 97);
  }
  // And in the unwind tables alone.
  const auto image = ElfImage::Read(std::make_shared<MemorySource>(good));
  for (int round = 0; round < 60; ++round) {
    std::string bad = good;
    for (const auto& section : {image->eh_frame_header(), image->eh_frame()}) {
      for (int i = 0; section && section->size > 0 && i < 16; ++i) {
        bad[section->offset + random() % section->size] = static_cast<char>(random());
      }
    }
    AskEverything(bad, 97);
  }
}

TEST(StackFolder, TextsBeyondTheLimitKeepTheirTimeAndAreCounted) {
  const Host host;
  FoldLimits limits;
  limits.max_stacks = 2;
  StackFolder folder(host, "cpu", limits);
  for (int i = 0; i < 10; ++i) {
    folder.Add({1, 0, "group" + std::to_string(i), ""}, {}, 1, 100);
  }
  folder.Add({1, 0, "group0", ""}, {}, 1, 100);
  RecordingSink sink;
  folder.Emit(sink);
  EXPECT_EQ(sink.Samples(), 11);
  EXPECT_EQ(sink.lost["distinct cpu stacks"].first, 8);
  EXPECT_EQ(sink.lost["distinct cpu stacks"].second, 11);
  RecordingSink again;
  folder.Emit(again);
  EXPECT_TRUE(again.stacks.empty());  // nothing changed
}

TEST(StackFolder, APeriodStillOpenIsNotCountedTwiceWhenItEnds) {
  const Host host;
  StackFolder folder(host, "off_cpu");
  const SampleOrigin origin{1, std::nullopt, "reader", "[storage]"};
  const auto time_after = [&] {
    RecordingSink sink;
    folder.Emit(sink);
    EXPECT_LE(sink.stacks.size(), 1u);
    return sink.stacks.empty() ? -1 : sink.stacks.begin()->second.time_ns;
  };
  folder.AddOpen(origin, {}, 1, 100);
  EXPECT_EQ(time_after(), 100);
  folder.AddOpen(origin, {}, 1, 200);
  EXPECT_EQ(time_after(), 200);
  folder.Add(origin, {}, 1, 250);
  EXPECT_EQ(time_after(), 250);
  folder.AddOpen(origin, {}, 1, 10);
  EXPECT_EQ(time_after(), 260);
  folder.Add(origin, {}, 1, 5);  // it never falls, whatever the clocks say
  EXPECT_EQ(time_after(), 260);
  EXPECT_EQ(time_after(), -1);  // nothing new
}

}  // namespace
}  // namespace headrace::probes::stack

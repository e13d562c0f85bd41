// The function of a compiled program in which its threads compute.
#include "analysis/outside/native_place.h"

#include <gtest/gtest.h>

#include <string>

#include "analysis/outside/outside.h"
#include "tests/analysis/outside_run.h"

namespace headrace::analysis {
namespace {

constexpr const char* kPoolThread =
    "feed;__GI___clone3;start_thread;[libstdc++.so.6.0.30+0xd4000];";
constexpr const char* kFirstThread = "feed;_start;__libc_start_main;__libc_start_call_main;main;";

// A main thread that waits for threads of its own program, which compute.
struct Compiled {
  Compiled() {
    seen.Process(100, 1, "feed", "./feed");
    seen.OnCpu(100, "feed (main)", 0.1).OnCpu(100, "feed", 0.99);
    seen.Waits(100, "feed (main)", "lock", 0.9, "100/feed");
  }
  Compiled& Samples(const std::string& folded, int64_t count) {
    SampleOnCpu("feed", folded, 0.02 * static_cast<double>(count), &seen.view);
    return *this;
  }
  std::optional<std::string> Place(size_t unit = 1) const {
    const Outside outside = LookFromOutside(seen.view);
    return PlaceOnCpu(seen.view, outside, outside.units.at(unit));
  }
  OutsideRun seen;
};

TEST(NativePlace, IsTheInnermostFunctionWithMostOfTheSamples) {
  Compiled program;
  program.Samples(std::string(kPoolThread) + "Load;void Augment<float>", 60)
      .Samples(std::string(kPoolThread) + "Load;void Augment<float>;__expf_fma", 30)
      .Samples(std::string(kPoolThread) + "Load;Read", 10)
      .Samples(std::string(kFirstThread) + "main_loop;ns::(anonymous namespace)::Step", 20);
  EXPECT_EQ(program.Place(), "Augment");
  EXPECT_EQ(program.Place(0), "ns::Step");
  // Where the C library's own functions have no names.
  Compiled stripped;
  stripped.Samples("feed;[libc.so.6+0x8b000];float dot<float>", 60);
  EXPECT_EQ(stripped.Place(), "dot");
  EXPECT_FALSE(stripped.Place(0));
}

TEST(NativePlace, SpreadSamplesNameTheirCaller) {
  Compiled program;
  program.Samples(std::string(kPoolThread) + "rows::load::h84cbfa0a6f9fad9b;rows::parse", 40)
      .Samples(std::string(kPoolThread) + "rows::load::h84cbfa0a6f9fad9b;rows::decode", 40)
      .Samples(std::string(kPoolThread) + "rows::load::h84cbfa0a6f9fad9b;rows::sort", 20);
  EXPECT_EQ(program.Place(), "rows::load");
}

TEST(NativePlace, FewSamplesMainItselfAndPythonNameNothing) {
  EXPECT_FALSE(Compiled().Samples(std::string(kPoolThread) + "Augment", 5).Place());
  EXPECT_FALSE(Compiled().Samples("feed;_start;__libc_start_main;main;std::vector", 50).Place(0));
  EXPECT_FALSE(Compiled()
                   .Samples(std::string(kPoolThread) + "_PyEval_EvalFrameDefault;Augment", 50)
                   .Place());
}

TEST(NativePlace, StandsInTheVerdict) {
  Compiled program;
  program.Samples(std::string(kPoolThread) + "Augment", 60);
  EXPECT_EQ(LookFromOutside(program.seen.view).compute_place, "Augment");
}

// A function that copies or clears comes to the kernel only where memory is touched first.
TEST(NewMemory, IsWhatTheKernelClearsForThem) {
  const auto ratio = [](const std::string& ends, int64_t count) {
    OutsideRun seen;
    seen.Process(100, 1, "feed", "./feed").OnCpu(100, "feed (main)", 0.99);
    SampleOnCpu("feed", kFirstThread + ends, 0.02 * static_cast<double>(count), &seen.view);
    SampleOnCpu("feed", std::string(kFirstThread) + "Step", 0.8, &seen.view);
    return LookFromOutside(seen.view).new_memory_ratio;
  };
  for (const char* ends :
       {"Grid;__memset_avx512_unaligned_erms;[kernel]", "cfree;__munmap;[kernel]",
        "Grid;__memset_avx2;asm_exc_page_fault_[k];exc_page_fault_[k]",
        "Grid;asm_exc_page_fault_[k];clear_page_erms_[k]"}) {
    SCOPED_TRACE(ends);
    const auto seen = ratio(ends, 60);
    ASSERT_TRUE(seen);
    EXPECT_NEAR(*seen, 0.6, 0.01);
    EXPECT_FALSE(ratio(ends, 10)) << "hardly";
  }
  for (const char* ends : {"Save;write;[kernel]", "memtable_read;[kernel]",
                           "Rows;__memcpy_avx_unaligned;[kernel]",  // of a mapped file, perhaps
                           "Rows;__memset_avx2;asm_exc_page_fault_[k];filemap_map_pages_[k]",
                           "Rows;asm_exc_page_fault_[k];do_wp_page_[k]"}) {
    EXPECT_FALSE(ratio(ends, 60)) << ends;
  }
  EXPECT_FALSE(ratio("Grid;__memset_avx512_unaligned_erms", 60)) << "it clears old memory itself";
}

}  // namespace
}  // namespace headrace::analysis

// Loops of a Python program's own files, marked in the frames of sampled stacks.
#include "probes/stack/python_loops.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace headrace::probes::stack {
namespace {

constexpr char kProgram[] = R"(import torch

def batches(paths):
    for path in paths:
        yield load(path)

def main():
    data = make()
    for epoch in range(3):
        # for: not a loop
        for batch in batches(data):
            x = shape(
                batch)
            if x:
                step(x)
        report()
    it = iter(data)
    while True:
        batch = next(it)
        self.next(batch)
    async for late in it:
        take(late)
    save()

class Model:
    for_all = 1
    def forward(self):
        return formatted(1)
)";

TEST(PythonLoops, ALineSaysWhetherItSleepsOrWaitsAtALock) {
  const std::vector<LoopOfLine> lines = FindLoops(
      "with self.write_lock:\n"
      "    time.sleep(0.1)\n"
      "await asyncio.sleep(1)\n"
      "gate.acquire()\n"
      "with open(clock) as f:\n"
      "oversleep(3)\n"
      "with Semaphore(2):\n"
      "async with lock:\n"
      "return self.free.acquire()\n"
      "reacquire(3)\n");
  const bool sleeps[] = {false, true, false, false, false, false, false, false, false, false};
  const bool locks[] = {true, false, false, true, false, false, true, true, true, false};
  ASSERT_EQ(lines.size(), std::size(locks));
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i].sleeps, sleeps[i]) << i;
    EXPECT_EQ(lines[i].locks, locks[i]) << i;
  }
}

TEST(PythonLoops, ALineIsInTheInnermostLoopOfItsFunction) {
  const std::vector<LoopOfLine> lines = FindLoops(kProgram);
  const auto loop = [&](size_t line) { return lines.at(line - 1).loop; };
  EXPECT_EQ(loop(1), 0u);
  EXPECT_EQ(loop(4), 4u) << "the loop's own line";
  EXPECT_EQ(loop(5), 4u);
  EXPECT_EQ(loop(8), 0u) << "before the loop";
  EXPECT_EQ(loop(9), 9u);
  EXPECT_EQ(loop(11), 11u);
  EXPECT_EQ(loop(12), 11u);
  EXPECT_EQ(loop(13), 11u) << "a statement's second line";
  EXPECT_EQ(loop(15), 11u) << "below an if";
  EXPECT_EQ(loop(16), 9u) << "of the outer loop";
  EXPECT_EQ(loop(17), 0u) << "after both";
  EXPECT_EQ(loop(19), 18u);
  const auto asks = [&](size_t line) { return lines.at(line - 1).asks; };
  EXPECT_TRUE(asks(4));
  EXPECT_TRUE(asks(11));
  EXPECT_FALSE(asks(18)) << "a while asks for nothing";
  EXPECT_TRUE(asks(19));
  EXPECT_FALSE(asks(20)) << "a method of that name";
  EXPECT_EQ(lines[11].outermost, 9u);
  const std::vector<LoopOfLine> short_loop = FindLoops("for batch in batches: train(batch)\n");
  EXPECT_EQ(short_loop[0].loop, 1u);
  EXPECT_FALSE(short_loop[0].asks) << "its body is in the same line";
  EXPECT_TRUE(FindLoops("for batch in batches:  # all\n")[0].asks);
  EXPECT_EQ(loop(21), 21u);
  EXPECT_EQ(loop(22), 21u);
  EXPECT_EQ(loop(23), 0u);
  EXPECT_EQ(loop(28), 0u) << "names that begin with the words of loops";
}

TEST(PythonLoops, OnlyFilesOfTheProgramAreMarked) {
  std::string name = testing::TempDir() + "/python_loops.XXXXXX";
  ASSERT_NE(mkdtemp(name.data()), nullptr);
  const std::filesystem::path folder = name;
  std::ofstream(folder / "train.py") << kProgram;
  ASSERT_EQ(mkfifo((folder / "pipe.py").c_str(), 0600), 0);
  PythonLoops loops({"/nowhere", name});
  EXPECT_EQ(loops.Mark("<module> (train.py:23);main (train.py:19);__next__ (torch/x.py:7)"),
            "<module> (train.py:23, no loop);main (train.py:19, loop 18, next);"
            "__next__ (torch/x.py:7)");
  EXPECT_EQ(loops.Mark("main (train.py:12);batches (train.py:4)"),
            "main (train.py:12, loop 11 of 9);batches (train.py:4, loop 4, next)");
  // A source that was changed after the program had read it says nothing of it.
  PythonLoops changed({name});
  changed.IgnoreChangedAfter(1'000'000'000);
  EXPECT_EQ(changed.Mark("main (train.py:12)"), "main (train.py:12)");
  // What is no line of a file stays as it is.
  for (const char* frames :
       {"main (train.py:999)", "main (train.py:0)", "main (train.py:)", "main (train.py)", "main",
        "", "f (<string>:1)", "f (pipe.py:1)", "main (train.py:18446744073709551616)",
        "[other stacks]", "main (../train.py:4", "a (b:c:4)"}) {
    EXPECT_EQ(loops.Mark(frames), frames);
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace headrace::probes::stack

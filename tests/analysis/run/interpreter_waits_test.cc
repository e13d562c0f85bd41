// Waits for Python's interpreter, by stacks off the CPU.
#include "analysis/run/interpreter_waits.h"

#include <gtest/gtest.h>

#include <string>

#include "analysis/outside/outside.h"
#include "tests/analysis/outside_run.h"

namespace headrace::analysis {
namespace {

// Off the CPU, stacks name the function in which CPython waits for its lock.
TEST(InterpreterWaits, AThreadThatWaitsForTheInterpreterIsLimitedByIt) {
  const auto limit = [](double waits_s, const char* where) {
    OutsideRun run(10, 1.2);
    run.Process(100, 1, "python", "python train.py").OnCpu(100, "python (main)", 0.55);
    run.Waits(100, "python (main)", "lock", 0.45, "100/python");
    for (int t = 0; t < 3; ++t) {
      run.OnCpu(100, "python", 0.15);
      run.Waits(100, "python", "lock", 0.85, "100/python (main)");
    }
    RunView view = run.view;
    StackRow row;
    row.kind = "off_cpu";
    row.process_id = 100;
    row.thread = "python";
    row.folded = std::string("python;[lock];") + where +
                 ";_PyEval_EvalFrameDefault;PyEval_RestoreThread;take_gil;pthread_cond_timedwait";
    row.samples_count = 100;
    row.time_ns = static_cast<int64_t>(waits_s * 1e9);
    view.stacks.push_back(row);
    return LookFromOutside(view).findings[0].limit;
  };
  EXPECT_EQ(limit(4, "_start;__libc_start_main"), OutsideLimit::kInterpreter);
  EXPECT_NE(limit(0.5, "_start;__libc_start_main"), OutsideLimit::kInterpreter) << "too little";
  EXPECT_NE(limit(4, "__GI___clone3;start_thread"), OutsideLimit::kInterpreter)
      << "another thread's";
  EXPECT_EQ(limit(4, "_start;__libc_start_main_impl"), OutsideLimit::kInterpreter);
}

}  // namespace
}  // namespace headrace::analysis

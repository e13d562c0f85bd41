// Runs seen from outside, written by hand: processes, threads' times and who ended their waits,
// with some noise from slice to slice.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "analysis/run/run_view.h"
#include "analysis/statistics/statistics.h"

namespace headrace::analysis {

class OutsideRun {
 public:
  explicit OutsideRun(double seconds = 10, double cores_busy = 1.2) {
    view.run.run_id = 7;
    view.run.name = "seen";
    view.run.state = "complete";
    view.run.duration_ns = static_cast<int64_t>(seconds * 1e9);
    view.run.cores_count = 4;
    view.course_slice_ns = 500'000'000;
    view.hosts.push_back({"host_busy_cores", "cores", "counter", cores_busy, {}, {}, {}, "", ""});
    view.hosts.push_back({"host_cores", "cores", "counter", 4.0, {}, {}, {}, "", ""});
    view.metrics = {"on_cpu_ns", "runnable_ns", "off_cpu_ns"};
  }

  OutsideRun& Process(int64_t pid, int64_t parent, const std::string& name,
                      const std::string& command = "") {
    ProcessRow process;
    process.process_id = process.pid = pid;
    process.parent_pid = parent;
    process.process = name;
    process.command = command;
    process.role = view.processes.empty() ? "root" : "child";
    view.processes.push_back(process);
    return *this;
  }

  // `share` of the run's time, in every slice within +-`noise` of it.
  OutsideRun& Add(const std::string& metric, int64_t pid, const std::string& thread,
                  const std::string& cause, double share, const std::string& subject = "",
                  double noise = 0.1) {
    const auto slices = view.run.duration_ns / view.course_slice_ns;
    for (int64_t s = 0; s < slices; ++s) {
      const double factor = 1 + noise * (2 * random_.Uniform() - 1);
      const double value = metric == "wakeups_count"
                               ? share
                               : share * factor * static_cast<double>(view.course_slice_ns);
      view.course.push_back({s, metric, pid, thread, subject, cause, value});
    }
    return *this;
  }
  OutsideRun& OnCpu(int64_t pid, const std::string& thread, double share) {
    return Add("on_cpu_ns", pid, thread, "", share);
  }
  OutsideRun& Runnable(int64_t pid, const std::string& thread, double share) {
    return Add("runnable_ns", pid, thread, "", share);
  }
  OutsideRun& Blocked(int64_t pid, const std::string& thread, const std::string& cause,
                      double share) {
    return Add("off_cpu_ns", pid, thread, cause, share);
  }
  // A wait of `pid`/`thread` that `by` ("PID/THREAD") ends, with the time it takes.
  OutsideRun& Waits(int64_t pid, const std::string& thread, const std::string& cause, double share,
                    const std::string& by) {
    Blocked(pid, thread, cause, share);
    Add("wakeups_count", pid, thread, cause, 50, by);
    if (timed_) Add("wakeup_wait_ns", pid, thread, cause, share, by);
    return *this;
  }
  // Leaves the time out of what follows: only counts of wake-ups are known.
  OutsideRun& CountsOnly() {
    timed_ = false;
    return *this;
  }

  RunView view;

 private:
  bool timed_ = true;
  Random random_{11};
};

// A trainer with `workers` loader processes. Shares of the trainer: on CPU, stalled; of each
// worker: on CPU, blocked on storage, waiting for requests.
inline OutsideRun Loader(int workers, double trainer_cpu, double stall, double worker_cpu,
                         double worker_storage, double worker_idle, double cores_busy = 1.2,
                         bool timed = true) {
  OutsideRun run(10, cores_busy);
  if (!timed) run.CountsOnly();
  run.Process(100, 1, "python", "python train.py");
  run.OnCpu(100, "python (main)", trainer_cpu);
  run.OnCpu(100, "python", 0.01);  // threads that feed the index queues
  for (int w = 0; w < workers; ++w) {
    const int64_t pid = 200 + w;
    const std::string feeder = std::to_string(pid) + "/pt_data_worker";
    run.Process(pid, 100, "python");
    run.OnCpu(pid, "pt_data_worker (main)", worker_cpu);
    run.Runnable(pid, "pt_data_worker (main)", 0.01);
    if (worker_storage > 0) run.Blocked(pid, "pt_data_worker (main)", "storage", worker_storage);
    run.Waits(pid, "pt_data_worker (main)", "poll", worker_idle, "100/python");
    run.OnCpu(pid, "pt_data_worker", 0.01);
    run.Waits(pid, "pt_data_worker", "lock", 0.98, std::to_string(pid) + "/pt_data_worker (main)");
    run.Waits(100, "python (main)", "poll", stall / workers, feeder);
    run.Waits(100, "python", "lock", 0.9 / workers, "100/python (main)");
  }
  return run;
}

// A sampled Python stack of a thread of the trainer's process, ten times a second.
inline void Sample(const std::string& thread, const std::string& frames, double seconds,
                   RunView* view) {
  if (seconds <= 0) return;
  StackRow row;
  row.kind = "python";
  row.process_id = 100;
  row.thread = thread;
  row.folded = thread + ";" + frames;
  row.samples_count = static_cast<int64_t>(10 * seconds);
  row.time_ns = static_cast<int64_t>(seconds * 1e9);
  view->stacks.push_back(row);
}

// A sampled native stack on the CPU of a thread of that process, fifty times a second.
inline void SampleOnCpu(const std::string& thread, const std::string& folded, double seconds,
                        RunView* view) {
  StackRow row;
  row.kind = "cpu";
  row.process_id = 100;
  row.thread = thread;
  row.folded = folded;
  row.samples_count = static_cast<int64_t>(50 * seconds);
  row.time_ns = static_cast<int64_t>(seconds * 1e9);
  view->stacks.push_back(row);
}

// Sampled stacks of the trainer's main thread: seconds in its step, in a sampler, waiting for a
// batch.
inline RunView WithStacks(OutsideRun run, double step_s, double sampler_s, double waits_s) {
  const std::string main = "MainThread;<module> (train.py:40);main (train.py:30)";
  const std::string next =
      main + ";_BaseDataLoaderIter.__next__ (torch/utils/data/dataloader.py:725)";
  const std::pair<std::string, double> stacks[] = {
      {"MainThread;<module> (train.py:1);_find_and_load (<frozen importlib._bootstrap>:1176)", 4},
      {main + ";Tensor.backward (torch/_tensor.py:623)", step_s},
      {next + ";_BaseDataLoaderIter._next_index (torch/utils/data/dataloader.py:715);"
              "ByWeight.__iter__ (train.py:9);choice (numpy/random.py:7)",
       sampler_s},
      {next + ";Queue.get (multiprocessing/queues.py:113);_ConnectionBase.poll "
              "(multiprocessing/connection.py:257)",
       waits_s}};
  for (const auto& [folded, seconds] : stacks) {
    StackRow row;
    row.kind = "python";
    row.process_id = 100;
    row.thread = "MainThread";
    row.folded = folded;
    row.samples_count = static_cast<int64_t>(10 * seconds);
    row.time_ns = static_cast<int64_t>(seconds * 1e9);
    if (seconds > 0) run.view.stacks.push_back(row);
  }
  return run.view;
}

}  // namespace headrace::analysis

// Synthetic operators: known costs, for pipelines whose bottleneck is known before anything is
// measured.
//   spin   burns CPU time, measured by the thread's CPU clock, so that contention does not shrink
//   the work sleep  blocks, as on a remote call touch  reads and writes this many bytes of memory
//   lock   holds a named lock shared by all threads
//   read   reads bytes of a file through a named device of limited rate
#include <algorithm>
#include <any>
#include <cstring>
#include <functional>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "probes/account/account.h"
#include "reader/pipeline/operator.h"
#include "reader/pipeline/spec/value.h"

namespace headrace::reader {
namespace {

// The cost of an operator that takes time, and of one that takes bytes.
Cost ParseTime(const SpecValue& table, const std::string& kind) {
  Cost cost;
  cost.mean = table[kind].Duration(kind);
  ParseRandomness(table, &cost);
  return cost;
}
Cost ParseSize(const SpecValue& table, const std::string& kind) {
  Cost cost;
  cost.mean = table[kind].Bytes(kind);
  ParseRandomness(table, &cost);
  return cost;
}

// Burns `cpu_ns` of this thread's CPU time, or until stopped. Polls the CPU clock about every 20 us
// of work.
void Spin(double cpu_ns, const StopSignal& stop) {
  const int64_t deadline = ThreadCpuNs() + static_cast<int64_t>(cpu_ns);
  volatile uint64_t sink = 0;
  while (ThreadCpuNs() < deadline && !stop.stopped()) {
    uint64_t x = sink;
    for (int i = 0; i < 4000; ++i) x = x * 6364136223846793005u + 1442695040888963407u;
    sink = x;
  }
}

class SyntheticOperator : public Operator {
 public:
  SyntheticOperator(const Cost& cost, const OperatorPlan& plan, const OperatorContext& context)
      : cost_(cost), stop_(context.stop), stream_(std::hash<std::string>{}(plan.spec.name)) {}

  void Process(Element&& element, const Emit& emit) final {
    Work(cost_.Draw(element.seed, stream_), &element);
    emit(std::move(element));
  }

 protected:
  // `amount` is the drawn cost: nanoseconds, or bytes.
  virtual void Work(double amount, Element* element) = 0;
  StopSignal* stop() const { return stop_; }

 private:
  Cost cost_;
  StopSignal* stop_;
  uint64_t stream_;
};

class SpinOperator final : public SyntheticOperator {
 public:
  SpinOperator(const OperatorPlan& plan, const OperatorContext& context)
      : SyntheticOperator(std::any_cast<const Cost&>(plan.spec.keys), plan, context) {}

 private:
  void Work(double amount, Element*) override { Spin(amount, *stop()); }
};

HR_OPERATOR("spin", SpinOperator,
            {.order = 1000,
             .keys = {"cv", "distribution"},
             .needs = "a cost: write { spin = \"...\" }",
             .parse = [](const SpecValue& table, const std::string& kind) -> std::any {
               return ParseTime(table, kind);
             }});

class SleepOperator final : public SyntheticOperator {
 public:
  SleepOperator(const OperatorPlan& plan, const OperatorContext& context)
      : SyntheticOperator(std::any_cast<const Cost&>(plan.spec.keys), plan, context) {}

 private:
  void Work(double amount, Element*) override { stop()->SleepFor(static_cast<int64_t>(amount)); }
};

HR_OPERATOR("sleep", SleepOperator,
            {.order = 1010,
             .keys = {"cv", "distribution"},
             .needs = "a cost: write { sleep = \"...\" }",
             .parse = [](const SpecValue& table, const std::string& kind) -> std::any {
               return ParseTime(table, kind);
             }});

class TouchOperator final : public SyntheticOperator {
 public:
  TouchOperator(const OperatorPlan& plan, const OperatorContext& context)
      : SyntheticOperator(std::any_cast<const Cost&>(plan.spec.keys), plan, context) {}

 private:
  void Work(double amount, Element*) override {
    const auto bytes = static_cast<size_t>(amount);
    if (memory_.size() < bytes) memory_.Resize(bytes);
    for (size_t at = 0; at + 64 <= bytes; at += 64)
      memory_.data()[at] += 1;  // one read and one write per cache line
  }
  Buffer memory_;
};

HR_OPERATOR("touch", TouchOperator,
            {.order = 1020,
             .keys = {"cv", "distribution"},
             .needs = "a cost: write { touch = \"...\" }",
             .parse = [](const SpecValue& table, const std::string& kind) -> std::any {
               return ParseSize(table, kind);
             }});

struct LockKeys {
  Cost cost;
  std::string lock;     // shared by all operators that name it
  bool sleeps = false;  // instead of spinning while it holds the lock
};

std::any ParseLock(const SpecValue& table, const std::string& kind) {
  LockKeys keys;
  keys.cost = ParseTime(table, kind);
  const std::string name = table.Text("name", "");
  keys.lock = table.Text("lock_name", name.empty() ? "lock" : name);
  const std::string hold = table.Text("hold", "spin");
  if (hold != "spin" && hold != "sleep") table["hold"].Fail("hold is \"spin\" or \"sleep\"");
  keys.sleeps = hold == "sleep";
  return keys;
}

class LockOperator final : public SyntheticOperator {
 public:
  LockOperator(const OperatorPlan& plan, const OperatorContext& context)
      : LockOperator(std::any_cast<const LockKeys&>(plan.spec.keys), plan, context) {}

 private:
  LockOperator(const LockKeys& keys, const OperatorPlan& plan, const OperatorContext& context)
      : SyntheticOperator(keys.cost, plan, context),
        lock_(context.resources->Lock(keys.lock)),
        sleeps_(keys.sleeps) {}

  void Work(double amount, Element*) override {
    hr_resource_wait_begin(lock_->account);
    std::lock_guard guard(lock_->mutex);
    hr_resource_held(lock_->account);
    if (sleeps_) {
      stop()->SleepFor(static_cast<int64_t>(amount));
    } else {
      Spin(amount, *stop());
    }
    hr_resource_released(lock_->account, 0);
  }
  SharedLock* lock_;
  bool sleeps_;
};

HR_OPERATOR("lock", LockOperator,
            {.order = 1030,
             .keys = {"cv", "distribution", "lock_name", "hold"},
             .needs = "a cost: write { lock = \"...\" }",
             .parse = ParseLock});

struct ReadKeys {
  Cost cost;
  std::string device;  // shared by all operators that name it
  double bytes_per_second = 0;
  std::string file;  // absolute, or empty
};

std::any ParseRead(const SpecValue& table, const std::string& kind) {
  ReadKeys keys;
  keys.cost = ParseSize(table, kind);
  const std::string name = table.Text("name", "");
  keys.device = table.Text("device", name.empty() ? "device" : name);
  const SpecValue rate = table["rate"];
  if (!rate) table.Fail("read needs a rate such as rate = \"200MB/s\"");
  keys.bytes_per_second = rate.Rate("rate");
  const std::string file = table.Text("file", "");
  if (!file.empty()) keys.file = table.Path(file);
  return keys;
}

class ReadOperator final : public SyntheticOperator {
 public:
  ReadOperator(const OperatorPlan& plan, const OperatorContext& context)
      : ReadOperator(std::any_cast<const ReadKeys&>(plan.spec.keys), plan, context) {}

 private:
  ReadOperator(const ReadKeys& keys, const OperatorPlan& plan, const OperatorContext& context)
      : SyntheticOperator(keys.cost, plan, context),
        device_(context.resources->Device(keys.device, keys.bytes_per_second)) {
    if (keys.file.empty()) return;
    file_ = std::make_unique<File>(keys.file);
    if (file_->size() == 0) throw Error(ExitCode::kBadData, "0 bytes, nothing to read", keys.file);
  }

  void Work(double amount, Element* element) override {
    const auto bytes = static_cast<uint64_t>(amount);
    if (!device_->Serve(bytes, stop())) return;
    // The bytes are really moved: from the file, from its start again and again, or from zeroed
    // memory without one.
    memory_.Resize(std::min<uint64_t>(bytes, 1 << 20));
    for (uint64_t done = 0; done < bytes;) {
      uint64_t part = std::min<uint64_t>(bytes - done, memory_.size());
      if (file_) {
        const uint64_t at = (element->seed + done) % file_->size();
        part = std::min(part, file_->size() - at);
        file_->ReadAt(at, memory_.span().first(part));
      } else {
        std::memset(memory_.data(), static_cast<int>(done), part);
      }
      done += part;
    }
    element->bytes = bytes;
  }
  SharedDevice* device_;
  std::unique_ptr<File> file_;
  Buffer memory_;
};

HR_OPERATOR("read", ReadOperator,
            {.order = 1040,
             .keys = {"cv", "distribution", "file", "rate", "device"},
             .needs = "a cost: write { read = \"...\" }",
             .parse = ParseRead});

}  // namespace
}  // namespace headrace::reader

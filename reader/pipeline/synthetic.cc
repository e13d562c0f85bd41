// Synthetic operators: known costs, for pipelines whose bottleneck is known before anything is
// measured.
//   spin   burns CPU time, measured by the thread's CPU clock, so that contention does not shrink
//   the work sleep  blocks, as on a remote call touch  reads and writes this many bytes of memory
//   lock   holds a named lock shared by all threads
//   read   reads bytes of a file through a named device of limited rate
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "probes/account/account.h"
#include "reader/pipeline/operator.h"

namespace headrace::reader {
namespace {

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
  SyntheticOperator(const OperatorPlan& plan, const OperatorContext& context)
      : cost_(plan.spec.cost),
        stop_(context.stop),
        stream_(std::hash<std::string>{}(plan.spec.name)) {}

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
  using SyntheticOperator::SyntheticOperator;
  void Work(double amount, Element*) override { Spin(amount, *stop()); }
};

class SleepOperator final : public SyntheticOperator {
  using SyntheticOperator::SyntheticOperator;
  void Work(double amount, Element*) override { stop()->SleepFor(static_cast<int64_t>(amount)); }
};

class TouchOperator final : public SyntheticOperator {
  using SyntheticOperator::SyntheticOperator;
  void Work(double amount, Element*) override {
    const auto bytes = static_cast<size_t>(amount);
    if (memory_.size() < bytes) memory_.Resize(bytes);
    for (size_t at = 0; at + 64 <= bytes; at += 64)
      memory_.data()[at] += 1;  // one read and one write per cache line
  }
  Buffer memory_;
};

class LockOperator final : public SyntheticOperator {
 public:
  LockOperator(const OperatorPlan& plan, const OperatorContext& context)
      : SyntheticOperator(plan, context),
        lock_(context.resources->Lock(plan.spec.resource)),
        sleeps_(plan.spec.hold_sleeps) {}

 private:
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

class ReadOperator final : public SyntheticOperator {
 public:
  ReadOperator(const OperatorPlan& plan, const OperatorContext& context)
      : SyntheticOperator(plan, context),
        device_(context.resources->Device(plan.spec.resource, plan.spec.bytes_per_second)) {
    if (!plan.spec.file.empty()) {
      file_ = std::make_unique<File>(plan.spec.file);
      if (file_->size() == 0)
        throw Error(ExitCode::kBadData, "0 bytes, nothing to read", plan.spec.file);
    }
  }

 private:
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

}  // namespace

std::unique_ptr<Operator> MakeSyntheticOperator(const OperatorPlan& plan,
                                                const OperatorContext& context) {
  switch (plan.spec.kind) {
    case OperatorKind::kSpin:
      return std::make_unique<SpinOperator>(plan, context);
    case OperatorKind::kSleep:
      return std::make_unique<SleepOperator>(plan, context);
    case OperatorKind::kTouch:
      return std::make_unique<TouchOperator>(plan, context);
    case OperatorKind::kLock:
      return std::make_unique<LockOperator>(plan, context);
    case OperatorKind::kRead:
      return std::make_unique<ReadOperator>(plan, context);
    default:
      throw Error(ExitCode::kUsage,
                  fmt::format("'{}' is not a synthetic operator", plan.spec.name));
  }
}

}  // namespace headrace::reader

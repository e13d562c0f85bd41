// What the pages call the parts of a run that was seen from outside.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "analysis/advice/statements.h"
#include "analysis/outside/outside.h"

namespace headrace::dashboards {

// Whether what workers of PyTorch spend on their start is most of what they do.
bool StartsWorkers(const analysis::Outside& seen);

// Whether those that limit are workers of PyTorch that are started again and again.
bool AreWorkersShortLived(const analysis::Outside& seen);

// Whether those that limit are other processes, which end soon and are followed by others.
bool AreProcessesShortLived(const analysis::Outside& seen);

// Whether those that limit unpickle: threads what the processes of a pool send, or processes their
// tasks.
bool Unpickles(const analysis::Outside& seen);

// Whether they are a pool's processes that mostly unpickle their tasks.
bool UnpicklesTasks(const analysis::Outside& seen);

// Another process than the consumer's that those that limit, processes as well, ask for what they
// need, and for whose answers they wait a good part of their time.
struct Asked {
  std::string name;  // "process python (200)"
  double wait_ratio = 0;
};
std::optional<Asked> AskedProcess(const analysis::Outside& seen);

// What the thread that limits does for a multiprocessing.Pool; empty: it is none of a pool's own.
std::string PoolThreadDoes(const analysis::Outside& seen);

// "the trainer" / "the consumer", "the workers" / "the trainer's child process" / the unit's own
// name. kMany: of any number of such, whatever the run has.
enum class UnitNumber : uint8_t { kAsItIs, kMany };
std::string UnitWord(const analysis::Outside& seen, size_t unit,
                     UnitNumber number = UnitNumber::kAsItIs);

// Who takes the batches of any run: "the trainer", or Outside::ConsumerWord of one seen from
// outside.
std::string TrainerWord(const analysis::Statements& statements);

}  // namespace headrace::dashboards

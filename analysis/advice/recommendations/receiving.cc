// R25, R26, R30 and R31: what the trainer's own thread does for batches that workers made. It
// starts workers and ends them, takes bytes from a pipe and unpickles them, and no number of
// workers helps that.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/advice/recommendations.h"
#include "analysis/thresholds.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

// What the hook calls unpickling where tensors are shared by name.
constexpr const char* kByNameOperator = "unpickle_by_name";

// Operators on the trainer's thread that take batches from workers.
std::vector<size_t> Receiving(const PipelineModel& model) {
  std::vector<size_t> all;
  for (const StageModel& stage : model.stages()) {
    if (stage.stays_on_consumer) {
      all.insert(all.end(), stage.operators.begin(), stage.operators.end());
    }
  }
  return all;
}

Variant Cheaper(const Evidence& e, const std::vector<size_t>& operators, double left) {
  Variant change = e.Now();
  for (const size_t op : operators) change.scales.push_back({Scaled::kOperator, op, left});
  return change;
}

double SecondsOf(const PipelineModel& model, const std::vector<size_t>& operators) {
  double all_s = 0;
  for (const size_t op : operators) {
    const Demands::Operator& cost = model.demands().operators[op];
    all_s += cost.cpu_s + cost.blocked_s;
  }
  return all_s;
}

Recommendation KeepWorkers(const Evidence& e) {
  const PipelineModel& model = e.model();
  std::vector<size_t> starting = Receiving(model);
  std::erase_if(starting, [&](size_t op) { return model.operators()[op].kind != kStartKind; });
  if (starting.empty()) return DoesNotFire("no worker of a loader was seen to start");
  const double start_s = SecondsOf(model, starting);
  double epochs = 0;  // a batch
  for (const size_t op : starting) {
    epochs = std::max(epochs, model.operators()[op].visit_ratio);
  }
  const double per_epoch_s = epochs > 0 ? start_s / epochs : 0;
  const std::string why = fmt::format(
      "starting and ending workers takes {} of the trainer's time, {} an epoch of {:.0f} batches",
      FormatPercent(start_s * model.demands().rate / model.consumers()),
      FormatDuration(per_epoch_s * 1e9), epochs > 0 ? 1 / epochs : 0);
  // Workers that are kept still have to make the first batch of each epoch.
  double first_s = 0;
  for (size_t s = 0; s < model.stages().size(); ++s) {
    if (!model.stages()[s].on_consumer) first_s += model.demands().stage_s[s];
  }
  const double left = start_s > 0 ? std::min(1.0, epochs * first_s / start_s) : 1;
  const double least = left + (1 - left) * kKeptWorkersStillCost;
  // Where epochs are short, most of what workers compute outside operators is their start: imports.
  const auto kept = [&](double now, double other) {
    Variant change = Cheaper(e, starting, now);
    change.scales.push_back({Scaled::kOther, 0, other});
    return change;
  };
  return IfWorthwhile(e, e.Predict(kept(least, kStartNotOther), kept(left, left), kept(0, 0)), why,
                      "persistent_workers=True in the DataLoader, made once for all epochs");
}

Recommendation ShareMemory(const Evidence& e) {
  const PipelineModel& model = e.model();
  std::vector<size_t> taking = Receiving(model);
  std::erase_if(taking, [&](size_t op) {
    return model.operators()[op].kind != "receive" && model.operators()[op].kind != kUnpickleKind;
  });
  if (taking.empty()) return DoesNotFire("no batch came from a worker process");
  double bytes = 0;
  for (const size_t op : taking) bytes += model.demands().operators[op].bytes_in;
  const std::string share =
      FormatPercent(SecondsOf(model, taking) * model.demands().rate / model.consumers());
  if (bytes < kLargePickle) {
    return DoesNotFire(fmt::format("{} a batch come through the pipe from a worker: that is little",
                                   FormatBytes(bytes)));
  }
  // Workers pickle in a thread outside every operator, which ends, too: that may be all CPU time
  // outside operators.
  Variant most = Cheaper(e, taking, kSharedCosts);
  most.scales.push_back({Scaled::kOther, 0, kSharedCosts});
  return IfWorthwhile(
      e, e.Predict(Cheaper(e, taking, kSharedStillCosts), Cheaper(e, taking, kSharedCosts), most),
      fmt::format("{} a batch are pickled through a pipe, which takes {} of the trainer's time",
                  FormatBytes(bytes), share),
      "let workers return tensors instead of arrays: tensors share memory with the trainer");
}

// A tensor comes as the name of a socket of its worker, where the trainer asks for the tensor's
// memory: several messages, each answered by a thread that first needs the worker's interpreter
// lock. Memory that has a name of its own is opened without asking (torch.multiprocessing,
// "Sharing strategies").
Recommendation ShareByName(const Evidence& e) {
  const PipelineModel& model = e.model();
  std::vector<size_t> taking = Receiving(model);
  std::erase_if(taking, [&](size_t op) { return model.operators()[op].kind != kUnpickleKind; });
  if (taking.empty()) return DoesNotFire("no batch came from a worker process");
  std::erase_if(taking, [&](size_t op) { return model.operators()[op].name == kByNameOperator; });
  if (taking.empty()) return DoesNotFire("tensors are shared by name");
  double blocked_s = 0;
  for (const size_t op : taking) blocked_s += model.demands().operators[op].blocked_s;
  const double share = blocked_s * model.demands().rate / model.consumers();
  const std::string why = fmt::format(
      "the trainer's thread waits {} of its time for workers to hand over the memory of tensors",
      FormatPercent(share));
  if (share < kHandingOverIsLittle) return DoesNotFire(why + ": that is little");
  // The messages cost both sides CPU time, the worker's outside every operator.
  const auto by_name = [&](double unpickling, double other) {
    Variant change = Cheaper(e, taking, unpickling);
    change.scales.push_back({Scaled::kOther, 0, other});
    return change;
  };
  Recommendation result = IfWorthwhile(
      e,
      e.Predict(by_name(kByNameStillCosts, 1), by_name(kByNameCosts, 1),
                by_name(kByNameCosts / 2, kByNameCosts)),
      why,
      "call torch.multiprocessing.set_sharing_strategy(\"file_system\") before the loader is made, "
      "or put fewer tensors into a batch");
  result.only_if = "files that a killed program leaves in /dev/shm do no harm";
  return result;
}

// Each epoch of tf.data is an iterator of its own: it starts threads and fills the shuffle buffer
// and the prefetch anew before the first batch is there (tensorflow.org/guide/data, "Randomly
// shuffling input data", shuffle and repeat).
Recommendation KeepIterator(const Evidence& e) {
  const PipelineModel& model = e.model();
  std::vector<size_t> first = Receiving(model);
  std::erase_if(first, [&](size_t op) { return model.operators()[op].kind != kFirstBatchKind; });
  if (first.empty()) return DoesNotFire("no epoch was seen to begin with an iterator of its own");
  const double first_s = SecondsOf(model, first);
  const double epochs = model.operators()[first[0]].visit_ratio;  // a batch
  const std::string why = fmt::format(
      "the trainer waits {} for the first batch of each epoch of {:.0f}: {} of its time",
      FormatDuration(epochs > 0 ? first_s / epochs * 1e9 : 0), epochs > 0 ? 1 / epochs : 0,
      FormatPercent(first_s * model.demands().rate / model.consumers()));
  return IfWorthwhile(
      e,
      e.Predict(Cheaper(e, first, kFirstBatchesStillCost), Cheaper(e, first, kFirstBatchesCost),
                Cheaper(e, first, 0)),
      why,
      "make one iterator for all epochs (repeat() before shuffle() and batch()), or "
      "a smaller shuffle buffer");
}

HR_RECOMMENDATION(25, "keep the workers of a loader", "", KeepWorkers);
HR_RECOMMENDATION(26, "share memory with the workers", "", ShareMemory);
HR_RECOMMENDATION(30, "share tensors by name", "", ShareByName);
HR_RECOMMENDATION(31, "one iterator for all epochs", "", KeepIterator);

}  // namespace
}  // namespace headrace::analysis

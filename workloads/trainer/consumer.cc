#include "workloads/trainer/consumer.h"

#include <deque>
#include <utility>

#include "base/error.h"
#include "probes/account/account.h"
#include "workloads/trainer/dlrm.h"

namespace headrace::workloads {
namespace {

using reader::ConsumerKind;
using reader::Element;

class ModelConsumer final : public reader::Consumer {
 public:
  ModelConsumer(const reader::PipelineSpec& spec, RowChecksums* checksums, TrainingFigures* figures,
                std::unique_ptr<RowLog> log)
      : options_(spec.consumer.model),
        seed_(spec.seed),
        recorder_(spec.consumer, checksums, std::move(log)),
        figures_(figures) {}

  void RegisterAccounts(uint32_t stage) override {
    accounts_.embedding = hr_operator("embedding", "trainer", stage);
    accounts_.interaction = hr_operator("interaction", "trainer", stage);
    accounts_.mlp = hr_operator("mlp", "trainer", stage);
    accounts_.update = hr_operator("update", "trainer", stage);
  }

  void LoadState(const std::string& /*state*/) override {
    throw Error(ExitCode::kUsage, "a model in training is not part of a checkpoint",
                "consumer.kind",
                "resume with kind = \"emulated\" or \"none\", or start from the first row");
  }

  void Step(Element&& batch, reader::StopSignal* /*stop*/) override {
    recorder_.Record(batch);
    auto* tensors = batch.payload.Get<reader::TensorBatch>();
    if (tensors == nullptr)
      throw Error(ExitCode::kUsage, "the trainer takes tensors, and the batches have none", {},
                  "put the operator tensorize at the end of the last stage");
    const float loss =
        options_.dedup || tensors->groups.empty() ? Train(*tensors) : TrainExpanded(tensors);
    if (figures_ != nullptr) Count(loss);
  }

 private:
  float Train(const reader::TensorBatch& tensors) {
    if (!model_) model_ = std::make_unique<Dlrm>(options_, seed_, tensors, accounts_);
    return model_->Step(tensors);
  }

  // A batch may come again (--ceiling), and must cost as much then: it gets its groups back.
  float TrainExpanded(reader::TensorBatch* tensors) {
    reader::ExpandedLists lists = reader::Expand(*tensors);
    std::vector<reader::InverseKeyedJaggedTensor> groups;
    const auto swap = [&] {
      std::swap(tensors->sparse, lists.sparse);
      std::swap(tensors->weighted_sparse, lists.weighted_sparse);
      std::swap(tensors->groups, groups);
    };
    swap();
    const float loss = Train(*tensors);
    swap();
    return loss;
  }

  void Count(double loss) {
    constexpr uint64_t kSteps = TrainingFigures::kLossSteps;
    figures_->parameters = model_->num_parameters();
    if (++figures_->steps <= kSteps)
      figures_->first_loss += (loss - figures_->first_loss) / static_cast<double>(figures_->steps);
    last_.push_back(loss);
    if (last_.size() > kSteps) last_.pop_front();
    double sum = 0;
    for (const double one : last_) sum += one;
    figures_->last_loss = sum / static_cast<double>(last_.size());
  }

  reader::ModelSpec options_;
  uint64_t seed_;
  Trainer recorder_;  // of rows
  TrainingFigures* figures_;
  DlrmAccounts accounts_;
  std::unique_ptr<Dlrm> model_;  // made for the first batch
  std::deque<double> last_;      // losses
};

}  // namespace

std::unique_ptr<reader::Consumer> MakeConsumer(const reader::PipelineSpec& spec,
                                               RowChecksums* checksums, TrainingFigures* figures,
                                               std::unique_ptr<RowLog> log) {
  if (spec.consumer.kind == ConsumerKind::kTrainer)
    return std::make_unique<ModelConsumer>(spec, checksums, figures, std::move(log));
  return std::make_unique<Trainer>(spec.consumer, checksums, std::move(log));
}

}  // namespace headrace::workloads

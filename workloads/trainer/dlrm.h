// Dlrm: a small real recommendation model on the CPU (Naumov et al. 2019, arXiv 1906.00091),
// trained by stochastic gradient descent on the batches of a pipeline.
//
//   dense[rows, n] --squash--> bottom layers --v0--+
//   each sparse feature --> sum of its ids' vectors --v1..vk--> interaction --> top layers -->
//   logit loss = mean binary cross-entropy of sigmoid(logit) and the label
//
// The model takes its shape from the first batch and keeps it. Sums do not depend on threads: a
// step runs on the caller's. Memory is allocated while steps grow, then no more.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "reader/batch/tensor_batch.h"
#include "reader/pipeline/spec.h"
#include "workloads/trainer/embedding_bag.h"
#include "workloads/trainer/interaction.h"
#include "workloads/trainer/mlp.h"

namespace headrace::workloads {

// Account ids of the parts of a step; UINT32_MAX = not accounted.
struct DlrmAccounts {
  uint32_t embedding = UINT32_MAX, interaction = UINT32_MAX, mlp = UINT32_MAX, update = UINT32_MAX;
};

class Dlrm {
 public:
  // Throws Error kUsage when the batch has no labels, neither dense nor sparse features, or when
  // the tables would need more than kMaxTableBytes.
  Dlrm(const reader::ModelSpec& options, uint64_t seed, const reader::TensorBatch& first,
       const DlrmAccounts& accounts = {}, const Kernels& kernels = KernelsFor());

  // Forward, backward, update. Returns the mean loss before the update. The batch has the features
  // of the first one, in the same order.
  float Step(const reader::TensorBatch& batch);
  // The mean loss alone.
  float Loss(const reader::TensorBatch& batch);

  size_t num_tables() const { return tables_.size(); }
  uint64_t num_parameters() const;
  // For checks by finite differences.
  EmbeddingBag& table(size_t i) { return tables_[i]; }
  Mlp& bottom() { return *bottom_; }
  Mlp& top() { return *top_; }
  const std::vector<float>& logits() const { return logits_; }  // of the last Step or Loss

 private:
  void Prepare(const reader::TensorBatch& batch);
  void Embed(size_t rows);
  float Forward(const reader::TensorBatch& batch);
  void Backward(const reader::TensorBatch& batch);
  void Update(size_t rows);

  reader::ModelSpec options_;
  DlrmAccounts accounts_;
  const Kernels& kernels_;
  std::vector<std::string> names_;  // of the sparse features
  size_t num_dense_ = 0;
  std::vector<EmbeddingBag> tables_;
  std::unique_ptr<Mlp> bottom_, top_;
  std::unique_ptr<Interaction> interaction_;

  // State of the current step.
  std::vector<const reader::KeyedJaggedTensor*> tensors_;  // of the batch
  std::vector<std::vector<uint32_t>> places_;              // per tensor
  std::vector<Bags> bags_;                                 // per feature
  Matrix dense_;
  std::vector<float> vectors_, vectors_gradient_;  // [rows, interaction_->in_row()]
  Matrix top_in_, top_in_gradient_, top_out_, top_gradient_, bottom_gradient_;
  std::vector<float> logits_;
};

// Bound on the embedding tables of one model.
constexpr uint64_t kMaxTableBytes = uint64_t{16} << 30;

}  // namespace headrace::workloads

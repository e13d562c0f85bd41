#include "workloads/trainer/dlrm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/error.h"
#include "base/units.h"
#include "probes/account/scope.h"
#include "workloads/distributions.h"

namespace headrace::workloads {

using reader::KeyedJaggedTensor;
using reader::TensorBatch;

namespace {

std::vector<std::string> SparseNames(const TensorBatch& batch) {
  std::vector<std::string> names;
  for (const bool weighted : {false, true})
    for (const reader::JaggedKey& key : reader::KeysInOrder(batch, weighted))
      names.push_back(key.name());
  return names;
}

std::vector<uint32_t> WithLast(std::vector<uint32_t> widths, uint32_t last) {
  widths.push_back(last);
  return widths;
}

void Check(const TensorBatch& batch, const std::vector<std::string>& sparse,
           const reader::ModelSpec& options) {
  if (batch.labels.size() != batch.rows)
    throw Error(ExitCode::kUsage, "the trainer needs labels, and the batches have none", {},
                "set label in [projection]");
  if (batch.dense_names.empty() && sparse.empty())
    throw Error(ExitCode::kUsage, "the trainer needs features, and the batches have none", {},
                "add keys to [projection.maps]");
  const uint64_t bytes = sparse.size() * options.rows * Padded(options.dim) * sizeof(float);
  if (bytes > kMaxTableBytes)
    throw Error(ExitCode::kUsage,
                fmt::format("{} embedding tables of {} rows need {}, the trainer takes {}",
                            sparse.size(), options.rows, FormatBytes(static_cast<double>(bytes)),
                            FormatBytes(static_cast<double>(kMaxTableBytes))),
                "consumer.model.rows", "use fewer rows or a smaller dim");
}

// log(1 + exp(-|x|)) + max(x, 0) - x y: the cross-entropy without overflow.
double Loss(float logit, float label) {
  return std::log1p(std::exp(-std::abs(static_cast<double>(logit)))) + std::max(logit, 0.0f) -
         static_cast<double>(logit) * label;
}

}  // namespace

Dlrm::Dlrm(const reader::ModelSpec& options, uint64_t seed, const TensorBatch& first,
           const DlrmAccounts& accounts, const Kernels& kernels)
    : options_(options),
      accounts_(accounts),
      kernels_(kernels),
      names_(SparseNames(first)),
      num_dense_(first.dense_names.size()) {
  Check(first, names_, options);
  tables_.reserve(names_.size());
  for (size_t i = 0; i < names_.size(); ++i)
    tables_.emplace_back(options.rows, options.dim, Mix(seed, i + 1), kernels);
  // Without dense features v0 is what the bottom layers make of a constant.
  bottom_ =
      std::make_unique<Mlp>(std::max<size_t>(num_dense_, 1), WithLast(options.bottom, options.dim),
                            true, Mix(seed, 0xb0770), kernels);
  interaction_ =
      std::make_unique<Interaction>(options.interaction, names_.size() + 1, options.dim, kernels);
  top_ = std::make_unique<Mlp>(interaction_->output(), WithLast(options.top, 1), false,
                               Mix(seed, 0x709), kernels);
}

uint64_t Dlrm::num_parameters() const {
  uint64_t count = tables_.size() * options_.rows * options_.dim;
  for (Mlp* mlp : {bottom_.get(), top_.get()})
    for (const Mlp::Parameters& part : mlp->parameters()) count += part.values.size();
  return count;
}

// The batch's lists as places in the tables: of deduplicated features their unique lists alone.
void Dlrm::Prepare(const TensorBatch& batch) {
  places_.resize(std::max(places_.size(), 2 + batch.groups.size()));
  tensors_.clear();
  const auto look_up = [this](const KeyedJaggedTensor& lists) {
    std::vector<uint32_t>& places = places_[tensors_.size()];
    if (places.size() < lists.values.size()) places.resize(lists.values.size());
    kernels_.places(lists.values.data(), lists.values.size(), options_.rows, places.data());
    tensors_.push_back(&lists);
  };
  look_up(batch.sparse);
  look_up(batch.weighted_sparse);
  for (const reader::InverseKeyedJaggedTensor& group : batch.groups) look_up(group.unique);
  bags_.clear();
  for (const bool weighted : {false, true}) {
    for (const reader::JaggedKey& key : reader::KeysInOrder(batch, weighted)) {
      HR_CHECK(bags_.size() < names_.size() && names_[bags_.size()] == key.name(),
               "batches of different features");
      const size_t tensor = static_cast<size_t>(
          std::find(tensors_.begin(), tensors_.end(), key.tensor) - tensors_.begin());
      bags_.push_back({key.offsets(), places_[tensor].data(),
                       key.tensor->weights.empty() ? nullptr : key.tensor->weights.data(),
                       key.tensor->rows, key.inverse});
    }
  }
  HR_CHECK(bags_.size() == names_.size() && batch.dense_names.size() == num_dense_ &&
               batch.labels.size() == batch.rows,
           "batches of different features");
}

void Dlrm::Embed(size_t rows) {
  const size_t step = Padded(options_.dim), row = interaction_->in_row();
  for (size_t i = 0; i < tables_.size(); ++i)
    tables_[i].Forward(bags_[i], rows, vectors_.data() + (i + 1) * step, row);
}

float Dlrm::Forward(const TensorBatch& batch) {
  const size_t rows = batch.rows, row = interaction_->in_row();
  if (vectors_.size() < rows * row) vectors_.resize(rows * row);
  {
    account::OperatorScope scope(accounts_.embedding);
    Prepare(batch);
    Embed(rows);
  }
  {
    account::OperatorScope scope(accounts_.mlp);
    dense_.Resize(rows, std::max<size_t>(num_dense_, 1));
    for (size_t r = 0; r < rows; ++r) {
      if (num_dense_ > 0)
        kernels_.squash(batch.dense.data() + r * num_dense_, num_dense_, dense_.row(r));
      else
        dense_.row(r)[0] = 1;
    }
    bottom_->Forward(dense_.data(), dense_.stride(), rows, vectors_.data(), row);
  }
  {
    account::OperatorScope scope(accounts_.interaction);
    top_in_.Resize(rows, interaction_->output());
    interaction_->Forward(vectors_.data(), rows, &top_in_);
  }
  account::OperatorScope scope(accounts_.mlp);
  top_out_.Resize(rows, 1);
  top_->Forward(top_in_.data(), top_in_.stride(), rows, top_out_.data(), top_out_.stride());
  logits_.resize(rows);
  double loss = 0;
  for (size_t r = 0; r < rows; ++r) {
    logits_[r] = top_out_.row(r)[0];
    loss += workloads::Loss(logits_[r], batch.labels[r]);
  }
  return static_cast<float>(loss / static_cast<double>(rows));
}

void Dlrm::Backward(const TensorBatch& batch) {
  const size_t rows = batch.rows, row = interaction_->in_row();
  {
    account::OperatorScope scope(accounts_.mlp);
    top_gradient_.Resize(rows, 1);
    for (size_t r = 0; r < rows; ++r)
      top_gradient_.row(r)[0] =
          (1 / (1 + std::exp(-logits_[r])) - batch.labels[r]) / static_cast<float>(rows);
    top_in_gradient_.Resize(rows, interaction_->output());
    top_->Backward(top_gradient_.data(), top_gradient_.stride(), top_in_gradient_.data(),
                   top_in_gradient_.stride());
  }
  if (vectors_gradient_.size() < rows * row) vectors_gradient_.resize(rows * row);
  {
    account::OperatorScope scope(accounts_.interaction);
    interaction_->Backward(vectors_.data(), top_in_gradient_, rows, vectors_gradient_.data());
  }
  account::OperatorScope scope(accounts_.mlp);
  bottom_->Backward(vectors_gradient_.data(), row, nullptr, 0);
  scope.Done(rows, 0, 0);
}

void Dlrm::Update(size_t rows) {
  account::OperatorScope scope(accounts_.update);
  const size_t step = Padded(options_.dim), row = interaction_->in_row();
  for (size_t i = 0; i < tables_.size(); ++i)
    tables_[i].Update(bags_[i], rows, vectors_gradient_.data() + (i + 1) * step, row,
                      options_.rate);
  bottom_->Update(options_.rate);
  top_->Update(options_.rate);
  scope.Done(rows, 0, 0);
}

float Dlrm::Loss(const TensorBatch& batch) { return batch.rows == 0 ? 0 : Forward(batch); }

float Dlrm::Step(const TensorBatch& batch) {
  if (batch.rows == 0) return 0;
  const float loss = Forward(batch);
  Backward(batch);
  Update(batch.rows);
  return loss;
}

}  // namespace headrace::workloads

#include "reader/dwrf/stripe_writer.h"

#include <algorithm>
#include <utility>

#include "reader/dwrf/encode/column_encoder.h"

namespace headrace::reader::dwrf {

StripeWriter::StripeWriter(const Schema& schema, const LayoutPolicy& policy,
                           const Encryptor& encryptor)
    : schema_(schema),
      policy_(policy),
      encryptor_(encryptor),
      chunks_(std::make_unique<ChunkEncoder>(policy.options())),
      root_(schema, policy, 0, 0) {}

template <class Function>
void StripeWriter::ForStrides(uint64_t begin, uint64_t end, Function append) {
  const uint64_t stride = policy_.options().row_index_stride;
  while (begin < end) {
    if (stride == 0 ? rows() == 0 : rows() % stride == 0) root_.BeginStride();
    const uint64_t room = stride == 0 ? end - begin : stride - rows() % stride;
    const uint64_t piece_end = begin + std::min(room, end - begin);
    append(begin, piece_end);
    begin = piece_end;
  }
}

void StripeWriter::Append(const Column& batch, uint64_t begin, uint64_t end) {
  ForStrides(begin, end,
             [&](uint64_t from, uint64_t to) { raw_bytes_ += root_.Append(batch, from, to); });
}

void StripeWriter::AppendFlat(const std::vector<const FlatColumn*>& columns,
                              std::vector<std::vector<FlatCursor>>* cursors, uint64_t begin,
                              uint64_t end) {
  ForStrides(begin, end, [&](uint64_t from, uint64_t to) {
    root_.positions += to - from;
    root_.values += to - from;
    for (size_t i = 0; i < columns.size(); ++i) {
      ColumnBuffer& column = root_.children[i];
      raw_bytes_ += column.flat ? column.AppendFeatures(*columns[i], &(*cursors)[i], from, to)
                                : column.AppendPlain(*columns[i], from, to);
    }
  });
}

LayoutCost StripeWriter::Try(const LayoutPolicy& policy) const {
  constexpr size_t kTriedKeys = 64;
  ChunkEncoder chunks(policy.options());
  ColumnEncoder encoder(schema_, policy, &chunks, encryptor_, stripe_);
  encoder.most_keys = kTriedKeys;
  encoder.Encode(root_, false);
  LayoutCost cost;
  for (const NodeLayout& node : encoder.layout) cost.Add(node.stored);
  return cost;
}

EncodedStripe StripeWriter::Finish(std::vector<StatisticsBuilder>* statistics,
                                   std::vector<uint64_t>* stored_bytes,
                                   std::vector<NodeLayout>* layout) {
  auto encoder =
      std::make_unique<ColumnEncoder>(schema_, policy_, chunks_.get(), encryptor_, stripe_);
  encoder->Encode(root_, false);
  if (encoder->data.size() == 0 && !root_.children.empty()) {
    // Other readers take a stripe without data for damage.
    encoder = std::make_unique<ColumnEncoder>(schema_, policy_, chunks_.get(), encryptor_, stripe_);
    encoder->Encode(root_, true);
  }
  EncodedStripe stripe;
  stripe.rows = rows();
  stripe.raw_bytes = encoder->statistics[0].raw_bytes;
  stripe.index = std::move(encoder->index);
  stripe.data = std::move(encoder->data);
  for (uint32_t g = 0; g < encoder->groups.size(); ++g) {
    ChunkPlace place;
    place.stripe = stripe_;
    place.ordinal = kFooterOrdinal;
    const ChunkSeal seal = encryptor_.Seal(g + 1, place);
    const std::string plain = encoder->groups[g].SerializeAsString();
    ByteSink stored;
    chunks_->Encode({reinterpret_cast<const uint8_t*>(plain.data()), plain.size()}, true, &stored,
                    &seal);
    encoder->footer.add_encryption_groups(stored.data(), stored.size());
  }
  ++stripe_;
  const std::string footer = encoder->footer.SerializeAsString();
  chunks_->Encode({reinterpret_cast<const uint8_t*>(footer.data()), footer.size()}, true,
                  &stripe.footer);
  for (uint32_t node = 0; node < schema_.size(); ++node) {
    (*statistics)[node].Add(encoder->statistics[node]);
    (*stored_bytes)[node] += encoder->stored_bytes[node];
    (*layout)[node].Add(encoder->layout[node]);
  }
  root_.Clear();
  raw_bytes_ = 0;
  return stripe;
}

}  // namespace headrace::reader::dwrf

#include "reader/dwrf/node_reader.h"

#include <fmt/format.h>

namespace headrace::reader::dwrf {
namespace {

class NullReader final : public ColumnReader {
 public:
  explicit NullReader(StripeContext* context) : context_(context) {}
  void Read(uint64_t count, Column* out) override {
    context_->budget->Charge(count, 16);
    AppendNulls(count, out);
  }
  void Skip(uint64_t) override {}
  void Seek(uint64_t) override {}
  void BeginStride(uint64_t) override {}
  bool NeedsStrides() const override { return false; }
  void Mark() override {}
  void Rewind() override {}

 private:
  StripeContext* context_;
};

}  // namespace

std::unique_ptr<ColumnReader> MakeNodeReader(Site site, bool is_flat_value, const KeyFilter* keys) {
  // Lenient where an entry is missing: DIRECT (FORMAT section 6).
  const Encoding* found = site.stripe().FindEncoding(site.node, site.sequence);
  const Encoding encoding = found != nullptr ? *found : Encoding{};
  const TypeKind kind = site.type().kind;
  const bool can_be_dictionary =
      kind == TypeKind::kString || (IsInteger(kind) && kind != TypeKind::kByte);
  const bool can_be_flat = kind == TypeKind::kMap && site.sequence == 0;
  if ((encoding.kind == EncodingKind::kDictionary && !can_be_dictionary) ||
      (encoding.kind == EncodingKind::kMapFlat && !can_be_flat)) {
    site.Throw(
        fmt::format("encoding {} on a {}", EncodingKindName(encoding.kind), TypeKindName(kind)));
  }
  const bool has_children = kind == TypeKind::kList || kind == TypeKind::kMap ||
                            kind == TypeKind::kStruct || kind == TypeKind::kUnion;
  return has_children ? MakeParentReader(site, is_flat_value, encoding, keys)
                      : MakeValueReader(site, is_flat_value, encoding);
}

std::unique_ptr<ColumnReader> MakeColumnReader(StripeContext* context, uint32_t node,
                                               const KeyFilter* keys) {
  return MakeNodeReader({context, node, 0}, false, keys);
}

std::unique_ptr<ColumnReader> MakeNullReader(StripeContext* context) {
  return std::make_unique<NullReader>(context);
}

}  // namespace headrace::reader::dwrf

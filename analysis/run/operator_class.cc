#include "analysis/run/operator_class.h"

#include <array>
#include <utility>

namespace headrace::analysis {
namespace {

using enum OperatorClass;

constexpr std::array<std::pair<std::string_view, OperatorClass>, 24> kKinds = {
    {{"fetch", kFetch},          {"io", kFetch},
     {"read", kFetch},           {"stored", kFetch},
     {"decrypt", kDecrypt},      {"decompress", kDecompress},
     {"decode", kDecode},        {"dedup", kDecode},
     {"extract", kExtract},      {"rowmap", kConvert},
     {"dictionary", kTransform}, {"shuffle", kBatch},
     {"batch", kBatch},          {"rebatch", kBatch},
     {"tensorize", kTensorize},  {"copy", kTensorize},
     {"cache", kCache},          {"tier", kCache},
     {"serialize", kSend},       {"send", kSend},
     {"receive", kSend},         {"deserialize", kSend},
     {"compress_frame", kSend},  {"consumer", kConsumer}}};

// Table 11 of the paper; what it does not have stands with its like: Scale with the dense
// normalisations, AddTokens, RandomCrop and SortByScore, which give a list of the same ids, with
// the sparse ones.
constexpr std::array<std::pair<std::string_view, OperatorClass>, 20> kTransforms = {
    {{"cartesian", kGeneration},
     {"bucketize", kGeneration},
     {"compute_score", kGeneration},
     {"enumerate", kGeneration},
     {"id_list_transform", kGeneration},
     {"map_id", kGeneration},
     {"get_local_hour", kGeneration},
     {"ngram", kGeneration},
     {"sigrid_hash", kSparseNormalisation},
     {"first_x", kSparseNormalisation},
     {"positive_modulus", kSparseNormalisation},
     {"add_tokens", kSparseNormalisation},
     {"random_crop", kSparseNormalisation},
     {"sort_by_score", kSparseNormalisation},
     {"box_cox", kDenseNormalisation},
     {"clamp", kDenseNormalisation},
     {"logit", kDenseNormalisation},
     {"onehot", kDenseNormalisation},
     {"scale", kDenseNormalisation},
     {"sampling", kTransform}}};

}  // namespace

const char* OperatorClassName(OperatorClass cls) {
  constexpr std::array<const char*, kNumOperatorClasses> kNames = {"fetch",
                                                                   "decrypt",
                                                                   "decompress",
                                                                   "decode",
                                                                   "extract",
                                                                   "row-map conversion",
                                                                   "feature generation",
                                                                   "sparse normalisation",
                                                                   "dense normalisation",
                                                                   "other transforms",
                                                                   "batch",
                                                                   "tensorize",
                                                                   "cache and tier",
                                                                   "serialise and send",
                                                                   "consumer",
                                                                   "other operators"};
  return kNames[static_cast<size_t>(cls)];
}

bool IsTransformClass(OperatorClass cls) { return cls >= kGeneration && cls <= kTransform; }

OperatorClass ClassOf(std::string_view kind, std::string_view name) {
  if (kind == "trainer") return kConsumer;
  if (kind == "transform") {
    for (const auto& [transform, cls] : kTransforms) {
      if (name == transform) return cls;
    }
    return kTransform;
  }
  for (const auto& [known, cls] : kKinds) {
    if (kind == known) return cls;
  }
  // Pipelines with kinds of their own may still call their operators what they are.
  for (const auto& [known, cls] : kKinds) {
    if (name == known) return cls;
  }
  return kOther;
}

}  // namespace headrace::analysis

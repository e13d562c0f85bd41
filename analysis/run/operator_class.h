// OperatorClass: which part of an ingestion pipeline an operator is, by its kind and name. It is
// used to split CPU time by stage (fetch, decompress, ..., send) and transforms by class, as
// characterization studies do (Zhao et al., Understanding Data Storage and Ingestion, ISCA 2022,
// section 6.4 and table 11).
#pragma once
#include <string>
#include <string_view>

namespace headrace::analysis {

// In pipeline order. kOther: operators of other pipelines, with kinds of their own.
enum class OperatorClass : unsigned char {
  kFetch,
  kDecrypt,
  kDecompress,
  kDecode,
  kExtract,
  kConvert,  // to row maps and back
  kGeneration,
  kSparseNormalisation,
  kDenseNormalisation,
  kTransform,  // the rest of the transforms: rows dropped, dictionaries, the list itself
  kBatch,
  kTensorize,
  kCache,
  kSend,  // serialise, send, receive, deserialise
  kConsumer,
  kOther
};
inline constexpr size_t kNumOperatorClasses = static_cast<size_t>(OperatorClass::kOther) + 1;

const char* OperatorClassName(OperatorClass cls);  // "fetch", "feature generation", ...
bool IsTransformClass(OperatorClass cls);

// The class of an operator account. Transforms are classified by name, others by kind or, if the
// kind is not one of ours, by name.
OperatorClass ClassOf(std::string_view kind, std::string_view name);

}  // namespace headrace::analysis

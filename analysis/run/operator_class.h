// OperatorClass: which part of an ingestion pipeline an operator is, by its kind and name: for the
// split of the CPU time by stage (fetch, decompress, ..., send) and of the transforms by class, as
// characterization studies print it (Zhao et al., Understanding Data Storage and Ingestion, ISCA
// 2022, section 6.4 and table 11).
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

// Of an operator account. Transforms go by their name, others by their kind, or, where that is none
// of ours, by their name.
OperatorClass ClassOf(std::string_view kind, std::string_view name);

}  // namespace headrace::analysis

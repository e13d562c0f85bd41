// Fuzzes the fast path: any bytes, opened as a DWRF file, whose features that fit are fetched,
// decompressed, decoded and extracted; the batch must keep its promises, or an Error of the allowed
// codes says why there is none. Decoded by groups of unique rows and expanded, or with ids left in
// dictionaries and looked up, it must be the same.
//
// fuzz run: share=10 length=65536 corpus=reader
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "base/check.h"
#include "base/error.h"
#include "reader/batch/dedup_rows.h"
#include "reader/batch/tensorize.h"
#include "reader/dwrf/crypto/decrypt.h"
#include "reader/dwrf/feature_stream.h"
#include "reader/dwrf/file_reader.h"
#include "reader/dwrf/slices.h"

namespace {

using namespace headrace;
using namespace headrace::reader;
using namespace headrace::reader::dwrf;

constexpr uint64_t kMaxRows = 1 << 16;  // files may claim billions of rows that cost no bytes
constexpr size_t kMaxFeatures = 64;

// The columns and keys of a stripe that the fast path takes.
Projection FittingProjection(const FileReader& file, const Stripe& stripe) {
  Projection projection;
  const auto add = [&](Projection one) {
    try {
      CheckProjection(file.schema(), file.source().name(), one);
    } catch (const Error& error) {
      HR_CHECK(error.code() == ExitCode::kUsage, error.what());
      return;
    }
    projection.features.insert(projection.features.end(), one.features.begin(), one.features.end());
    projection.columns.insert(projection.columns.end(), one.columns.begin(), one.columns.end());
  };
  const SchemaNode& root = file.schema().root();
  for (size_t i = 0; i < root.children.size() && i < kMaxFeatures; ++i) {
    const std::string& name = root.field_names[i];
    if (file.schema().FindColumn(name) != root.children[i])
      continue;  // a second column of the name
    add({{}, {name}});
    if (stripe.FlatKeys(root.children[i]).empty()) {  // perhaps an ordinary map
      for (const int64_t key : {1, 2, 17}) add({{{name, MapKey::Of(key)}}, {}});
    }
    for (const FlatKey& key : stripe.FlatKeys(root.children[i])) {
      if (projection.features.size() < kMaxFeatures) add({{{name, key.key}}, {}});
    }
  }
  return projection;
}

// Pairs of sparse features.
GroupRequests Pairs(const FlatMapBatch& batch, DedupScope scope) {
  GroupRequests requests;
  requests.scope = scope;
  for (size_t i = 0; i < batch.sparse.size(); i += 2) {
    GroupRequest& group = requests.groups.emplace_back();
    group.name = std::to_string(i);
    for (size_t k = i; k < i + 2 && k < batch.sparse.size(); ++k)
      group.features.push_back(batch.sparse[k].name);
  }
  return requests;
}

DictionaryRequest Everything(const StripePlan& plan, bool always) {
  DictionaryRequest request;
  request.always = always;
  for (const FeaturePlan& feature : plan.features) request.features[feature.name] = 1;
  return request;
}

void CheckAllowed(const Error& error) {
  HR_CHECK(error.code() == ExitCode::kBadData || error.code() == ExitCode::kResources ||
               error.code() == ExitCode::kPrivilege,
           error.what());
}

// Floats by their bits: NaN is equal to itself here.
template <typename Values>
bool SameBits(const Values& a, const Values& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0);
}

void CheckSame(const FlatMapBatch& a, const FlatMapBatch& b) {
  HR_CHECK(a.sparse.size() == b.sparse.size(), "other columns");
  for (size_t i = 0; i < a.sparse.size(); ++i) {
    const SparseColumn &x = a.sparse[i], &y = b.sparse[i];
    HR_CHECK(x.name == y.name && SameBits(x.present.words, y.present.words) &&
                 SameBits(x.offsets, y.offsets) && SameBits(x.values, y.values) &&
                 SameBits(x.weights, y.weights),
             "expanded rows differ");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    // The key of scripts/fuzz.sh's encrypted seed: CTR lets changed bytes through to the parsers.
    OpenOptions options;
    options.keys = KeyRing::Parse("fuzz 000102030405060708090a0b0c0d0e0f", "keys");
    const auto file = FileReader::Open(
        MemorySource("fuzz.dwrf", std::string(reinterpret_cast<const char*>(data), size)), options);
    for (size_t s = 0; s < file->num_stripes() && s < 4; ++s) {
      const auto stripe = file->ReadStripe(s);
      if (stripe->rows > kMaxRows) continue;
      try {
        StripePlan plan = MakePlan(*file, stripe, FittingProjection(*file, *stripe));
        const StripePlan again = plan;
        const Source& source = file->source();
        std::optional<FlatMapBatch> plain;
        try {
          plain = Extract(Decode(Decompress(Decrypt(Fetch(std::move(plan), source)))));
          Validate(*plain);
        } catch (const Error& error) {
          CheckAllowed(error);
        }
        // With dictionaries kept the same bytes are as good or as bad.
        for (const bool always : {false, true}) {
          const DictionaryRequest request = Everything(again, always);
          std::optional<FlatMapBatch> kept;
          try {
            kept = Extract(Decode(Decompress(Decrypt(Fetch(again, source))), nullptr, &request));
            Validate(*kept);
            LookUpIds(&*kept);
          } catch (const Error& error) {
            CheckAllowed(error);
            kept.reset();
          }
          HR_CHECK(plain.has_value() == kept.has_value(), "another verdict with dictionaries kept");
          if (kept) CheckSame(*kept, *plain);
        }
        if (!plain) continue;
        const FlatMapBatch& batch = *plain;
        for (const DedupScope scope : {DedupScope::kNeighbours, DedupScope::kBatch}) {
          const GroupRequests groups = Pairs(batch, scope);
          FlatMapBatch unique = Extract(Decode(
              Decompress(Decrypt(Fetch(MakePlan(*file, stripe, FittingProjection(*file, *stripe)),
                                       file->source()))),
              &groups));
          Validate(unique);
          ExpandAll(&unique);
          CheckSame(unique, batch);
        }
        if (!again.maps.empty()) continue;
        // Straight into tensors the same bytes are as good, whole and with rows left out.
        for (const bool some : {false, true}) {
          std::vector<uint8_t> keep(some ? stripe->rows : 0);
          for (size_t row = 0; row < keep.size(); ++row) keep[row] = row % 3 != 0;
          SliceOptions slices;
          slices.slice_rows = 50;
          slices.wanted = keep;
          const DictionaryRequest request = Everything(again, some);
          slices.dictionaries = &request;
          DecodedStripe decoded =
              DecodeSlices(Decompress(Decrypt(Fetch(again, file->source()))), slices);
          for (uint64_t s = 0; s < decoded.slices.size(); ++s) {
            FlatMapBatch slice = ExtractSlice(&decoded, s);
            LookUpIds(&slice);
            if (slice.rows > 0) Validate(slice);
            TensorizeFigures figures;
            Tensorize(std::move(slice), "", &figures);
          }
        }
        for (const DedupScope scope : {DedupScope::kNeighbours, DedupScope::kBatch}) {
          const GroupRequests groups = Pairs(batch, scope);
          SliceOptions slices;
          slices.slice_rows = 50;
          slices.groups = &groups;
          DecodedStripe decoded =
              DecodeSlices(Decompress(Decrypt(Fetch(again, file->source()))), slices);
          FlatMapBatch joined;
          for (uint64_t s = 0; s < decoded.slices.size(); ++s) {
            FlatMapBatch slice = ExtractSlice(&decoded, s);
            if (slice.rows == 0) continue;
            Validate(slice);
            AppendRows(&joined, slice, 0, slice.rows);
          }
          if (batch.rows == 0) continue;
          ExpandAll(&joined);
          CheckSame(joined, batch);
        }
      } catch (const Error& error) {
        CheckAllowed(error);
      }
    }
  } catch (const Error& error) {
    HR_CHECK(error.code() == ExitCode::kBadData || error.code() == ExitCode::kResources,
             error.what());
  }
  return 0;
}

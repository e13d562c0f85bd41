// Fuzzes the reader: any bytes, opened as a DWRF file, must be read or refused with Error kBadData
// or kResources; and what is read must not depend on batch sizes or on seeking.
//
// fuzz run: share=10 length=65536 corpus=reader
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/check.h"
#include "base/error.h"
#include "reader/dwrf/crypto/decrypt.h"
#include "reader/dwrf/feature_stream.h"
#include "reader/dwrf/inspect.h"
#include "reader/dwrf/row_reader.h"
#include "reader/dwrf/text.h"

namespace {

using namespace headrace;
using namespace headrace::reader;
using namespace headrace::reader::dwrf;

constexpr uint64_t kMaxRows = 4096;  // files may claim billions of rows that cost no bytes
constexpr uint64_t kMaxText = 16 << 20;

template <typename Function>
bool Try(Function function) {
  try {
    function();
    return true;
  } catch (const Error& error) {
    HR_CHECK(error.code() == ExitCode::kBadData || error.code() == ExitCode::kResources ||
                 error.code() == ExitCode::kPrivilege,  // an encrypted column without its key
             error.what());
    return false;
  }
}

RowReaderOptions Options(bool skip_bad) {
  RowReaderOptions options;
  options.verify_checksums = false;  // a fuzzer cannot guess them
  options.skip_bad = skip_bad;
  options.max_row_bytes = 32 << 20;
  return options;
}

// The first rows as text; false when reading failed.
bool ReadText(const std::shared_ptr<const FileReader>& file, uint64_t max_rows, uint64_t max_bytes,
              uint64_t first_row, std::string* text, uint64_t* rows) {
  return Try([&] {
    RowReader reader(file, Options(false));
    if (first_row > 0) reader.SeekToRow(first_row);
    RowPrinter printer(reader.schema(), TextFormat::kCanonical, [&](std::string_view piece) {
      if (text->size() < kMaxText) text->append(piece);
    });
    Column batch;
    while (*rows < kMaxRows && text->size() < kMaxText &&
           reader.NextBatch(std::min(max_rows, kMaxRows - *rows), max_bytes, &batch)) {
      *rows += batch.rows;
      printer.Print(batch, 0, batch.rows);
    }
    printer.Flush();
  });
}

// The fast path over every feature and column that it can take.
void ReadFeatures(const std::shared_ptr<const FileReader>& file) {
  if (file->num_stripes() == 0 || file->num_rows() > 2 * kMaxRows) return;
  const std::shared_ptr<const Stripe> stripe = file->ReadStripe(0);
  const SchemaNode& root = file->schema().root();
  Projection projection;
  const auto add = [&](auto* list, auto entry) {
    list->push_back(entry);
    try {
      CheckProjection(file->schema(), "fuzz.dwrf", projection);
    } catch (const Error& error) {
      HR_CHECK(error.code() == ExitCode::kUsage, error.what());
      list->pop_back();
    }
  };
  for (size_t c = 0; c < root.children.size() && c < 20; ++c) {
    add(&projection.columns, root.field_names[c]);
    const std::span<const FlatKey> keys = stripe->FlatKeys(root.children[c]);
    for (size_t k = 0; k < keys.size() && k < 20; ++k)
      add(&projection.features, FeatureRequest{root.field_names[c], keys[k].key});
  }
  Extract(Decode(Decompress(Decrypt(Fetch(MakePlan(*file, stripe, projection), file->source())))));
}

void ReadFile(std::string bytes) {
  std::shared_ptr<const FileReader> file;
  // The key of scripts/fuzz.sh's encrypted seed: CTR lets changed bytes through to the parsers.
  OpenOptions options;
  options.keys = KeyRing::Parse("fuzz 000102030405060708090a0b0c0d0e0f", "keys");
  if (!Try([&] { file = FileReader::Open(MemorySource("fuzz.dwrf", std::move(bytes)), options); }))
    return;
  Try([&] { InspectJson(*file); });
  if (file->num_rows() <= kMaxRows) Try([&] { Verify(file); });
  try {
    ReadFeatures(file);
  } catch (const Error& error) {
    // Also what an encrypted column gives, and a key that one stripe's encodings contradict.
    HR_CHECK(error.code() != ExitCode::kFailure, error.what());
  }
  std::string large, small;
  uint64_t large_rows = 0, small_rows = 0;
  const bool large_ok = ReadText(file, 4096, 8 << 20, 0, &large, &large_rows);
  const bool small_ok = ReadText(file, 7, 64 << 10, 0, &small, &small_rows);
  if (large_ok && small_ok && large.size() < kMaxText && small.size() < kMaxText) {
    HR_CHECK(large == small, "rows depend on the batch size");
  }
  if (file->num_rows() > 0 && file->num_rows() < 100000) {
    std::string tail;
    uint64_t rows = 0;
    ReadText(file, 100, 1 << 20, file->num_rows() / 2, &tail, &rows);
  }
  if (file->num_rows() < 2 * kMaxRows) {
    Try([&] {
      RowReader reader(file, Options(true));
      Column batch;
      while (reader.NextBatch(1000, 8 << 20, &batch)) {
      }
    });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ReadFile(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}

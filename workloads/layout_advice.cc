#include "workloads/layout_advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/temporary.h"
#include "reader/dwrf/feature_stream.h"
#include "reader/dwrf/file_reader.h"
#include "reader/dwrf/file_writer.h"
#include "reader/dwrf/row_reader.h"
#include "workloads/rewrite.h"

namespace headrace::workloads {
namespace {

namespace fs = std::filesystem;
namespace dwrf = reader::dwrf;
using Files = std::vector<std::shared_ptr<const dwrf::FileReader>>;

constexpr uint64_t kSampleBytes = 512 << 20;

fs::path PlaceForCopies() {
  std::error_code failed;
  const fs::path place = fs::temp_directory_path(failed);
  if (!failed) return place;
  const char* named = std::getenv("TMPDIR");
  throw Error(ExitCode::kUsage,
              fmt::format("'{}' is no folder to copy rows to",
                          Printable(named == nullptr ? "/tmp" : named)),
              "TMPDIR", "set TMPDIR to a folder");
}

// A folder for the copies; it goes with them.
class SampleFolder {
 public:
  SampleFolder() : path_(NewFolderBeside((PlaceForCopies() / "headrace-layout").string(), 0700)) {}
  ~SampleFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  SampleFolder(const SampleFolder&) = delete;
  SampleFolder& operator=(const SampleFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

uint64_t SampleRows(const reader::Table& table, const LayoutAdviceOptions& options,
                    uint64_t stripe_rows) {
  if (options.rows > 0) return options.rows;
  const double row_bytes = std::max(MeanRowBytes(table), 1.0);
  const auto fit = static_cast<uint64_t>(static_cast<double>(kSampleBytes) / row_bytes);
  return std::max(stripe_rows, std::min(2 * stripe_rows, fit));
}

void Check(const LayoutAdviceOptions& options) {
  if (options.check) options.check();
}

// The bytes of `source` from `begin` to `end`, at the same place of `out`.
void CopyBytes(const reader::Source& source, uint64_t begin, uint64_t end,
               const LayoutAdviceOptions& options, const std::string& path, std::ofstream* out) {
  constexpr uint64_t kPieceBytes = 4 << 20;
  std::vector<uint8_t> piece;
  for (out->seekp(static_cast<std::streamoff>(begin)); begin < end; begin += piece.size()) {
    Check(options);
    piece.resize(std::min(kPieceBytes, end - begin));
    source.ReadAt(begin, piece);
    out->write(reinterpret_cast<const char*>(piece.data()),
               static_cast<std::streamsize>(piece.size()));
    if (!*out) throw ErrnoError(errno, "copy rows to", path);
  }
}

// The table as it is: the bytes of the stripes that begin before row *rows, and of their files'
// ends, with holes where other stripes were. Sets *rows to the rows of these stripes.
Files CopyStripes(const reader::Table& table, const LayoutAdviceOptions& options,
                  const fs::path& folder, uint64_t* rows) {
  Files copies;
  uint64_t seen = 0;
  for (size_t f = 0; f < table.files.size() && seen < *rows; ++f) {
    const dwrf::FileTail& tail = table.files[f]->tail();
    uint64_t copied = 0, stripes = 0;
    for (const auto& stripe : tail.footer.stripes()) {
      const uint64_t end =
          stripe.offset() + stripe.index_length() + stripe.data_length() + stripe.footer_length();
      stripes = std::max(stripes, end);
      if (seen >= *rows) continue;
      copied = std::max(copied, end);
      seen += stripe.number_of_rows();
    }
    const std::string path = (folder / (std::to_string(f) + ".dwrf")).string();
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    CopyBytes(table.files[f]->source(), 0, copied, options, path, &out);
    CopyBytes(table.files[f]->source(), stripes, tail.file_size, options, path, &out);
    out.close();
    if (!out) throw ErrnoError(errno, "copy rows to", path);
    copies.push_back(dwrf::FileReader::Open(reader::OpenFileSource(path)));
  }
  if (seen == 0)
    throw Error(ExitCode::kUsage, "the table has no rows to measure with",
                table.files[0]->source().name());
  *rows = seen;
  return copies;
}

// The first `rows` rows, file by file.
Files CopyRows(const Files& from, uint64_t rows, dwrf::WriterOptions writing,
               const LayoutAdviceOptions& options, const fs::path& folder) {
  constexpr uint64_t kBatchRows = 1024, kBatchBytes = 64 << 20;
  Files copies;
  for (size_t f = 0; f < from.size() && rows > 0; ++f) {
    const std::string path = (folder / (std::to_string(f) + ".dwrf")).string();
    dwrf::FileWriter writer(path, from[f]->schema(), writing);
    dwrf::RowReader reader(from[f]);
    reader::Column batch;
    while (rows > 0 && reader.NextBatch(std::min(rows, kBatchRows), kBatchBytes, &batch)) {
      Check(options);
      writer.Write(batch);
      rows -= batch.rows;
    }
    writing.compression = writer.Close().layout.compression;
    writing.choose_codec = false;
    copies.push_back(dwrf::FileReader::Open(reader::OpenFileSource(path)));
  }
  return copies;
}

// The stripes that begin before row `rows`, each handed to visit(file, number).
template <class Visit>
void ForStripes(const Files& files, uint64_t rows, const Visit& visit) {
  uint64_t seen = 0;
  for (const auto& file : files) {
    for (size_t s = 0; s < file->num_stripes() && seen < rows; ++s) seen += visit(*file, s);
  }
}

AdvisedLayout Describe(const Files& files, uint64_t rows, const dwrf::Projection& projection) {
  AdvisedLayout layout;
  layout.compression = files[0]->tail().compression;
  double stored = 0, read = 0;
  ForStripes(files, rows, [&](const dwrf::FileReader& file, size_t number) {
    const auto& info = file.tail().footer.stripes(static_cast<int>(number));
    stored += static_cast<double>(info.index_length() + info.data_length() + info.footer_length());
    const auto plan = dwrf::MakePlan(file, file.ReadStripe(number), projection);
    for (const dwrf::StreamInfo& stream : plan.streams) read += static_cast<double>(stream.length);
    if (layout.stripe_rows == 0) layout.stripe_rows = info.number_of_rows();
    layout.rows += info.number_of_rows();
    return info.number_of_rows();
  });
  const double count = static_cast<double>(std::max<uint64_t>(layout.rows, 1));
  layout.stored_bytes = stored / count;
  layout.read_bytes = read / count;
  return layout;
}

double ScanNs(const Files& files, uint64_t rows, const dwrf::Projection& projection,
              const LayoutAdviceOptions& options) {
  const int64_t begin = ThreadCpuNs();
  ForStripes(files, rows, [&](const dwrf::FileReader& file, size_t number) {
    Check(options);
    const auto stripe = file.ReadStripe(number);
    dwrf::Extract(dwrf::Decode(
        dwrf::Decompress(Fetch(dwrf::MakePlan(file, stripe, projection), file.source(), {}))));
    return file.tail().footer.stripes(static_cast<int>(number)).number_of_rows();
  });
  return static_cast<double>(ThreadCpuNs() - begin);
}

}  // namespace

std::vector<AdvisedLayout> AdviseLayout(const reader::Table& table,
                                        const dwrf::Projection& projection,
                                        const LayoutAdviceOptions& options) {
  for (const auto& file : table.files)
    if (file->tail().footer.has_encryption())
      throw Error(ExitCode::kPrivilege,
                  "its columns are encrypted, and copies to measure would not be",
                  file->source().name(), "rewrite a table with --optimize and compare runs");
  const SampleFolder folder;
  std::vector<Files> files;
  std::vector<AdvisedLayout> layouts;
  uint64_t rows = 0;
  for (const dwrf::LayoutGoal goal :
       {dwrf::LayoutGoal::kBalanced, dwrf::LayoutGoal::kRead, dwrf::LayoutGoal::kSize}) {
    RewriteOptions rewriting;
    rewriting.optimize = goal;
    const dwrf::WriterOptions writing = RewriteWriterOptions(table, rewriting);
    if (files.empty()) {
      rows = SampleRows(table, options, writing.stripe_rows);
      files.push_back(CopyStripes(table, options, folder.path(), &rows));
    }
    const fs::path place = folder.path() / dwrf::LayoutGoalName(goal);
    fs::create_directory(place);
    files.push_back(CopyRows(files[0], rows, writing, options, place));
  }
  constexpr dwrf::LayoutGoal kGoals[] = {dwrf::LayoutGoal::kFixed, dwrf::LayoutGoal::kBalanced,
                                         dwrf::LayoutGoal::kRead, dwrf::LayoutGoal::kSize};
  for (size_t i = 0; i < files.size(); ++i) {
    layouts.push_back(Describe(files[i], rows, projection));
    layouts[i].goal = kGoals[i];
    ScanNs(files[i], rows, projection, options);  // into the page cache
  }
  for (int round = 0; round < options.rounds; ++round)
    for (size_t i = 0; i < files.size(); ++i)
      layouts[i].cpu_ns.push_back(ScanNs(files[i], rows, projection, options) /
                                  static_cast<double>(std::max<uint64_t>(layouts[i].rows, 1)));
  return layouts;
}

}  // namespace headrace::workloads

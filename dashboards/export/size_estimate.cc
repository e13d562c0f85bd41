// How large an export will be, before it is written.
#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "dashboards/export/export.h"

namespace headrace::dashboards {
namespace {

// So few rows are written once more to count their bytes.
constexpr int64_t kCountedRows = 20'000;
// Of more, this many pieces of this many rows are written, spread evenly: at most a tenth of a
// second, and 20,000 rows of one view differ little in length.
constexpr int kPieces = 10;
constexpr int64_t kPieceRows = 2'000;

// Viewers of JSON traces hold all of it in memory, several times over.
constexpr uint64_t kLargeJsonBytes = 500'000'000;

uint64_t BytesOf(const ExportFormat& format, const ExportRequest& request) {
  uint64_t bytes = 0;
  format.write(request, [&](std::string_view text) { bytes += text.size(); });
  return bytes;
}

}  // namespace

uint64_t EstimateExport(const std::string& name, const ExportRequest& request) {
  const ExportFormat& format = FindExport(name);
  const int64_t rows = format.count_rows ? format.count_rows(request) : 0;
  if (rows <= kCountedRows) return BytesOf(format, request);

  ExportRequest piece = request;
  piece.part = ExportPart::kFixed;
  const uint64_t fixed = BytesOf(format, piece);
  piece.part = ExportPart::kCourses;
  const int64_t first = std::max<int64_t>(request.since_ns, 0);
  const int64_t last = std::max(
      first,
      std::min(request.until_ns, ReadExportedRun(request.store, request.run_id).duration_ns));
  const double span = static_cast<double>(last - first);
  const double length = std::min(span / kPieces, span * kPieceRows / static_cast<double>(rows));
  uint64_t bytes = 0;
  int64_t sampled = 0;
  for (int i = 0; i < kPieces; ++i) {
    piece.since_ns = first + static_cast<int64_t>(span * i / kPieces);
    piece.until_ns = piece.since_ns + std::max<int64_t>(1, static_cast<int64_t>(length));
    const int64_t here = format.count_rows(piece);
    if (here == 0) continue;
    bytes += BytesOf(format, piece);
    sampled += here;
  }
  // Where the pieces fell between windows, longer ones than they are, nothing was sampled.
  if (sampled == 0) return BytesOf(format, request);
  return fixed + static_cast<uint64_t>(static_cast<double>(bytes) * static_cast<double>(rows) /
                                       static_cast<double>(sampled));
}

std::string SizeText(const std::string& name, uint64_t bytes) {
  std::string text =
      fmt::format("about {} ({} bytes)", FormatBytes(static_cast<double>(bytes)), bytes);
  if (name == "chrome" && bytes > kLargeJsonBytes) {
    text +=
        "\nviewers of JSON fail at about 1 GB: --since and --until take a part of the run, and "
        "format perfetto is smaller";
  }
  return text;
}

}  // namespace headrace::dashboards

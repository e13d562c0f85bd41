#include "reader/dwrf/file_statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace headrace::reader::dwrf {
namespace {

// Collects what was compared and what differed.
class Comparer {
 public:
  explicit Comparer(std::set<std::string>* compared) : compared_(compared) {}

  template <class T>
  void Exact(const char* figure, const T& stored, const T& decoded) {
    compared_->insert(figure);
    if (stored != decoded)
      found.push_back({figure, fmt::format("{}", stored), fmt::format("{}", decoded)});
  }
  void Near(const char* figure, double stored, double decoded, double tolerance) {
    compared_->insert(figure);
    if (!(std::fabs(stored - decoded) <= tolerance) && stored != decoded)
      found.push_back({figure, fmt::format("{}", stored), fmt::format("{}", decoded)});
  }
  // Bounds are kept up to a length; longer ones are compared as far as both have them.
  void Text(const char* figure, const std::string& stored, const std::string& decoded) {
    constexpr size_t kKept = StatisticsBuilder::kMaxBoundBytes + 1;
    compared_->insert(figure);
    if (stored.substr(0, kKept) != decoded)
      found.push_back(
          {figure, "'" + Printable(stored, 80) + "'", "'" + Printable(decoded, 80) + "'"});
  }

  std::vector<Disagreement> found;

 private:
  std::set<std::string>* compared_;
};

void CompareIntegers(const proto::IntegerStatistics& stored,
                     const proto::IntegerStatistics& decoded, Comparer* to) {
  if (stored.has_minimum()) to->Exact("minimum", stored.minimum(), decoded.minimum());
  if (stored.has_maximum()) to->Exact("maximum", stored.maximum(), decoded.maximum());
  // Writers leave a sum out that 64 bits do not hold.
  if (stored.has_sum() && decoded.has_sum()) to->Exact("sum", stored.sum(), decoded.sum());
}

void CompareDoubles(const proto::DoubleStatistics& stored, const proto::DoubleStatistics& decoded,
                    uint64_t values, Comparer* to) {
  if (std::isnan(stored.minimum()) || std::isnan(stored.maximum()) || std::isnan(stored.sum()))
    return;
  if (stored.has_minimum()) to->Exact("minimum", stored.minimum(), decoded.minimum());
  if (stored.has_maximum()) to->Exact("maximum", stored.maximum(), decoded.maximum());
  if (!stored.has_sum() || !decoded.has_sum()) return;
  // n additions of numbers up to m in any order are off by at most n^2 m of a half unit in the last
  // place; in practice by far less, so that 1e-12 n m holds of every file seen.
  const double largest = std::max(std::fabs(decoded.minimum()), std::fabs(decoded.maximum()));
  to->Near("sum", stored.sum(), decoded.sum(), 1e-12 * static_cast<double>(values) * largest);
}

}  // namespace

std::vector<proto::ColumnStatistics> StoredStatistics(const FileReader& file) {
  const auto& plain = file.tail().footer.statistics();
  std::vector<proto::ColumnStatistics> all(plain.begin(), plain.end());
  for (size_t g = 0; g < file.keys().groups().size(); ++g) {
    const FileKeys::Group& group = file.keys().groups()[g];
    if (!group.why_locked.empty()) continue;
    const std::vector<proto::FileStatistics> open = file.ReadGroupStatistics(g);
    for (size_t i = 0; i < std::min(open.size(), group.nodes.size()); ++i) {
      uint32_t node = group.nodes[i];
      for (const proto::ColumnStatistics& statistics : open[i].statistics()) {
        if (node < all.size()) all[node] = statistics;
        ++node;
      }
    }
  }
  return all;
}

std::vector<Disagreement> Compare(const proto::ColumnStatistics& stored,
                                  const StatisticsBuilder& decoded, TypeKind kind, bool trust_text,
                                  std::set<std::string>* compared) {
  Comparer to(compared);
  if (stored.has_number_of_values())
    to.Exact("count", stored.number_of_values(), decoded.num_values);
  if (stored.has_has_null()) to.Exact("hasNull", stored.has_null(), decoded.has_null);
  if (decoded.num_values == 0) return to.found;  // no values, no bounds
  proto::ColumnStatistics now;
  decoded.ToProto(kind, &now);
  if (stored.has_int_statistics() && now.has_int_statistics())
    CompareIntegers(stored.int_statistics(), now.int_statistics(), &to);
  if (stored.has_double_statistics() && now.has_double_statistics())
    CompareDoubles(stored.double_statistics(), now.double_statistics(), decoded.num_values, &to);
  if (stored.has_string_statistics() && now.has_string_statistics()) {
    const proto::StringStatistics& text = stored.string_statistics();
    if (trust_text && text.has_minimum()) to.Text("minimum", text.minimum(), decoded.min_string());
    if (trust_text && text.has_maximum()) to.Text("maximum", text.maximum(), decoded.max_string());
    if (text.has_sum()) to.Exact("bytes", text.sum(), now.string_statistics().sum());
  }
  if (stored.has_binary_statistics() && now.has_binary_statistics() &&
      stored.binary_statistics().has_sum())
    to.Exact("bytes", stored.binary_statistics().sum(), now.binary_statistics().sum());
  if (stored.bucket_statistics().count_size() > 0 && now.bucket_statistics().count_size() > 0)
    to.Exact("trues", stored.bucket_statistics().count(0), now.bucket_statistics().count(0));
  return to.found;
}

}  // namespace headrace::reader::dwrf

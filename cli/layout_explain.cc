#include "cli/layout_explain.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/units.h"
#include "reader/dwrf/codec.h"

namespace headrace::cli {
namespace {

namespace dwrf = reader::dwrf;

std::string OfStreams(uint64_t some, uint64_t all) {
  return all == 0 ? "-" : fmt::format("{} of {}", some, all);
}

std::string CodecLine(const dwrf::LayoutChoice& choice) {
  std::string line = fmt::format("codec {}", dwrf::CodecName(choice.compression));
  if (choice.tried.empty()) return line + ": as asked for, or as in the table's other files\n";
  double least = 0;
  for (const auto& [codec, cost] : choice.tried) {
    const double at = cost.At(choice.goal);
    least = least == 0 ? at : std::min(least, at);
  }
  line += ", tried on keys of the first stripe:";
  for (const auto& [codec, cost] : choice.tried)
    line +=
        fmt::format("{} {} costs {:.2f} times the least ({}, {})",
                    codec == choice.tried[0].first ? "" : ";", dwrf::CodecName(codec),
                    cost.At(choice.goal) / least, FormatBytes(cost.bytes), FormatDuration(cost.ns));
  return line + "\n";
}

}  // namespace

dwrf::LayoutGoal ParseGoal(const std::string& name) {
  if (const auto goal = dwrf::FindLayoutGoal(name)) return *goal;
  throw Error(ExitCode::kUsage, fmt::format("'{}' is no goal", Printable(name, 40)), "--optimize",
              "use balanced, read, size or off");
}

std::string UnusedCodecLine(const dwrf::LayoutChoice& choice) {
  if (choice.goal == dwrf::LayoutGoal::kFixed || choice.compression == dwrf::CompressionKind::kNone)
    return {};
  uint64_t compressed = 0;
  for (const dwrf::NodeLayout& node : choice.nodes) compressed += node.compressed_streams;
  if (compressed > 0) return {};
  return fmt::format(
      "--compression {}: no stream is compressed, as --optimize {} finds none worth its time; "
      "--optimize off compresses what shrinks\n",
      dwrf::CodecName(choice.compression), dwrf::LayoutGoalName(choice.goal));
}

std::string ExplainLayout(const reader::Schema& schema, const dwrf::LayoutChoice& choice) {
  if (choice.goal == dwrf::LayoutGoal::kFixed)
    return "layout: nothing was chosen (--optimize off)\n";
  std::string text = fmt::format("layout: {}, a stored byte priced at {:g} ns of CPU time\n",
                                 dwrf::LayoutGoalName(choice.goal), dwrf::ByteNs(choice.goal));
  text += CodecLine(choice);
  text += fmt::format("stripes of {} rows\n\n", choice.stripe_rows);
  text += fmt::format("{:<28}{:>16}{:>14}{:>14}{:>11}{:>9}{:>14}{:>12}\n", "column", "compressed",
                      "dictionary", "fixed width", "bytes/row", "ns/row", "as varints", "ns/row");
  const double rows = static_cast<double>(std::max<uint64_t>(choice.rows, 1));
  dwrf::NodeLayout all;
  const auto line = [&](const std::string& name, const dwrf::NodeLayout& node) {
    // What the node would cost with all its integers as varints.
    const double bytes = node.stored.bytes - node.values.bytes + node.varints.bytes;
    const double ns = node.stored.ns - node.values.ns + node.varints.ns;
    text += fmt::format("{:<28}{:>16}{:>14}{:>14}{:>11.1f}{:>9.1f}{:>14.1f}{:>12.1f}\n", name,
                        OfStreams(node.compressed_streams, node.streams),
                        OfStreams(node.dictionaries, node.integers),
                        OfStreams(node.fixed_width, node.integers), node.stored.bytes / rows,
                        node.stored.ns / rows, bytes / rows, ns / rows);
  };
  for (uint32_t id = 0; id < choice.nodes.size(); ++id) {
    if (choice.nodes[id].streams == 0) continue;
    line(Printable(schema.Path(id), 27), choice.nodes[id]);
    all.Add(choice.nodes[id]);
  }
  line("all", all);
  return text +
         "\nTimes are modelled: to find, decompress and decode the streams, all of them; what "
         "every "
         "layout\nhas alike (bits, lengths, floats) is not in them. 'headrace layout --advise' "
         "measures.\n";
}

}  // namespace headrace::cli

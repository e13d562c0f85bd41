#include "analysis/advice/emit/emit.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

constexpr size_t kColumns = 100, kMostComment = 4000;

// Words as comment lines, each beginning with `lead`. A name in them that holds the end of a line
// must not end the comment.
std::string Comment(const std::string& words, const std::string& lead) {
  const std::string text = Printable(words, kMostComment);
  std::string out, line = lead;
  size_t at = 0;
  bool empty = true;
  while (at < text.size()) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (!empty && line.size() + 1 + word.size() > kColumns) {
      out += line + "\n";
      line = lead;
      if (lead.ends_with("#   ")) line += "  ";
      empty = true;
    }
    line += (empty ? "" : " ") + word;
    empty = false;
    at = end + 1;
  }
  return out + line + "\n";
}

std::string Reason(const EmittedSetting& setting) {
  return (setting.was.empty() ? "" : fmt::format("was {}: ", setting.was)) + setting.why;
}

std::string Gain(const Emitted& e) {
  if (e.predicted && e.now && *e.now > 0) {
    return fmt::format("predicted: {} instead of {}, {:+.0f} % [{:.0f}, {:.0f}]",
                       FormatRate(*e.predicted, "batches"), FormatRate(*e.now, "batches"),
                       100 * (*e.predicted / *e.now - 1), 100 * e.gain_interval.low,
                       100 * e.gain_interval.high);
  }
  std::string text = "gain: ";
  if (e.at_most) text += fmt::format("at most {:.1f} times the rate; ", *e.at_most);
  return text + "not predicted: " + e.gain_note;
}

std::string Memory(const Emitted& e) {
  std::string text = "memory: ";
  if (!e.worker_bytes) return text + e.memory_note;
  text += FormatBytes(*e.worker_bytes) + " resident in each worker (measured)";
  if (e.workers_bytes && e.workers_now_bytes) {
    text += fmt::format(", {} in all instead of {}", FormatBytes(*e.workers_bytes),
                        FormatBytes(*e.workers_now_bytes));
  }
  text += "; pages shared with the trainer count in each";
  return e.memory_note.empty() ? text : text + "; " + e.memory_note;
}

void AddUnknown(const Emitted& e, std::string* out) {
  if (e.unknown.empty()) return;
  *out += "# not recommended, as it was not measured:\n";
  for (const NotEmitted& one : e.unknown) *out += Comment(one.name + ": " + one.why, "#   ");
}

std::string DataLoaderText(const Emitted& e) {
  std::string out;
  bool any = false;
  for (const EmittedSetting& s : e.settings) any = any || !s.is_choice;
  if (any) {
    out += "loader_arguments = dict(\n";
    for (const EmittedSetting& s : e.settings) {
      if (s.is_choice) continue;
      out += Comment(Reason(s), "    # ");
      out += fmt::format("    {}={},\n", s.name, s.value);
    }
    out += ")\n# loader = DataLoader(dataset, ..., **loader_arguments)\n";
  } else {
    out += "# nothing to change among its arguments\n";
  }
  for (const EmittedSetting& s : e.settings) {
    if (s.is_choice) out += Comment(fmt::format("{}={}: {}", s.name, s.value, Reason(s)), "#   ");
  }
  return out;
}

std::string TfDataText(const Emitted& e) {
  std::string assigned, calls;
  for (const EmittedSetting& s : e.settings) {
    if (s.is_call) {
      calls += Comment(Reason(s), "# ");
      calls += fmt::format("#   {}{}\n", s.name, s.value.empty() ? "" : "=" + s.value);
    } else {
      assigned += Comment(Reason(s), "# ");
      assigned += fmt::format("{} = {}\n", s.name, s.value);
    }
  }
  if (assigned.empty() && calls.empty()) return "# nothing to change among its options\n";
  std::string out;
  if (!assigned.empty()) {
    out += "options = tf.data.Options()\n" + assigned + "dataset = dataset.with_options(options)\n";
  }
  if (!calls.empty()) out += "# in the calls that build the dataset:\n" + calls;
  return out;
}

}  // namespace

std::string EmitPython(const RunView& run, const Emitted& e) {
  const char* what =
      e.target == EmitTarget::kDataLoader ? "torch.utils.data.DataLoader" : "tf.data";
  std::string out = Comment(fmt::format("{}, from run {} '{}': {}", what, run.run.run_id,
                                        Printable(run.run.name), e.basis),
                            "# ");
  out += e.target == EmitTarget::kDataLoader ? DataLoaderText(e) : TfDataText(e);
  out += Comment(Gain(e), "# ");
  if (!e.doubt.empty()) {
    out += Comment(fmt::format("not sure: {}. Try it, and compare:", e.doubt), "# ");
    out += fmt::format("#   {}\n", Printable(e.doubt_command, kMostComment));
  }
  out += Comment(Memory(e), "# ");
  AddUnknown(e, &out);
  return out;
}

}  // namespace headrace::analysis

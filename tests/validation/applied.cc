#include "tests/validation/applied.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "tests/validation/gate_parts.h"

namespace headrace::validation {
namespace {

std::vector<std::string> GroupsOf(const std::vector<AppliedTrial>& trials) {
  std::vector<std::string> groups;
  for (const AppliedTrial& t : trials) {
    if (std::find(groups.begin(), groups.end(), t.group) == groups.end()) groups.push_back(t.group);
  }
  return groups;
}

}  // namespace

void JudgeApplied(const std::vector<AppliedTrial>& all, std::vector<Gate>* gates) {
  for (const std::string& group : GroupsOf(all)) {
    const auto trials = Only(all, [&](const AppliedTrial& t) { return t.group == group; });
    gates->push_back(AtLeast("A1", group + ": limit named",
                             Mean(Each(trials, [](const AppliedTrial& t) { return t.right; })),
                             0.90, trials.size()));
    const auto promised = Only(trials, [](const AppliedTrial& t) { return !t.promise.empty(); });
    const auto share = [&](const char* word) {
      return Mean(Each(promised, [&](const AppliedTrial& t) { return t.promise == word; }));
    };
    if (promised.empty()) continue;
    gates->push_back(AtLeast("A2", group + ": gain within the interval that was said",
                             share("holds"), 0.85, promised.size()));
    gates->push_back(AtMost("A3", group + ": a sure gain that brought nothing, or slower by 3 %",
                            share("NOTHING") + share("SLOWER"), 0, promised.size()));
  }
}

std::string AppliedSections(const std::vector<AppliedTrial>& trials) {
  std::string text;
  for (const std::string& group : GroupsOf(trials)) {
    text += fmt::format(
        "## {}{}\n\nThe words that name the limit were written down before. A change was made and "
        "measured alternately with the program as it was: what the first page advised, or, to "
        "programs "
        "of others, what is known to help. A promise counts where that was advised.\n\n"
        "| | limit named | advice | it brought | promise |\n|---|---|---|---|---|\n",
        static_cast<char>(std::toupper(static_cast<unsigned char>(group[0]))), group.substr(1));
    for (const AppliedTrial& t : trials) {
      if (t.group != group) continue;
      text += fmt::format("| {} | {}{} | {} | {} | {} |\n", t.name, t.right ? "" : "**not:** ",
                          t.limit, t.fix, t.brought, t.promise);
    }
    text += "\n";
  }
  return text;
}

}  // namespace headrace::validation

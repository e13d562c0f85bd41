#include "experiments/compared_sides.h"

#include "base/error.h"

namespace headrace::experiments {
namespace {

// What a pipeline's side is called: its own settings, with the file where the other side has
// another.
std::string WhatRuns(const std::string& pipeline, const std::vector<std::string>& settings,
                     bool with_pipeline) {
  std::string text = with_pipeline ? pipeline : "";
  for (const std::string& setting : settings) text += (text.empty() ? "" : " ") + setting;
  return text.empty() ? pipeline + " as it is" : text;
}

// What differs on purpose. What the page cache held is never a reason to refuse, as runs that found
// it empty are left out by what they read.
analysis::IntendedDifference IntendedBy(const SideSettings& settings) {
  analysis::IntendedDifference intended;
  intended.cache = true;
  for (const std::vector<std::string>* own : {&settings.a, &settings.b}) {
    for (const std::string& text : *own)
      intended.table = intended.table || text.rfind("source.table=", 0) == 0;
  }
  return intended;
}

void CheckSide(const AbSide& side, bool cold) {
  try {
    if (LoadSpecOf(side).synthetic && cold) {
      throw Error(ExitCode::kUsage, "the elements are synthetic: there is no table to read",
                  "--cold", "give a pipeline that reads a table");
    }
  } catch (const Error& error) {
    throw error.Within("side " + side.label);
  }
}

}  // namespace

reader::PipelineSpec LoadSpecOf(const AbSide& side) {
  reader::Settings settings;
  for (const std::string& text : side.settings) settings.push_back(reader::ParseSetting(text));
  return reader::LoadPipeline(side.pipeline, settings);
}

ComparedSides PipelineSides(const std::string& a, const std::string& b,
                            const SideSettings& settings, bool cold) {
  ComparedSides sides;
  sides.a.label = "A";
  sides.b.label = "B";
  sides.a.pipeline = a;
  sides.b.pipeline = b;
  sides.a_what = WhatRuns(a, settings.a, a != b);
  sides.b_what = WhatRuns(b, settings.b, a != b);
  sides.intended = IntendedBy(settings);
  sides.cold = cold;
  for (AbSide* side : {&sides.a, &sides.b}) {
    side->settings = settings.both;
    const std::vector<std::string>& own = side == &sides.a ? settings.a : settings.b;
    side->settings.insert(side->settings.end(), own.begin(), own.end());
    if (cold) side->arguments.emplace_back("--cold");
    CheckSide(*side, cold);
  }
  return sides;
}

ComparedSides CommandSides(const std::string& a, const std::string& b) {
  ComparedSides sides;
  sides.a.label = "A";
  sides.b.label = "B";
  sides.a.command = sides.a_what = a;
  sides.b.command = sides.b_what = b;
  sides.intended = IntendedBy({});
  return sides;
}

}  // namespace headrace::experiments

#include "analysis/model/what_if.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "analysis/run/known_loaders.h"
#include "base/error.h"
#include "base/registry.h"

namespace headrace::analysis {
namespace {

constexpr const char* kWhere = "--what-if";
constexpr int kMostThreads = 100'000;
constexpr double kMostFactor = 1e6;

[[noreturn]] void Refuse(const std::string& what, const std::string& fix) {
  throw Error(ExitCode::kUsage, what, kWhere, fix);
}

std::optional<double> Number(const std::string& text) {
  double value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

int Whole(const std::string& key, const std::string& text, int least) {
  const std::optional<double> value = Number(text);
  if (!value || *value < least || *value > kMostThreads || *value != std::floor(*value)) {
    Refuse(fmt::format("{} cannot be '{}'", Printable(key), Printable(text)),
           fmt::format("give a whole number from {} to {}", least, kMostThreads));
  }
  return static_cast<int>(*value);
}

double Factor(const std::string& key, const std::string& text) {
  std::optional<double> value;
  if (text.ends_with('%')) {
    value = Number(text.substr(text.starts_with('+') ? 1 : 0,
                               text.size() - 1 - (text.starts_with('+') ? 1 : 0)));
    const bool change = text.starts_with('+') || text.starts_with('-');
    if (value && text.starts_with('+') && *value < 0) value.reset();
    if (value) *value = *value / 100 + (change ? 1 : 0);
  } else {
    value = Number(text);
  }
  if (!value || *value < 0 || *value > kMostFactor) {
    Refuse(fmt::format("{} cannot be '{}'", Printable(key), Printable(text)),
           "give how many times its present cost: 0.5, 80%, -20%");
  }
  return *value;
}

template <typename T>
std::vector<std::string> NamesOf(const std::vector<T>& items) {
  std::vector<std::string> names;
  for (const T& item : items) names.push_back(item.name);
  return names;
}

std::optional<size_t> Find(const std::vector<std::string>& names, const std::string& name) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return i;
  }
  return std::nullopt;
}

std::string Hint(const std::string& name, const std::vector<std::string>& names) {
  const std::string nearest = NearestName(name, names);
  if (!nearest.empty()) return fmt::format("did you mean '{}'?", Printable(nearest));
  std::vector<std::string> shown;
  for (const std::string& known : names) shown.push_back(Printable(known));
  return fmt::format("there are: {}", fmt::join(shown, ", "));
}

// The stage whose threads that setting of a known loader is about: "num_workers".
std::optional<size_t> StageOfLoader(const PipelineModel& model, const std::string& setting) {
  for (size_t s = 0; s < model.stages().size(); ++s) {
    const KnownLoader* known = FindKnownLoader(model.run(), model.stages()[s].name);
    if (known != nullptr && setting == known->setting && !setting.empty()) return s;
  }
  return std::nullopt;
}

size_t StageNamed(const PipelineModel& model, const std::string& name) {
  const std::vector<std::string> names = NamesOf(model.stages());
  const std::optional<size_t> stage = Find(names, name);
  if (!stage) Refuse(fmt::format("no stage is named '{}'", Printable(name)), Hint(name, names));
  return *stage;
}

std::string WithArticle(const std::string& kind) {
  return (kind == "operator" ? "an " : "a ") + kind;
}

// True when a stage and an operator of the same name cost the same: all other operators of the
// stage are parts of that operator ("fetch.io" of "fetch") or took no time.
bool IsWholeStage(const PipelineModel& model, size_t stage, size_t named) {
  const std::string part = model.operators()[named].name + ".";
  bool found = false;
  for (const size_t i : model.stages()[stage].operators) {
    found = found || i == named;
    const Demands::Operator& demand = model.demands().operators[i];
    const bool idle = demand.cpu_s + demand.blocked_s + demand.lock_wait_s + demand.busy_s <= 0;
    if (i != named && !model.operators()[i].name.starts_with(part) && !idle) return false;
  }
  return found;
}

Scale PartNamed(const PipelineModel& model, const std::string& text) {
  std::string kind, name = text;
  for (const char* prefix : {"stage:", "operator:", "resource:"}) {
    if (!text.starts_with(prefix)) continue;
    kind = std::string(prefix, std::string(prefix).size() - 1);
    name = text.substr(kind.size() + 1);
  }
  std::vector<Scale> found;
  std::vector<std::string> kinds, all{"consumer"};
  const auto look = [&](const char* what, Scaled part, const std::vector<std::string>& names) {
    all.insert(all.end(), names.begin(), names.end());
    if (!kind.empty() && kind != what) return;
    // Names need not be unique: the first of them would be a guess.
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] != name) continue;
      found.push_back({part, i, 1});
      kinds.push_back(what);
    }
  };
  look("stage", Scaled::kStage, NamesOf(model.stages()));
  std::vector<std::string> operators = NamesOf(model.operators());
  for (size_t i = 0; i < operators.size(); ++i) {
    // Those of the consumer are in its step.
    if (model.operators()[i].stage == kNoStage) operators[i].clear();
  }
  look("operator", Scaled::kOperator, operators);
  look("resource", Scaled::kResource, NamesOf(model.resources()));
  if (found.empty() && name == "consumer" && kind.empty()) return {Scaled::kConsumer, 0, 1};
  if (found.empty()) {
    std::erase(all, "");
    Refuse(fmt::format("nothing that costs is named '{}'", Printable(text)), Hint(name, all));
  }
  if (found.size() == 2 && kinds[0] == "stage" && kinds[1] == "operator" &&
      IsWholeStage(model, found[0].index, found[1].index)) {
    return found[0];
  }
  if (found.size() > 1) {
    if (kinds[0] == kinds[1]) {
      Refuse(fmt::format("more than one {} is named '{}'", kinds[0], Printable(name)),
             "give the cost of its stage");
    }
    Refuse(fmt::format("'{}' is {} and {}", Printable(name), WithArticle(kinds[0]),
                       WithArticle(kinds[1])),
           fmt::format("say {}:{}.cost or {}:{}.cost", kinds[0], Printable(name), kinds[1],
                       Printable(name)));
  }
  return found[0];
}

void ApplyWord(const PipelineModel& model, const std::string& word, Variant* what) {
  const size_t equals = word.find('=');
  const std::string key = word.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
  const size_t dot = key.rfind('.');
  const std::string name = key.substr(0, dot == std::string::npos ? 0 : dot);
  const std::string knob = dot == std::string::npos ? key : key.substr(dot + 1);
  if (key == "cores") {
    if (!model.cores_known()) {
      throw Error(ExitCode::kInconclusive,
                  "the run recorded no CPU time or no number of cores, so that cores say nothing",
                  kWhere, "record at level 2");
    }
    const std::optional<double> cores = Number(value);
    if (!cores || *cores < 0.01 || *cores > kMostThreads) {
      Refuse(fmt::format("cores cannot be '{}'", Printable(value)), "give how many: 4, 2.5");
    }
    const bool present = std::abs(*cores - model.cores_budget()) < 1e-9;
    what->settings.cores = present ? model.current().cores : *cores;
  } else if (key == "pipeline.reorder_window") {
    if (!model.ordered()) {
      Refuse("this pipeline delivers in any order, so that no window matters",
             "leave pipeline.reorder_window out");
    }
    what->settings.order_window = Whole(key, value, 0);
  } else if (dot != std::string::npos && knob == "parallelism") {
    const size_t stage = StageNamed(model, name);
    const int threads = Whole(key, value, 1);
    const int most = model.stages()[stage].max_parallelism;
    if (model.stages()[stage].stays_on_consumer) {
      Refuse(fmt::format("{} is work of the trainer's thread", Printable(name)),
             "it gains by a lower cost alone: NAME.cost=0.5");
    }
    if (most > 0 && threads > most) {
      Refuse(fmt::format("stage {} may have {} threads at most", Printable(name), most),
             "a sequential stage gains by a lower cost alone: NAME.cost=0.5");
    }
    what->settings.parallelism[stage] = threads;
  } else if (dot != std::string::npos && knob == "queue") {
    what->settings.queue_capacity[StageNamed(model, name)] = Whole(key, value, 1);
  } else if (dot != std::string::npos && knob == "cost") {
    Scale scale = PartNamed(model, name);
    scale.factor = Factor(key, value);
    if (scale.factor != 1) what->scales.push_back(scale);
  } else if (const std::optional<size_t> stage = StageOfLoader(model, key)) {
    what->settings.parallelism[*stage] = Whole(key, value, 1);
  } else {
    Refuse(fmt::format("'{}' is not a setting", Printable(word)),
           "try STAGE.parallelism=4, STAGE.queue=16, cores=8 or NAME.cost=0.5");
  }
}

}  // namespace

Variant ParseWhatIf(const PipelineModel& model, const std::vector<std::string>& words) {
  Variant what{model.current(), {}};
  for (const std::string& word : words) ApplyWord(model, word, &what);
  return what;
}

}  // namespace headrace::analysis

#include "dashboards/report/own_work_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "analysis/thresholds.h"
#include "base/units.h"
#include "dashboards/report/page_words.h"
#include "dashboards/report/wording.h"

namespace headrace::dashboards {

namespace {

// "load, train.py:9" of "load (train.py:9)".
std::string FunctionAndPlace(std::string function) {
  const size_t open = function.rfind(" (");
  if (open == std::string::npos) return function;
  function.replace(open, 2, ", ");
  function.pop_back();
  return function;
}

std::string InBrackets(const std::string& function) {
  return function.empty() ? "" : " (" + FunctionAndPlace(function) + ")";
}

}  // namespace

std::string OwnFunction(const analysis::Outside& seen) {
  return seen.python ? InBrackets(seen.python->function) : "";
}

std::string OwnWorkWord(const analysis::Outside& seen, const std::string& consumer) {
  if (!seen.python->operator_name.empty() || seen.python->function.empty()) {
    const std::string& name = seen.python->operator_name;
    // What starts workers has no name of an operator on the page.
    const std::string beside =
        name == "start_workers" ? "" : analysis::OperatorBeside(*seen.python);
    return OwnThreadWord(consumer + "'s own thread",
                         beside.empty() ? name : fmt::format("{}, and {} beside it", name, beside));
  }
  return fmt::format("{}'s own thread, loading in {}", consumer,
                     FunctionAndPlace(seen.python->function));
}

std::string StepFunction(const analysis::Outside& seen) {
  const auto own = seen.OwnTimes();
  std::string beside_text;
  if (const auto& beside = seen.beside_training) {
    const std::string& name = beside->place.name;
    beside_text = ", " + beside->Words("it", name.empty() ? "" : FunctionAndPlace(name));
    if (beside->IsMost()) return beside_text;
  }
  if (!own || seen.python->step_s + seen.python->unknown_s <= 0) return beside_text;
  // Beside a loader what is unknown counts as the step.
  const bool is_known = !seen.python->has_loader || seen.python->step_s >= seen.python->unknown_s;
  const std::string& function =
      is_known ? seen.python->step_function : seen.python->unknown_function;
  if (function.empty()) return beside_text;
  return fmt::format(", in its step {} of the time, most of it in {}{}", FormatPercent(own->step),
                     FunctionAndPlace(function), beside_text);
}

std::string InTurn(const analysis::Outside& seen) {
  constexpr double kWorthAWord = 0.05;
  const auto own = seen.OwnTimes();
  if (!own) return "";
  std::string text;
  const auto add = [&](double ratio, const std::string& words) {
    if (ratio < kWorthAWord) return;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", words);
  };
  add(own->loads, fmt::format("loading {}{}", FormatPercent(own->loads), OwnFunction(seen)));
  add(own->waits, fmt::format("waiting {}", FormatPercent(own->waits)));
  add(own->step, fmt::format("its step {}{}", FormatPercent(own->step),
                             InBrackets(seen.python->step_function)));
  if (!seen.python->unknown_function.empty()) {
    add(own->unknown, fmt::format("{} in {}, which may be either", FormatPercent(own->unknown),
                                  FunctionAndPlace(seen.python->unknown_function)));
  }
  return text;
}

std::string SampledWords(const analysis::PythonTime& time) {
  const auto share = [&](double seconds) { return FormatPercent(seconds / time.seconds); };
  const bool is_unknown = !time.has_loader && time.unknown_s > 0;
  return fmt::format(
      "By its sampled functions it loads {} of its time{}, waits {} and is in its step {}{}.",
      share(time.loads_s), InBrackets(time.function), share(time.waits_s),
      share(is_unknown ? time.step_s : time.step_s + time.unknown_s),
      is_unknown ? fmt::format("; {} may be either", share(time.unknown_s)) : "");
}

std::string AdviceForOwnWork(const analysis::Outside& seen) {
  constexpr std::pair<std::string_view, const char*> kAdvice[] = {
      {"sampler",
       "More workers do not help. Make the sampler cheaper, or let it draw many batches at once"},
      {"unpickle",
       "More workers do not help. Send fewer and larger objects, as tensors: one tensor for a "
       "batch instead of many small ones"},
      {"recv_bytes",
       "More workers do not help. Send less, or share it: torch tensors in place of arrays, which "
       "are pickled and copied through a pipe"},
      {"start_workers",
       "persistent_workers=True, and one DataLoader for all epochs: workers are started again and "
       "again, at the latest in each epoch"},
      {"pin_memory", "pin_memory=False, or fewer and larger tensors"},
      {"getitem", "num_workers 0 -> 1 or more, so that loading runs beside the step"},
      {"next",
       "num_workers 0 -> 1, so that loading runs beside the step; more only if the data set "
       "divides itself among workers (get_worker_info)"},
      {"collate", "num_workers 0 -> 1 or more, or a cheaper collate_fn"}};
  const bool has_workers = std::any_of(seen.units.begin(), seen.units.end(), [&](const auto& unit) {
    return unit.role == analysis::UnitRole::kProducer && unit.kind != seen.units[0].kind;
  });
  std::string_view name = seen.python->operator_name;
  if (name == "unpickle" && seen.python->function.find("recv_bytes") != std::string::npos) {
    name = "recv_bytes";
  }
  // Of another library's iterator, or where workers read already.
  if (name == "next" && (seen.flavour != analysis::OutsideFlavour::kTorch || has_workers))
    name = "";
  const auto* const known = std::find_if(std::begin(kAdvice), std::end(kAdvice),
                                         [&](const auto& advice) { return advice.first == name; });
  const char* elsewhere = has_workers ? "Move this work into the processes that load"
                                      : "Load ahead, in another process or in a thread that does "
                                        "not hold Python's lock (GIL)";
  return (known != std::end(kAdvice) ? known->second : elsewhere) + OwnFunction(seen);
}

std::string AdviceForStep(const analysis::Outside& seen) {
  const double loads = seen.InLoader().value_or(0);
  if (loads < analysis::kSmallStall) return "nothing in the loading: it takes too little";
  return fmt::format(
      "a cheaper step. Loading elsewhere at the same time gains at most {}: loading takes {} of "
      "the time",
      FormatPercent(1 / (1 - loads) - 1), FormatPercent(loads));
}

void AddOwnWork(const analysis::Outside& seen, const std::string& who, FirstPage* page) {
  constexpr double kHardly = 0.01;
  const analysis::UnitShares& shares = seen.units[0].shares;
  const bool computes = shares.on_cpu + shares.runnable > 0.5;
  const double ratio = seen.InLoader().value_or(0), own = seen.OwnWork().value_or(0);
  page->badge = StallGrade(ratio);
  page->severity = SeverityOf(ratio);
  if (ratio < kHardly) {
    page->verdict = who + " spent less than 1 % of the time in loading.";
    return;
  }
  page->verdict = fmt::format(
      "{} spent {} of the time in loading{}.", who, FormatPercent(ratio),
      ratio - own >= kHardly ? fmt::format(": {} at work, the rest waiting", FormatPercent(own))
      : computes             ? ", at work"
                             : "");
}

}  // namespace headrace::dashboards

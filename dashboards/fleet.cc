#include "dashboards/fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/units.h"
#include "dashboards/report/wording.h"

namespace headrace::dashboards {
namespace {

using analysis::FleetBound;
using analysis::FleetOutcome;
using analysis::FleetPlan;
using analysis::FleetResource;
using analysis::FleetScenario;
using analysis::FleetSimulation;
using analysis::NodeFit;
using analysis::NodesFile;
using analysis::NodeType;
using analysis::RowCost;

constexpr size_t kOperatorsShown = 8;

std::string Rows(double per_second) { return FormatRate(per_second, "rows"); }

std::string Money(const NodesFile& nodes, double amount) {
  // Cents where they matter, and small sums (of a million rows) to three digits.
  if (amount >= 1000) return fmt::format("{:.0f} {}", amount, Printable(nodes.currency));
  if (amount >= 0.1 || amount == 0)
    return fmt::format("{:.2f} {}", amount, Printable(nodes.currency));
  return fmt::format("{:.3g} {}", amount, Printable(nodes.currency));
}

std::string Watts(double watts) {
  return watts >= 1000 ? fmt::format("{:.2f} kW", watts / 1000) : fmt::format("{:.0f} W", watts);
}

std::string Range(const analysis::Interval& interval) {
  return fmt::format("[{}, {}]", FormatCount(interval.low), FormatCount(interval.high));
}

std::string Probability(double probability) {
  if (probability > 0.99) return ">0.99";
  if (probability < 0.01) return "<0.01";
  return fmt::format("{:.2f}", probability);
}

// What the fleet is for: the target, or the most that can be had.
double RateOf(const FleetPlan& plan) {
  return plan.shortage ? plan.shortage->most_rows_per_s : plan.target;
}

// "24 x c-v1 and 2 x c-v2"
std::string Counts(const NodesFile& nodes, const std::vector<int>& counts) {
  std::string text;
  for (size_t t = 0; t < counts.size(); ++t) {
    if (counts[t] == 0) continue;
    text += fmt::format("{}{} x {}", text.empty() ? "" : " and ", counts[t],
                        Printable(nodes.types[t].name));
  }
  return text.empty() ? "no nodes" : text;
}

// "the nodes (their cores)", "storage bandwidth"
std::string BoundName(const FleetPlan& plan, const FleetBound& bound) {
  std::string name = analysis::FleetResourceName(bound.resource);
  if (bound.resource != FleetResource::kNodes) return name;
  const NodeFit& fit = plan.fits[plan.main_type()];
  if (!fit.bounds.empty())
    name += fmt::format(" (their {})", analysis::NodeResourceName(fit.bounds.front().resource));
  return name;
}

// What a better node of that type would have more of.
void SayNode(const NodeType& type, const NodeFit& fit, std::vector<Sentence>* say) {
  if (fit.bounds.empty()) return;
  const analysis::NodeBound& first = fit.bounds[0];
  std::string text = fmt::format("each {} is limited by its {} at {}, {} of its cores in use",
                                 Printable(type.name), analysis::NodeResourceName(first.resource),
                                 Rows(first.rows_per_s),
                                 FormatPercent(first.rows_per_s * fit.cpu_s_per_row / type.cores));
  if (fit.bounds.size() > 1) {
    const analysis::NodeBound& next = fit.bounds[1];
    text += fmt::format("; then by its {} at {}", analysis::NodeResourceName(next.resource),
                        Rows(next.rows_per_s));
  }
  say->push_back({"NODE", text});
}

void SayVerdict(const NodesFile& nodes, const FleetPlan& plan, Section* section) {
  std::vector<Sentence>& say = section->sentences;
  if (plan.shortage) {
    say.push_back({"VERDICT",
                   fmt::format("no fleet reaches {}: {}", Rows(plan.target), plan.shortage->text)});
    say.push_back({"DO", plan.shortage->fix});
    if (plan.nodes() == 0) return;
  } else {
    say.push_back(
        {"VERDICT", fmt::format("{} carr{} {}, with probability {}", Counts(nodes, plan.counts),
                                plan.nodes() == 1 ? "ies" : "y", Rows(plan.target),
                                Probability(plan.reached_probability))});
  }
  std::string buy =
      fmt::format("{}: {} an hour, {} for a million rows", Counts(nodes, plan.counts),
                  Money(nodes, plan.price_per_hour), Money(nodes, plan.price_per_million_rows));
  if (plan.shortage) buy += fmt::format(", for {}", Rows(plan.shortage->most_rows_per_s));
  say.push_back({"BUY", buy});
  if (!plan.shortage) {
    if (plan.sure_counts.empty()) {
      say.push_back({"SURE", fmt::format("unavailable ({})", plan.no_sure)});
    } else if (plan.sure_counts != plan.counts) {
      say.push_back({"SURE", fmt::format("{} reach it in 9 of 10 cases: {} an hour",
                                         Counts(nodes, plan.sure_counts),
                                         Money(nodes, plan.sure_price_per_hour))});
    }
  }
  const FleetBound& first = plan.bounds.front();
  say.push_back({"LIMITS", fmt::format("{} first, at {} {}, probability {}", BoundName(plan, first),
                                       Rows(first.rows_per_s), Range(first.interval),
                                       Probability(first.probability))});
  if (plan.bounds.size() > 1) {
    const FleetBound& next = plan.bounds[1];
    say.push_back({"THEN", fmt::format("{} at {} {}", BoundName(plan, next), Rows(next.rows_per_s),
                                       Range(next.interval))});
  } else {
    say.push_back({"THEN", "nothing that the nodes file names"});
  }
  const NodeType& main = nodes.types[plan.main_type()];
  SayNode(main, plan.fits[plan.main_type()], &say);
  if (plan.next_node_gain <= 0) {
    say.push_back(
        {"MORE", fmt::format("more nodes do not help: {} is all used at {}",
                             analysis::FleetResourceName(first.resource), Rows(first.rows_per_s))});
  } else {
    std::string more =
        fmt::format("one more {} carries {} more", Printable(main.name), Rows(plan.next_node_gain));
    if (plan.useful_nodes) {
      more += fmt::format("; beyond {} of them more do not help", *plan.useful_nodes);
    }
    say.push_back({"MORE", more});
  }
  if (plan.watts) {
    say.push_back(
        {"POWER", fmt::format("{} at the target, {:.3g} W h for a million rows (from idle "
                              "and peak watts by use of the cores; estimate)",
                              Watts(*plan.watts), *plan.watt_hours_per_million_rows)});
  } else {
    say.push_back({"POWER", fmt::format("unavailable ({})", Printable(plan.no_watts))});
  }
}

// Starved or more than is asked for: both cost money.
void SayDemand(const NodesFile& nodes, const FleetPlan& plan, Section* section) {
  std::vector<Sentence>& say = section->sentences;
  const double carried = plan.bounds.front().rows_per_s;
  if (plan.demand && carried < *plan.demand * (1 - 1e-9)) {
    const double rate = RateOf(plan);
    say.push_back({"STARVED", fmt::format("the clients could take {}: at {} they wait {} of their "
                                          "time",
                                          Rows(*plan.demand), Rows(rate),
                                          FormatPercent(1 - rate / *plan.demand))});
  } else if (plan.demand) {
    say.push_back(
        {"SURPLUS",
         fmt::format("the fleet could carry {} more than the {} that the clients can take",
                     FormatPercent(carried / *plan.demand - 1), Rows(*plan.demand))});
  }
  if (!plan.present) return;
  std::vector<int> have;
  for (const NodeType& type : nodes.types) have.push_back(type.have);
  std::string text =
      fmt::format("{} run at {} an hour and carry {} with nothing left free", Counts(nodes, have),
                  Money(nodes, plan.present->price_per_hour), Rows(plan.present->rows_per_s));
  if (plan.present->starved_ratio > 0) {
    text += fmt::format(": {} less than the target", FormatPercent(plan.present->starved_ratio));
  } else {
    text += fmt::format(": {} more than the target", FormatPercent(plan.present->surplus_ratio));
    const double saved = plan.present->price_per_hour - plan.price_per_hour;
    if (saved > 0) text += fmt::format("; the plan saves {} an hour", Money(nodes, saved));
  }
  say.push_back({"NOW", text});
}

// "128", "1.5"; a job's workers, on average.
std::string CheckWorkers(double workers) {
  const double tenths = std::round(workers * 10) / 10;
  return tenths == std::round(tenths) ? fmt::format("{:.0f}", tenths)
                                      : fmt::format("{:.1f}", tenths);
}

void SayCheck(const NodesFile& nodes, const analysis::PlanCheck& check, Section* section) {
  if (!check.unavailable.empty()) {
    section->sentences.push_back(
        {"CHECK", fmt::format("against job '{}': unavailable ({}); {}", Printable(check.job),
                              Printable(check.unavailable), Printable(check.fix))});
    return;
  }
  std::vector<int> have;
  for (const NodeType& type : nodes.types) have.push_back(type.have);
  const std::string workers = CheckWorkers(check.workers);
  std::string text = fmt::format(
      "job '{}' took {} {} with {} worker{} on {} host{} (its ranks' steps); the model puts {} "
      "at {} {}: {}, and the intervals {}",
      Printable(check.job), Rows(check.measured), Range(check.measured_interval), workers,
      workers == "1" ? "" : "s", check.hosts, check.hosts == 1 ? "" : "s", Counts(nodes, have),
      Rows(check.predicted), Range(check.predicted_interval),
      check.error_ratio > 1 ? fmt::format("{:.3g} times as much", 1 + check.error_ratio)
                            : FormatPercent(std::abs(check.error_ratio)) +
                                  (check.error_ratio < 0 ? " less" : " more"),
      check.agrees ? "overlap" : "do not overlap");
  if (!check.agrees && check.limit != analysis::JobLimit::kWorkers)
    text += fmt::format("; the job was limited by {}", analysis::JobLimitName(check.limit));
  if (!check.agrees && check.lacks_storage)
    text += ", of which the nodes file says nothing: write [storage] bandwidth, iops or latency";
  if (!check.agrees && check.workers < 0.95 * check.planned_workers) {
    text += fmt::format("; the model puts {} workers on them", check.planned_workers);
  } else if (!check.agrees && check.error_ratio > 0 &&
             check.limit == analysis::JobLimit::kWorkers) {
    text += "; the model runs as many threads as the cores carry, the job as many as its file says";
  }
  section->sentences.push_back({"CHECK", text});
}

// "; one spare keeps the target"
std::string SpareWords(const NodesFile& nodes, const FleetScenario& scenario) {
  if (scenario.spares_cut)
    return "; how many spares would do is unavailable (it takes too many events)";
  if (!scenario.spares) {
    return fmt::format("; up to {} spare {} do not keep the target", scenario.spares_tried,
                       Printable(nodes.types[scenario.spare_type].name));
  }
  if (*scenario.spares == 0) return "; no spare is needed for it";
  return fmt::format("; {} spare {} would keep the target", *scenario.spares,
                     Printable(nodes.types[scenario.spare_type].name));
}

// "12 %", or that it does not limit.
std::string Limited(const FleetPlan& plan, FleetResource a, FleetResource b, double ratio) {
  const auto unlimited = [&](FleetResource resource) {
    return std::find(plan.unlimited.begin(), plan.unlimited.end(), resource) !=
           plan.unlimited.end();
  };
  return unlimited(a) && unlimited(b) ? "not limiting" : FormatPercent(ratio);
}

void SaySimulated(const NodesFile& nodes, const FleetPlan& plan, const FleetSimulation& simulation,
                  Section* section) {
  if (!simulation.unavailable.empty()) {
    section->sentences.push_back({"RUN", fmt::format("unavailable ({})", simulation.unavailable)});
    return;
  }
  const FleetOutcome& planned = simulation.planned;
  std::string text = fmt::format(
      "{}; clients{} wait {} of their time (the worst {}), a batch is {} on its way, 99 % at most "
      "{}; ",
      Rows(simulation.planned_rows_per_s),
      plan.shortage || (plan.demand && simulation.rate < *plan.demand * (1 - 1e-9))
          ? fmt::format(", slowed to {},", Rows(simulation.rate))
          : "",
      FormatPercent(planned.stall_ratio), FormatPercent(planned.worst_stall_ratio),
      FormatDuration(planned.latency_p50_s * 1e9), FormatDuration(planned.latency_p99_s * 1e9));
  text += simulation.most_rows_per_s
              ? fmt::format("{} at most if clients took all", Rows(*simulation.most_rows_per_s))
              : fmt::format("what it carries if clients took all is unavailable ({})",
                            simulation.no_most);
  section->sentences.push_back({"RUN", text});
  if (simulation.planned_rows_per_s < 0.99 * simulation.rate) {
    section->sentences.push_back(
        {"WARNING",
         fmt::format("simulated, the fleet does not carry {}: {}", Rows(simulation.rate),
                     simulation.missing ? fmt::format("add {} x {}", *simulation.missing,
                                                      Printable(nodes.types[plan.main_type()].name))
                     : simulation.missing_cut
                         ? "how many nodes are missing is unavailable (it takes too many events)"
                         : fmt::format("nor with up to {} x {} more; look at clients' buffers, "
                                       "latencies and units in flight",
                                       simulation.missing_tried,
                                       Printable(nodes.types[plan.main_type()].name)))});
  }
  const FleetScenario* worst = nullptr;
  for (const FleetScenario& scenario : simulation.scenarios) {
    if (scenario.key != "one_node") continue;
    worst = &scenario;
  }
  if (worst == nullptr) return;
  if (!worst->unavailable.empty()) {
    section->sentences.push_back(
        {"LOSS", fmt::format("{}: unavailable ({})", worst->name, worst->unavailable)});
    return;
  }
  std::string loss =
      fmt::format("{}: clients take {} and wait {} of their time", worst->name,
                  Rows(worst->after_rows_per_s), FormatPercent(worst->after_stall_ratio));
  loss += SpareWords(nodes, *worst);
  section->sentences.push_back({"LOSS", loss});
}

Section SimulationSection(const FleetPlan& plan, const FleetSimulation& simulation) {
  Section section{"simulation", "", {}, {}, {}};
  section.title = fmt::format(
      "Simulated: {} node{} for {}, {} events; what is lost is lost after {}", plan.nodes(),
      plan.nodes() == 1 ? "" : "s", FormatDuration(simulation.duration_s * 1e9),
      FormatCount(static_cast<double>(simulation.events)), FormatDuration(simulation.at_s * 1e9));
  const FleetOutcome& planned = simulation.planned;
  section.sentences.push_back(
      {"BUSY", fmt::format("cores {}, storage {}, dispatcher {}, the busiest client's NIC {}",
                           FormatPercent(planned.cores_ratio),
                           Limited(plan, FleetResource::kStorageBandwidth,
                                   FleetResource::kStorageRequests, planned.storage_ratio),
                           Limited(plan, FleetResource::kDispatcher, FleetResource::kDispatcher,
                                   planned.dispatcher_ratio),
                           Limited(plan, FleetResource::kClientNic, FleetResource::kClientNic,
                                   planned.client_nic_ratio))});
  Table table{"scenarios",
              "",
              {{"name", "what happens"},
               {"after", "rows/s then"},
               {"stall", "clients wait"},
               {"worst", "at worst"},
               {"spares", "spares"},
               {"back", "back after"},
               {"redone", "redone"}},
              {}};
  for (const FleetScenario& scenario : simulation.scenarios) {
    const bool takes = !scenario.disturbance.lost.empty();
    if (!scenario.unavailable.empty()) {
      table.rows.push_back({fmt::format("{}: {}", scenario.name, scenario.unavailable), "-", "-",
                            "-", "-", "-", "-"});
      continue;
    }
    table.rows.push_back({scenario.name, FormatCount(scenario.after_rows_per_s),
                          FormatPercent(scenario.after_stall_ratio),
                          FormatPercent(scenario.worst_stall_ratio),
                          !takes                ? std::string("-")
                          : scenario.spares     ? std::to_string(*scenario.spares)
                          : scenario.spares_cut ? std::string("unavailable")
                                                : fmt::format("> {}", scenario.spares_tried),
                          !scenario.back_s        ? std::string("not")
                          : *scenario.back_s <= 0 ? std::string("never left")
                                                  : FormatDuration(*scenario.back_s * 1e9),
                          takes ? FormatCount(scenario.lost_rows) + " rows" : std::string("-")});
  }
  section.tables.push_back(std::move(table));
  return section;
}

Table BoundsTable(const FleetPlan& plan) {
  Table table{"bounds",
              "",
              {{"name", "what"},
               {"rows_per_second", "rows/s"},
               {"interval", "90 %"},
               {"utilisation_ratio", "used"},
               {"probability", "first"},
               {"per_row", "a row takes"},
               {"capacity", "there is"}},
              {}};
  for (const FleetBound& bound : plan.bounds) {
    const bool bytes = bound.resource == FleetResource::kStorageBandwidth ||
                       bound.resource == FleetResource::kClientNic;
    std::string each = "-", all = "-";
    if (bound.per_row > 0) {
      each = bytes ? FormatBytes(bound.per_row) : fmt::format("{:.3g} requests", bound.per_row);
      all = bytes ? FormatBytesRate(bound.capacity) : FormatCount(bound.capacity) + "/s";
    }
    table.rows.push_back({BoundName(plan, bound), FormatCount(bound.rows_per_s),
                          Range(bound.interval), FormatPercent(bound.utilisation),
                          Probability(bound.probability), each, all});
  }
  return table;
}

Table NodesTable(const NodesFile& nodes, const FleetPlan& plan) {
  Table table{"nodes",
              "",
              {{"name", "type"},
               {"count", "nodes"},
               {"rows_per_second", "rows/s each"},
               {"interval", "90 %"},
               {"binds", "limited by"},
               {"probability", "prob."},
               {"cpu_ratio", "CPU"},
               {"threads", "threads"},
               {"memory", "memory"}},
              {}};
  for (size_t t = 0; t < nodes.types.size(); ++t) {
    const NodeFit& fit = plan.fits[t];
    const bool bound = !fit.bounds.empty();
    table.rows.push_back({Printable(nodes.types[t].name), std::to_string(plan.counts[t]),
                          FormatCount(fit.rows_per_s), Range(fit.interval),
                          bound ? analysis::NodeResourceName(fit.bounds.front().resource) : "-",
                          bound ? Probability(fit.bounds.front().probability) : "-",
                          FormatPercent(fit.cpu_ratio),
                          fit.processes > 1 ? fmt::format("{} in {}", fit.threads, fit.processes)
                                            : std::to_string(fit.threads),
                          fit.memory_bytes ? FormatBytes(*fit.memory_bytes) : "-"});
  }
  return table;
}

Table AlternativesTable(const NodesFile& nodes, const FleetPlan& plan) {
  Table table{"alternatives",
              "",
              {{"name", "type"}, {"count", "nodes"}, {"price", "an hour"}, {"watts", "power"}},
              {}};
  for (const analysis::FleetAlternative& alone : plan.alternatives) {
    table.rows.push_back({Printable(nodes.types[alone.type].name),
                          alone.count ? std::to_string(*alone.count) : "too few available",
                          alone.count ? Money(nodes, alone.price_per_hour) : "-",
                          alone.count && alone.watts ? Watts(*alone.watts) : "-"});
  }
  return table;
}

Section CostSection(const RowCost& cost) {
  Section section{"row", "A row", {}, {}, {}};
  const analysis::RowFigures& row = cost.figures;
  const double cpu = row.cpu_s();
  std::string text = fmt::format("{} of CPU and {} blocked", FormatDuration(cpu * 1e9),
                                 FormatDuration(row.blocked_s * 1e9));
  const auto bytes = [](const std::optional<double>& value, const std::string& reason) {
    return value ? FormatBytes(*value) : fmt::format("unavailable ({})", reason);
  };
  section.sentences.push_back({"COST", text});
  section.sentences.push_back({"READS", bytes(row.stored_bytes, cost.no_stored)});
  section.sentences.push_back({"SENDS", bytes(row.sent_bytes, cost.no_sent)});
  Table table{"operators", "", {{"name", "operator"}, {"cpu", "CPU"}, {"share", "share"}}, {}};
  std::vector<std::pair<double, std::string>> order;
  for (size_t i = 0; i < cost.operators.size(); ++i)
    order.push_back({row.operator_cpu_s[i], cost.operators[i].name});
  if (row.other_cpu_s > 0) order.push_back({row.other_cpu_s, "(no operator)"});
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  table.text_rows = kOperatorsShown;
  for (const auto& [seconds, name] : order) {
    if (seconds <= 0) continue;
    table.rows.push_back({Printable(name), FormatDuration(seconds * 1e9),
                          FormatPercent(cpu > 0 ? seconds / cpu : 0)});
  }
  section.tables.push_back(std::move(table));
  return section;
}

}  // namespace

std::vector<std::string> FleetAssumptions(const RowCost& cost, const NodesFile& nodes,
                                          const FleetPlan& plan) {
  std::vector<std::string> lines = cost.assumptions;
  for (size_t t = 0; t < nodes.types.size(); ++t) {
    const NodeType& type = nodes.types[t];
    for (const auto& [name, speed] : type.speed_of) {
      const auto is_it = [&name = name](const RowCost::Operator& op) {
        return op.name == name || op.kind == name;
      };
      if (std::any_of(cost.operators.begin(), cost.operators.end(), is_it)) continue;
      std::string names;
      for (size_t i = 0; i < cost.operators.size() && i < kOperatorsShown; ++i)
        names += (i == 0 ? "" : ", ") + Printable(cost.operators[i].name, 40);
      if (cost.operators.size() > kOperatorsShown) names += ", ...";
      lines.push_back(fmt::format(
          "the speed of '{}' that '{}' gives cannot be used: the run has the operators {}",
          Printable(name, 60), Printable(type.name), names));
    }
    if (plan.fits[t].speed_known) continue;
    lines.push_back(
        fmt::format("a core of '{}' does the work of a recorded one, within two thirds "
                    "to one and a half: give its 'speed' or 'speed_of'",
                    Printable(type.name)));
  }
  std::string unlimited;
  for (const FleetResource resource : plan.unlimited) {
    unlimited +=
        (unlimited.empty() ? "" : ", ") + std::string(analysis::FleetResourceName(resource));
  }
  if (!unlimited.empty()) {
    lines.push_back(
        fmt::format("not limited by {}: the nodes file or the run says nothing of it", unlimited));
  }
  lines.push_back(
      fmt::format("{} of every capacity is left free (headroom)", FormatPercent(nodes.headroom)));
  return lines;
}

Report MakeFleetReport(const FleetPage& page) {
  const RowCost& cost = page.cost;
  const NodesFile& nodes = page.nodes;
  const FleetPlan& plan = page.plan;
  const analysis::RunRow& run = page.run.run;
  Report report;
  report.title = fmt::format("fleet for {}{}, from run {} '{}'", Rows(plan.target),
                             plan.target_is_demand ? " (what the clients demand)" : "", run.run_id,
                             Printable(run.name));
  Section verdict{"fleet", "", {}, {}, {}};
  SayVerdict(nodes, plan, &verdict);
  if (page.simulation != nullptr) SaySimulated(nodes, plan, *page.simulation, &verdict);
  SayDemand(nodes, plan, &verdict);
  if (page.check != nullptr) SayCheck(nodes, *page.check, &verdict);
  report.sections.push_back(std::move(verdict));
  report.sections.push_back({"bounds", "What the fleet needs", {}, {}, {BoundsTable(plan)}});
  report.sections.push_back({"nodes", "Nodes", {}, {}, {NodesTable(nodes, plan)}});
  if (nodes.types.size() > 1) {
    report.sections.push_back({"alternatives",
                               fmt::format("One type alone for {}", Rows(RateOf(plan))),
                               {},
                               {},
                               {AlternativesTable(nodes, plan)}});
  }
  if (page.simulation != nullptr && page.simulation->unavailable.empty())
    report.sections.push_back(SimulationSection(plan, *page.simulation));
  report.sections.push_back(CostSection(cost));
  Section assumed{"assumptions", "Assumed", {}, {}, {}};
  for (const std::string& line : FleetAssumptions(cost, nodes, plan))
    assumed.sentences.push_back({"-", line});
  if (page.simulation != nullptr) {
    for (const std::string& line : page.simulation->assumptions)
      assumed.sentences.push_back({"-", "simulated: " + line});
  }
  report.sections.push_back(std::move(assumed));
  report.decided = !plan.shortage;
  return report;
}

}  // namespace headrace::dashboards

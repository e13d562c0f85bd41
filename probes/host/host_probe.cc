#include "probes/host/host_probe.h"

#include <unistd.h>

#include <algorithm>

namespace headrace::probes {

double Growth::Since(std::string_view metric, const Labels& labels, double now) {
  const auto [it, is_new] = entries_.try_emplace({metric, labels});
  Entry& entry = it->second;
  if (is_new) {
    entry = {now, begun_ ? now : 0};
  } else if (now >= entry.last) {
    entry.grown += now - entry.last;
    entry.last = now;
  } else if (now < entry.last / 2) {
    entry.grown += now;
    entry.last = now;
  }
  return entry.grown;
}

void Reading::Counter(std::string_view metric, const Labels& labels, double now) {
  Total(metric, labels, growth_->Since(metric, labels, now));
}

void Reading::Total(std::string_view metric, const Labels& labels, double since_start,
                    bool course) {
  figures_++;
  if (sink_) sink_->Add({metric, since_start, labels, std::nullopt, std::nullopt, course});
}

void Reading::Gauge(std::string_view metric, const Labels& labels, double now) {
  Total(metric, labels, now);
}

void Reading::Missing(std::string reason, std::string fix) {
  if (!reason_.empty()) return;
  reason_ = std::move(reason);
  fix_ = std::move(fix);
}

void Reading::MissingFile(const std::string& path, const std::string& fix) {
  Missing(ReadFailure(path), ReadFix(fix));
}

Availability Reading::availability() const {
  if (figures_ == 0) return Availability::Unavailable(reason_, fix_);
  return reason_.empty() ? Availability::Ok() : Availability::Degraded(reason_, fix_);
}

Availability HostProbe::Start(const Host& host, const Target& target) {
  host_ = &host;
  target_ = &target;
  Reading reading(&growth_, nullptr);
  Sample(host, target, reading);
  growth_.Begin();
  starting_ = false;
  return reading.availability();
}

void HostProbe::Read(Sink& sink) {
  Reading reading(&growth_, &sink);
  Sample(*host_, *target_, reading);
}

Target SelfTarget(const Host& host) {
  Target target;
  if (host.is_this_machine()) {
    target.root_pid = getpid();
  } else if (const auto stat = host.Read("/proc/self/stat", 4096)) {
    const auto fields = Fields(*stat, 1);
    target.root_pid = fields.empty() ? 0 : Count(fields[0]).value_or(0);
  }
  if (target.root_pid > 0) target.pids.push_back(target.root_pid);
  return target;
}

}  // namespace headrace::probes

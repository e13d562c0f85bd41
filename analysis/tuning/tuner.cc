#include "analysis/tuning/tuner.h"

#include <cmath>

#include "analysis/thresholds.h"
#include "analysis/tuning/tuner_state.h"
#include "base/error.h"

namespace headrace::analysis {

Tuner::Tuner(TunerOptions options, KnobValues knobs)
    : state_(std::make_unique<TunerState>(options, knobs)) {
  state_->result.start = state_->start;
}
Tuner::~Tuner() = default;

Move Tuner::Next(const RunView& run) {
  state_->Read(run);
  return state_->Next();
}

void Tuner::Applied(int64_t at_ns) {
  TunerState& s = *state_;
  for (const Change& change : s.pending) s.current[change.knob] = change.to;
  s.pending.clear();
  s.back_off_ns = kFirstBackOffNs;
  const double settling = s.Settling() * static_cast<double>(s.seen.window_ns);
  s.seen.Changed(s.current, at_ns, at_ns + std::llround(settling));
  if (s.trial) s.trial->block_from_ns = 0;
  if (!s.pending_decision) return;
  s.decisions[*s.pending_decision].applied_ns = at_ns;
  s.unheard.push_back(*s.pending_decision);
  s.pending_decision.reset();
}

void Tuner::Failed(const std::string& why) {
  TunerState& s = *state_;
  s.failed = "the settings could not be set: " + why;
  s.pending.clear();
  const std::optional<size_t> decision = s.pending_decision ? s.pending_decision
                                         : s.trial ? std::optional<size_t>(s.trial->decision)
                                                   : std::nullopt;
  s.pending_decision.reset();
  if (!decision) return;
  s.decisions[*decision].verdict = TuneVerdict::kFailed;
  s.unheard.push_back(*decision);
}

Move Tuner::End(bool runs_on) { return state_->End(runs_on); }

void Tuner::Disturbed(int64_t from_ns, int64_t to_ns) { state_->seen.Disturbed(from_ns, to_ns); }

TuneResult Tuner::result() const {
  TuneResult result = state_->result;
  result.end = state_->incumbent;
  result.applied = state_->applied;
  if (result.why.empty()) result.why = "the run ended before the plan stopped changing";
  if (!result.effect && result.effect_note.empty()) {
    result.effect_note = result.end == result.start
                             ? "the settings are those of the start"
                             : "the run ended before the comparison with the start";
  }
  return result;
}

TuneResult Tune(Tuner* tuner, TunedTarget* target, const std::vector<DecisionSink*>& sinks) {
  const auto carry_out = [&](const Move& move) {
    for (const Decision& decision : move.decisions) {
      for (DecisionSink* sink : sinks) sink->Take(decision);
    }
    if (move.set.empty()) return;
    try {
      tuner->Applied(target->Apply(move.set));
    } catch (const Error& error) {
      tuner->Failed(error.what());
    }
  };
  int64_t wait_ns = 0;
  while (std::optional<RunView> run = target->Observe(wait_ns)) {
    const std::optional<int64_t> from_ns = target->now_ns();
    const Move move = tuner->Next(*run);
    const std::optional<int64_t> to_ns = target->now_ns();
    if (from_ns && to_ns && static_cast<double>(*to_ns - *from_ns) > kShortWorkNs) {
      tuner->Disturbed(*from_ns, *to_ns);
    }
    carry_out(move);
    if (move.stop) return tuner->result();
    wait_ns = move.wait_ns;
  }
  carry_out(tuner->End(target->RunsOn()));
  carry_out(tuner->End(false));  // tells how that went
  return tuner->result();
}

}  // namespace headrace::analysis

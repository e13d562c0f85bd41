#include "dashboards/terminal/top.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "base/units.h"
#include "collectors/store/store.h"
#include "dashboards/serve/port.h"
#include "dashboards/terminal/live_run.h"
#include "dashboards/terminal/screen.h"
#include "dashboards/terminal/top_table.h"
#include "dashboards/terminal/top_verdict.h"

namespace headrace::dashboards {
namespace {

constexpr int64_t kWindowNs = 10'000'000'000;  // what figures of a recording are means over
constexpr int64_t kBetweenVerdictsNs = 5'000'000'000;
constexpr int64_t kFirstVerdictNs = 100'000'000;  // between looks for the first verdict
constexpr int64_t kQuitWithinNs = 200'000'000;

class TopView {
 public:
  explicit TopView(const TopOptions& options)
      : options_(options),
        run_(options.database, options.run_id),
        screen_(std::in_place, options.color),
        verdicts_(
            [options] {
              return MakeTopVerdict(options.database, options.run_id, options.program,
                                    options.database_option);
            },
            kBetweenVerdictsNs) {
    state_.interval_ns = std::clamp(options.interval_ns, kLeastIntervalNs, kMostIntervalNs);
    state_.asks = options.command_runs && options.command_runs();
    verdicts_.Want();
    next_read_ns_ = MonotonicNs() + state_.interval_ns;
  }

  TopEnd Run() {
    Renew();
    while (!state_.quit && !Interrupted()) {
      if (MonotonicNs() >= next_read_ns_) Read();
      if (verdicts_.latest() != verdict_) Renew();
      Draw();
      HandleKeys();
    }
    return {Interrupted(), state_.end_command, false};
  }

  VerdictMaker& verdicts() { return verdicts_; }
  void CloseScreen() { screen_.reset(); }

 private:
  bool Interrupted() const { return options_.interrupted && options_.interrupted(); }

  void Read() {
    next_read_ns_ = MonotonicNs() + state_.interval_ns;
    try {
      if (run_.Read()) verdicts_.Want(!run_.figures().recording());
      failure_.clear();
    } catch (const Error& error) {
      failure_ = error.what();  // what was read stays on the screen
    }
    state_.asks = options_.command_runs && options_.command_runs();
    Renew();
  }

  // What is shown is what was read last, unless the user froze it.
  void Renew() {
    if (state_.frozen && verdict_ != nullptr) return;
    verdict_ = verdicts_.latest();
    model_ = MakeTopModel(run_.figures(), verdict_.get(), std::max(kWindowNs, state_.interval_ns));
    model_.notes = options_.notes;
    AddNotes();
    if (verdict_ != nullptr) return;
    const std::string why = verdicts_.failure();
    model_.waiting = why.empty() ? "looking for what limits it ..." : "no verdict: " + why;
  }

  // New notes, also on a view that is frozen: its figures stay.
  void Tell() {
    model_.notes = options_.notes;
    AddNotes();
  }

  void AddNotes() {
    if (!failure_.empty()) model_.notes.push_back(failure_);
    if (!marked_.empty()) model_.notes.push_back(marked_);
    if (!state_.address) return;
    model_.notes.push_back(
        fmt::format("Page: http://127.0.0.1:{}/run/{} (while this runs: {} serve{})", kServePort,
                    options_.run_id, options_.program, options_.database_option));
  }

  // A store that cannot be written to says so where the mark would be told.
  void Mark() {
    state_.mark = false;
    try {
      collectors::RunStore store(options_.database);
      const std::string text = fmt::format("mark {}", ++marks_);
      marked_ =
          fmt::format("{} at {}", text,
                      FormatDuration(static_cast<double>(store.AddMark(options_.run_id, text))));
      marked_[0] = 'M';
    } catch (const Error& error) {
      --marks_;
      marked_ = std::string("Not marked: ") + error.what();
    }
  }

  void Draw() {
    // Where the user selected nothing, the limit is what enter opens.
    const std::vector<size_t> shown = ShownStages(model_, state_);
    shown_ = shown.size();
    if (!state_.selecting) {
      state_.selected = 0;
      for (size_t i = shown.size(); i-- > 0;) {
        if (model_.stages[shown[i]].limit) state_.selected = i;
      }
    }
    if (shown_ > 0) state_.selected = std::min(state_.selected, shown_ - 1);
    TopLayout layout{screen_->width(), screen_->height(), options_.ascii, false};
    screen_->Show(LayOutTop(model_, state_, layout));
  }

  void HandleKeys() {
    int64_t wait_ns = next_read_ns_ - MonotonicNs();
    if (verdicts_.latest() == nullptr) wait_ns = std::min(wait_ns, kFirstVerdictNs);
    const int64_t interval_ns = state_.interval_ns;
    const bool frozen = state_.frozen, address = state_.address;
    std::optional<Key> key = screen_->WaitForKey(std::max<int64_t>(0, wait_ns));
    while (key && !state_.quit) {
      Press(*key, shown_, &state_);
      key = screen_->WaitForKey(0);
    }
    if (state_.interval_ns != interval_ns) next_read_ns_ = MonotonicNs() + state_.interval_ns;
    const bool marks = state_.mark;
    if (marks) Mark();
    if (marks || address != state_.address) Tell();
    if (frozen && !state_.frozen) Renew();
  }

  TopOptions options_;
  LiveRun run_;
  std::optional<Screen> screen_;
  VerdictMaker verdicts_;
  TopState state_;
  TopModel model_;
  std::shared_ptr<const TopVerdict> verdict_;
  std::string failure_, marked_;
  int marks_ = 0;
  int64_t next_read_ns_ = 0;
  size_t shown_ = 0;
};

}  // namespace

TopEnd RunTop(const TopOptions& options) {
  TopView view(options);
  TopEnd end;
  try {
    end = view.Run();
  } catch (...) {
    view.CloseScreen();  // before the rest of the view waits for the verdict that is being made
    throw;
  }
  view.CloseScreen();
  end.unfinished = !view.verdicts().Finish(kQuitWithinNs);
  return end;
}

TopModel LookOnce(const TopOptions& options) {
  const LiveRun run(options.database, options.run_id);
  const TopVerdict verdict =
      MakeTopVerdict(options.database, options.run_id, options.program, options.database_option);
  TopModel model = MakeTopModel(run.figures(), &verdict, std::max(kWindowNs, options.interval_ns));
  model.notes = options.notes;
  return model;
}

}  // namespace headrace::dashboards

// What analysis says of a run that top shows: the first page of its report, what each limit allows,
// and which stages are the limit. It is made on a thread of its own, so that keys never wait for
// it.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/run/run_view.h"
#include "base/quantity.h"
#include "dashboards/report/page.h"

namespace headrace::dashboards {

// A limit that is neither a stage nor the trainer: "CPU cores", "lock table".
struct TopResource {
  std::string name;
  double used_ratio = 0;  // observed rate / allowed rate
  double allows = 0;      // batches per second
  bool limit = false;
};

// What threads of one kind did in a run that is seen from outside; shares of their time.
struct TopUnit {
  std::string name, role;  // "4 processes pt_data_worker", "producer"
  double on_core = 0, wants = 0;
  std::string waits_for;  // what most of the rest was: "storage", "input", "the trainer"
  double waits = 0;       // that part
};

struct TopVerdict {
  std::string title;        // as the report's: "run 1 'x', measurement level 3"
  FirstPage page;           // as the report's, safe to print
  bool decided = false;     // the verdict was neither withheld nor undecided
  int64_t recorded_ns = 0;  // how much of the run it is about
  int64_t took_ns = 0;      // wall time that making it took

  std::map<std::string, double> allows;  // stage -> batches per second
  std::set<std::string> limits;          // stages that are the limit
  std::set<std::string> on_trainer;      // stages that run on the trainer's thread
  std::optional<double> trainer_allows;  // batches per second; nothing: it computes nothing
  bool trainer_limits = false;
  std::optional<double> rows_per_batch;
  std::vector<TopResource> resources;  // those with the least bounds first
  std::vector<TopUnit> units;          // of a run that is seen from outside
  Quantity cost_ratio = Quantity::Unavailable("not known yet");  // recording, of the machine
  Quantity lost_count = Quantity::Unavailable("not known yet");  // events

  // The windows that the verdict is about, with the entities that they are of.
  analysis::RunView run;
  std::vector<size_t> steady;  // indices of run.windows; empty: there is no model

  // "of the steady part of the run", "of the whole run".
  int64_t steady_first_ns = 0, steady_last_ns = 0;
};

// Loads the run and makes its verdict. `program` and `database_option` are for commands to paste
// (RunView). Takes from a tenth of a second to seconds. Throws Error as LoadRun.
TopVerdict MakeTopVerdict(const std::string& database, int64_t run_id, const std::string& program,
                          const std::string& database_option);
// The same of a run that is loaded.
TopVerdict MakeTopVerdict(analysis::RunView run);

// From the beginning of a verdict about so much of a run, which took so much CPU time, to that of
// the next: until there is a quarter more to say it about, for a minute at most (of a long run, a
// few seconds more change nothing), and until it has cost no more than 0.4 % of a core, for two
// minutes at most.
int64_t BetweenVerdictsNs(int64_t recorded_ns, int64_t cpu_ns);

// Makes verdicts on a thread of its own, one at a time: the next one begins at the earliest
// `least_ns` after the last began, and after nine times as long as that one took, so that a long
// run does not keep a core busy. Where nobody hurries it also waits for BetweenVerdictsNs.
class VerdictMaker {
 public:
  VerdictMaker(std::function<TopVerdict()> make, int64_t least_ns);
  // Waits for the verdict that is being made.
  ~VerdictMaker();
  VerdictMaker(const VerdictMaker&) = delete;
  VerdictMaker& operator=(const VerdictMaker&) = delete;

  // There are new figures: makes a verdict as soon as it may. `at_once`: they are the last ones.
  void Want(bool at_once = false);
  // The last one; null before the first. It stays until the next one is there.
  std::shared_ptr<const TopVerdict> latest() const;
  // Why the last attempt failed; empty: it did not.
  std::string failure() const;
  bool working() const;
  // Ends the thread; waits for at most `wait_ns`. False: a verdict is still being made. The thread
  // then goes on by itself, and the process must end without running destructors of static objects.
  bool Finish(int64_t wait_ns);

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the thread, which may outlive this object
};

}  // namespace headrace::dashboards

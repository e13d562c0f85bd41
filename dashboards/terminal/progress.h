// Messages on stderr while something takes long.
#pragma once
#include <cstdint>
#include <string>

namespace headrace::dashboards {

// Progress on stderr: a bar with the time left, redrawn in place on a terminal and never wider than
// it; otherwise at most one plain line every two seconds.
class Progress {
 public:
  explicit Progress(std::string title);
  ~Progress();
  void Update(double fraction, const std::string& note);  // cheap to call often
  void Finish(const std::string& note);

 private:
  std::string title_;
  bool terminal_;
  int64_t begin_ns_ = 0, last_ns_ = 0;
  bool drawn_ = false;
};

// Shows on a terminal what is being done while there is no progress to show yet; removed with the
// object. Silent where stderr is not a terminal.
class TransientNote {
 public:
  explicit TransientNote(const std::string& text);
  ~TransientNote();
  TransientNote(const TransientNote&) = delete;
  TransientNote& operator=(const TransientNote&) = delete;

 private:
  bool drawn_;
};

// The line of a progress bar in at most `width` columns: what does not fit is left out from the
// right, the bar before the remaining time. `left_s` below 0: not known yet.
std::string ProgressLine(const std::string& title, double fraction, double left_s,
                         const std::string& note, int width);

}  // namespace headrace::dashboards

// BorrowedWorkers: a job's end of a pool (pool.h): says how many workers would be of use to the
// job, and hears how many it has. A thread of its own talks to the pool, so that the job's
// dispatcher waits for no network.
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/error.h"
#include "reader/service/job_place.h"
#include "reader/service/wakeup.h"

namespace headrace::reader::service {

class BorrowedWorkers {
 public:
  // `about`: the job, without a number of workers. `note`: lines about what it waits for, by the
  // thread.
  BorrowedWorkers(std::shared_ptr<JobPlace> pool, Want about,
                  std::function<void(const std::string&)> note);
  ~BorrowedWorkers();  // gives them back, which takes a tenth of a second at most
  BorrowedWorkers(const BorrowedWorkers&) = delete;
  BorrowedWorkers& operator=(const BorrowedWorkers&) = delete;

  // So many would be of use from now on; before the first call as many as the dispatcher before
  // this one wanted, if the pool knows of one.
  void ScaleTo(uint32_t workers);
  // What the pool said last; nothing without one.
  std::optional<Grant> grant() const;
  // Throws Error where the pool refuses the job, and none has taken it before.
  void Check() const;

 private:
  void Talk();
  void TalkTo(ControlConnection* connection);
  bool IsEnding() const;
  void TakeRefusal(const Error& error);
  void Note(const std::string& text);

  const std::shared_ptr<JobPlace> pool_;
  const Want about_;
  const std::function<void(const std::string&)> note_;
  Wakeup wakeup_;
  std::string noted_;         // by the thread
  mutable std::mutex mutex_;  // guards the following
  std::optional<uint32_t> wanted_;
  std::optional<Grant> grant_;
  std::optional<Refused> refused_;
  bool is_ending_ = false, was_granted_ = false;
  std::thread thread_;
};

}  // namespace headrace::reader::service

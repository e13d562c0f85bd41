#include "reader/service/borrowed_workers.h"

#include <fmt/format.h>
#include <poll.h>

#include <utility>

#include "base/error.h"

namespace headrace::reader::service {
namespace {

constexpr int kHearMs = 100, kAgainMs = 500;

}  // namespace

BorrowedWorkers::BorrowedWorkers(std::shared_ptr<JobPlace> pool, Want about,
                                 std::function<void(const std::string&)> note)
    : pool_(std::move(pool)), about_(std::move(about)), note_(std::move(note)) {
  thread_ = std::thread([this] { Talk(); });
}

BorrowedWorkers::~BorrowedWorkers() {
  {
    std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  wakeup_.Wake();
  thread_.join();
}

void BorrowedWorkers::ScaleTo(uint32_t workers) {
  std::lock_guard lock(mutex_);
  if (wanted_ == workers) return;
  wanted_ = workers;
  wakeup_.Wake();
}

std::optional<Grant> BorrowedWorkers::grant() const {
  std::lock_guard lock(mutex_);
  return grant_;
}

void BorrowedWorkers::Check() const {
  std::lock_guard lock(mutex_);
  if (refused_)
    throw Error(static_cast<ExitCode>(refused_->code), refused_->reason, pool_->text(),
                refused_->fix);
}

bool BorrowedWorkers::IsEnding() const {
  std::lock_guard lock(mutex_);
  return is_ending_ || refused_;
}

// A pool after one that took the job, or whoever has its place by then, is no reason to end it.
void BorrowedWorkers::TakeRefusal(const Error& error) {
  {
    std::lock_guard lock(mutex_);
    grant_.reset();
    if (!was_granted_) {
      refused_ = {static_cast<uint32_t>(error.code()), error.fact(), error.fix()};
      return;
    }
  }
  Note(fmt::format("the pool {} cannot be used, and is tried again: {}", pool_->text(),
                   error.what()));
}

// Says it, unless it was said last.
void BorrowedWorkers::Note(const std::string& text) {
  if (text != noted_) note_(text);
  noted_ = text;
}

void BorrowedWorkers::Talk() {
  while (!IsEnding()) {
    std::string why;
    try {
      const auto connection = pool_->Connect([this] { return IsEnding(); }, &why).control;
      if (connection) {
        TalkTo(connection.get());
      } else {
        Note(fmt::format("waits for the pool {}{}{}", pool_->text(), why.empty() ? "" : ": ", why));
      }
    } catch (const Error& error) {
      TakeRefusal(error);
    }
    if (IsEnding()) return;
    pollfd woken = {wakeup_.fd(), POLLIN, 0};
    poll(&woken, 1, kAgainMs);
    wakeup_.Clear();
  }
}

// Until the connection ends.
void BorrowedWorkers::TalkTo(ControlConnection* connection) {
  std::optional<uint32_t> said;
  while (!IsEnding()) {
    Want want = about_;
    {
      std::lock_guard lock(mutex_);
      want.workers = wanted_.value_or(Want::kAsBefore);
    }
    if (said != want.workers) connection->Send(want);
    said = want.workers;
    for (const Message& message : connection->Receive(kHearMs, wakeup_.fd())) {
      if (const auto* refused = std::get_if<Refused>(&message))
        throw Error(static_cast<ExitCode>(refused->code), refused->reason, {}, refused->fix);
      const auto* grant = std::get_if<Grant>(&message);
      if (grant == nullptr) continue;
      std::lock_guard lock(mutex_);
      grant_ = *grant;
      was_granted_ = true;
      noted_.clear();
    }
    wakeup_.Clear();
    if (!connection->is_closed()) continue;
    std::lock_guard lock(mutex_);
    grant_.reset();
    return;
  }
  connection->Send(Bye{});
}

}  // namespace headrace::reader::service

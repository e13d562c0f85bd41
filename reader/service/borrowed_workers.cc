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

void BorrowedWorkers::Talk() {
  std::unique_ptr<ControlConnection> connection;
  std::optional<uint32_t> said;  // on this connection
  std::string noted;
  const auto is_ending = [&] {
    std::lock_guard lock(mutex_);
    return is_ending_ || refused_;
  };
  while (!is_ending()) {
    if (connection) {
      try {
        Turn(connection.get(), &said);
      } catch (const Error& error) {  // bytes that are no messages
        note_(error.what());
        connection.reset();
        continue;
      }
      if (!connection->is_closed() && !IsRefusedLater()) continue;
      connection.reset();
      std::lock_guard lock(mutex_);
      grant_.reset();
    }
    std::string why;
    try {
      connection = pool_->Connect(is_ending, &why).control;
    } catch (const Error& error) {
      std::lock_guard lock(mutex_);
      refused_ = {static_cast<uint32_t>(error.code()), error.fact(), error.fix()};
      return;
    }
    said.reset();
    if (connection) {
      noted.clear();
      continue;
    }
    const std::string text =
        fmt::format("waits for the pool {}{}{}", pool_->text(), why.empty() ? "" : ": ", why);
    if (text != std::exchange(noted, text)) note_(text);
    pollfd woken = {wakeup_.fd(), POLLIN, 0};
    poll(&woken, 1, kAgainMs);
    wakeup_.Clear();
  }
  if (!connection) return;
  connection->Send(Bye{});
  connection->Receive(0);  // sends what there was no room for
}

// By a pool after one that took the job, which is no reason to end it.
bool BorrowedWorkers::IsRefusedLater() {
  std::lock_guard lock(mutex_);
  if (!refused_ || !was_granted_) return false;
  note_(pool_->text() + ": " + refused_->reason);
  refused_.reset();
  return true;
}

void BorrowedWorkers::Turn(ControlConnection* connection, std::optional<uint32_t>* said) {
  std::optional<uint32_t> wanted;
  {
    std::lock_guard lock(mutex_);
    wanted = wanted_;
  }
  if (wanted && wanted != *said) {
    Want want = about_;
    want.workers = *wanted;
    connection->Send(want);
    *said = wanted;
  }
  const std::vector<Message> messages = connection->Receive(kHearMs, wakeup_.fd());
  wakeup_.Clear();
  std::lock_guard lock(mutex_);
  for (const Message& message : messages) {
    if (const auto* grant = std::get_if<Grant>(&message)) grant_ = *grant, was_granted_ = true;
    if (const auto* refused = std::get_if<Refused>(&message)) refused_ = *refused;
  }
}

}  // namespace headrace::reader::service

#include "reader/service/job_place.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/error.h"
#include "reader/service/job_folder.h"

namespace headrace::reader::service {
namespace {

// Nothing when the file is not there, or has no address.
std::optional<DeliveryAddress> ReadAddressFile(const std::string& path, std::string* why) {
  constexpr size_t kMostBytes = 1024;
  char text[kMostBytes];
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  const ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text);
  if (fd >= 0) close(fd);
  if (got < 0) {
    *why = fmt::format("{} is not there", path);
    return std::nullopt;
  }
  std::string address(text, static_cast<size_t>(got));
  address = address.substr(0, address.find_first_of(" \t\r\n"));
  try {
    if (IsAddressOfJob(address)) return ParseDeliveryAddress(address, "/");
  } catch (const Error&) {
  }
  *why = fmt::format("{} has no address", path);
  return std::nullopt;
}

}  // namespace

JobPlace::JobPlace(const std::string& job, SecretFiles secrets, bool makes_folder)
    : text_(job), secrets_(std::move(secrets)) {
  if (IsAddressOfJob(job)) {
    address_ = ParseDeliveryAddress(job, "/");
    CheckExposed(address_);
    LoadCredentials();
  } else if (job.starts_with('@')) {
    file_ = std::filesystem::absolute(job.substr(1)).string();
  } else {
    folder_ = makes_folder ? MakeJobFolder(job) : FindJobFolder(job);
  }
}

void JobPlace::CheckExposed(const DeliveryAddress& at) const {
  CheckExposure(at, secrets_.is_insecure);
}

void JobPlace::LoadCredentials() {
  credentials_ = std::make_shared<const Credentials>(
      Token::Find(secrets_.token, file_.empty() ? "" : TokenBeside(file_)), secrets_.certificates);
}

JobPlace::Connected JobPlace::Connect(const std::function<bool()>& stopped, std::string* why) {
  Connected connected;
  if (!folder_.empty()) {
    connected.control = ControlConnection::Connect(DispatcherSocket(folder_));
    return connected;
  }
  connected.to = address_;
  if (!file_.empty()) {
    const auto address = ReadAddressFile(file_, why);
    if (!address) return connected;
    connected.to = *address;
    CheckExposed(connected.to);
    if (!credentials_) LoadCredentials();  // the dispatcher made it before it wrote its address
  }
  try {
    auto channel = CallGuarded(connected.to, Purpose::kControl, credentials_, stopped, why);
    if (channel) connected.control = std::make_unique<ControlConnection>(std::move(*channel));
  } catch (const Error& error) {
    // An address that was written before may be another process's by now.
    if (file_.empty() || error.code() == ExitCode::kPrivilege) throw;
    *why = error.what();
  }
  return connected;
}

std::string TokenBeside(const std::string& address_file) { return address_file + ".token"; }

void WriteAddressFile(const std::string& path, const DeliveryAddress& address) {
  std::string draft = path + ".XXXXXX";  // mode 0600, and never what somebody else put there
  const std::string text = FormatDeliveryAddress(address) + "\n";
  const int fd = mkostemp(draft.data(), O_CLOEXEC);
  if (fd < 0) throw ErrnoError(errno, "make", draft);
  int error = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : errno;
  if (close(fd) != 0 && error == 0) error = errno;
  if (error == 0 && std::rename(draft.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return;
  unlink(draft.c_str());
  throw ErrnoError(error, "write", path);
}

}  // namespace headrace::reader::service

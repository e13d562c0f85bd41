// JobPlace: where the dispatcher of a job is met, and how to connect to it.
//
//   train               the job of that name on this machine (job_folder.h)
//   ./folder            the same, by the path of its folder
//   tcp:HOST:PORT       a dispatcher that listens there
//   tls:HOST:PORT
//   @FILE               at the address that FILE has; it is read again at each try, so that a
//                       dispatcher may come back elsewhere
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "reader/pipeline/delivery/credentials.h"
#include "reader/service/control.h"

namespace headrace::reader::service {

struct SecretFiles {
  std::string token;  // as Token::Find; the fallback for @FILE is FILE.token
  CertificateFiles certificates;
  bool is_insecure = false;  // the user allows plain TCP on a network
};

// One thread.
class JobPlace {
 public:
  // Finds nothing but the form. `makes_folder`: a job's folder is made if it is not there. Throws
  // Error as FindJobFolder, kUsage for an address that is none, and as CheckExposed.
  JobPlace(const std::string& job, SecretFiles secrets, bool makes_folder);

  // The folder, if the job is of this machine alone; else empty.
  const std::string& folder() const { return folder_; }
  const std::string& text() const { return text_; }  // as it was given

  struct Connected {
    std::unique_ptr<ControlConnection> control;
    DeliveryAddress to;  // kInline: through the folder
  };
  // Nothing (`control` is null) when there is no dispatcher now; `why` says more where it is known.
  // Throws Error kPrivilege when it has another token, and as CheckExposed; with an address that
  // the user gave, as CallGuarded.
  Connected Connect(const std::function<bool()>& stopped, std::string* why);
  // Throws Error kPrivilege for plain TCP on a network that the user did not allow. Any thread.
  void CheckExposed(const DeliveryAddress& at) const;
  // For this job's network connections; once one stands. Null in a folder.
  const std::shared_ptr<const Credentials>& credentials() const { return credentials_; }

 private:
  void LoadCredentials();

  std::string text_, folder_, file_;
  DeliveryAddress address_;
  SecretFiles secrets_;
  std::shared_ptr<const Credentials> credentials_;
};

// Whether it is met at an address, which the text is.
inline bool IsAddressOfJob(const std::string& text) {
  return text.starts_with("tcp:") || text.starts_with("tls:");
}
// The file that has an address, and that of its token.
std::string TokenBeside(const std::string& address_file);
// Writes it, complete or not at all. Throws Error as the system says.
void WriteAddressFile(const std::string& path, const DeliveryAddress& address);

}  // namespace headrace::reader::service

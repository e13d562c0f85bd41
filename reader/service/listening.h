// Where a process of the service takes its callers: at the socket of a job's folder, and at a
// network address where it is told to.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "reader/pipeline/delivery/credentials.h"
#include "reader/service/control.h"

namespace headrace::reader::service {

struct Listening {
  std::string folder;  // of the job or pool (job_folder.h); there
  // Where it listens besides; kInline: nowhere. Its address goes into `address_file`, if that is
  // not empty, once it listens.
  DeliveryAddress listen = {};
  std::string address_file = {};
  std::shared_ptr<const Credentials> credentials = {};  // for it
  std::function<void(const std::string&)> note = {};    // lines about who is refused
};

// Besides at the folder's socket, which `server` has. Throws Error as GuardedListener,
// CheckCertificateNames and WriteAddressFile.
void Listen(const Listening& options, ControlServer* server);

}  // namespace headrace::reader::service

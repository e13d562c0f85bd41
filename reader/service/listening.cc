#include "reader/service/listening.h"

#include "reader/service/job_folder.h"
#include "reader/service/job_place.h"

namespace headrace::reader::service {

void Listen(const Listening& options, ControlServer* server) {
  RemoveDeadSockets(options.folder);
  if (!IsNetwork(options.listen.kind)) return;
  server->Guard(std::make_unique<GuardedListener>(options.listen, Purpose::kControl,
                                                  options.credentials, options.note));
  // One that listens at all addresses may be called by another name than the first of them.
  if (const std::string& host = options.listen.at.host; host != "0.0.0.0" && host != "::")
    CheckCertificateNames(*options.credentials, server->guarded()->address());
  if (!options.address_file.empty())
    WriteAddressFile(options.address_file, server->guarded()->address());
}

}  // namespace headrace::reader::service

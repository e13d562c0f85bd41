// Options of commands that meet a job's dispatcher, or are one: over which network, with which
// token and certificates.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "reader/service/job_place.h"
#include "reader/service/listening.h"

namespace headrace::cli {

struct JobPlaceOptions {
  reader::service::SecretFiles secrets;
  std::string listen, address_file;           // of a dispatcher
  const CommandLine* command_line = nullptr;  // that has the options of secrets
};

// --token-file, --tls-certificate, --tls-key, --tls-ca and --insecure.
void AddSecretOptions(CommandLine* command_line, JobPlaceOptions* options);
// --listen and --address-file; `whom`: those that are taken there.
void AddListenOptions(CommandLine* command_line, JobPlaceOptions* options,
                      const std::string& whom = "workers and ranks");

// Where the job's dispatcher is (job_place.h). Throws Error as JobPlace, and kUsage for secrets
// that are of no use there.
std::shared_ptr<reader::service::JobPlace> FindJobPlace(const std::string& job,
                                                        const JobPlaceOptions& options,
                                                        bool makes_folder);
// Fills in where a dispatcher listens besides its folder, which `given` has, with the token and
// certificates for it. Nothing without --listen. Throws Error kPrivilege, and kUsage for an address
// that is none.
void SetListen(const JobPlaceOptions& options, reader::service::Listening* given);
// Adds to a child process's command line the words by which it finds the same secrets.
void AddSecretWords(const JobPlaceOptions& options, std::vector<std::string>* command);

}  // namespace headrace::cli

#include "cli/job_place_options.h"

#include <filesystem>

#include "base/error.h"

namespace headrace::cli {
namespace {

// Secrets that were given and that no connection of this kind takes.
void RefuseUnusedSecrets(const JobPlaceOptions& options, reader::DeliveryKind kind,
                         const std::string& fix) {
  using reader::DeliveryKind;
  const auto refuse = [&](std::initializer_list<const char*> names, const std::string& what) {
    for (const char* name : names)
      if (options.command_line->Count(name) > 0) throw Error(ExitCode::kUsage, what, name, fix);
  };
  if (!reader::IsNetwork(kind))
    return refuse({"--token-file", "--tls-certificate", "--tls-key", "--tls-ca", "--insecure"},
                  "does nothing for a job that is met in its folder");
  if (kind == DeliveryKind::kTcp)
    return refuse({"--tls-certificate", "--tls-key", "--tls-ca"}, "does nothing without TLS");
  refuse({"--insecure"}, "does nothing with TLS");
}

// Of --listen. A port or a host alone is what most mean who leave out the kind.
reader::DeliveryAddress NetworkAddressOf(const std::string& text) {
  if (text.starts_with("tls:") || text.starts_with("tcp:"))
    return reader::ParseDeliveryAddress(text, "/");
  const bool is_port = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  const bool is_place = !is_port && text.find(':') != std::string::npos &&
                        !text.starts_with("unix:") && !text.starts_with("shm:");
  throw Error(ExitCode::kUsage, "is not an address of a network", "--listen " + Printable(text, 80),
              is_port    ? "write tls:0.0.0.0:" + Printable(text, 80)
              : is_place ? "write tls:" + Printable(text, 80)
                         : "write tls:HOST:PORT");
}

}  // namespace

void AddSecretOptions(CommandLine* command_line, JobPlaceOptions* options) {
  options->command_line = command_line;
  command_line
      ->AddOption("--token-file", options->secrets.token,
                  "Read there the secret that a job's processes on several machines share; "
                  "otherwise $HEADRACE_TOKEN_FILE, $HEADRACE_TOKEN, or beside the address file")
      ->TypeName("FILE");
  command_line
      ->AddOption("--tls-certificate", options->secrets.certificates.certificate,
                  "Show this certificate instead of one that the process makes")
      ->TypeName("FILE");
  command_line
      ->AddOption("--tls-key", options->secrets.certificates.key, "Use this key of the certificate")
      ->TypeName("FILE");
  command_line
      ->AddOption("--tls-ca", options->secrets.certificates.authority,
                  "Let in only whoever shows a certificate of this authority")
      ->TypeName("FILE");
  command_line->AddFlag("--insecure", options->secrets.is_insecure,
                        "Allow tcp: on a network, where others can read and change what is sent");
}

void AddListenOptions(CommandLine* command_line, JobPlaceOptions* options,
                      const std::string& whom) {
  command_line
      ->AddOption("--listen", options->listen,
                  "Take " + whom +
                      " of other machines: tls:HOST:PORT, or tcp:HOST:PORT on "
                      "this machine; port 0 is a free one")
      ->TypeName("ADDRESS");
  command_line
      ->AddOption("--address-file", options->address_file,
                  "Write there where it listens, for " + whom +
                      " that are given @FILE; by "
                      "default 'address' in the folder of the name")
      ->TypeName("FILE");
}

std::shared_ptr<reader::service::JobPlace> FindJobPlace(const std::string& job,
                                                        const JobPlaceOptions& options,
                                                        bool makes_folder) {
  using reader::service::IsAddressOfJob;
  // Of @FILE the address is not known yet, and may be another one later.
  if (IsAddressOfJob(job)) {
    RefuseUnusedSecrets(options, reader::ParseDeliveryAddress(job, "/").kind, "leave it out");
  } else if (!job.starts_with('@')) {
    RefuseUnusedSecrets(options, reader::DeliveryKind::kInline,
                        "leave it out, or give @FILE or tls:HOST:PORT");
  }
  return std::make_shared<reader::service::JobPlace>(job, options.secrets, makes_folder);
}

void SetListen(const JobPlaceOptions& options, reader::service::Listening* given) {
  if (options.listen.empty()) {
    if (!options.address_file.empty())
      throw Error(ExitCode::kUsage, "has no address to write", "--address-file",
                  "add --listen tls:HOST:PORT");
    return RefuseUnusedSecrets(options, reader::DeliveryKind::kInline,
                               "leave it out, or add --listen tls:HOST:PORT");
  }
  given->listen = NetworkAddressOf(options.listen);
  reader::CheckExposure(given->listen, options.secrets.is_insecure);
  RefuseUnusedSecrets(options, given->listen.kind, "leave it out");
  given->address_file = options.address_file.empty()
                            ? given->folder + "/address"
                            : std::filesystem::absolute(options.address_file).string();
  given->credentials = std::make_shared<const reader::Credentials>(
      reader::Token::FindOrMake(options.secrets.token,
                                reader::service::TokenBeside(given->address_file)),
      options.secrets.certificates);
}

void AddSecretWords(const JobPlaceOptions& options, std::vector<std::string>* command) {
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) command->insert(command->end(), {name, value});
  };
  add("--token-file", options.secrets.token);
  add("--tls-certificate", options.secrets.certificates.certificate);
  add("--tls-key", options.secrets.certificates.key);
  add("--tls-ca", options.secrets.certificates.authority);
  if (options.secrets.is_insecure) command->emplace_back("--insecure");
}

}  // namespace headrace::cli

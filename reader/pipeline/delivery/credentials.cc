#include "reader/pipeline/delivery/credentials.h"

#include <fmt/format.h>

namespace headrace::reader {

std::shared_ptr<const Credentials> CredentialsFor(const DeliveryAddress& address) {
  if (!IsNetwork(address.kind)) return nullptr;
  CheckExposure(address, {});
  return std::make_shared<const Credentials>(Token::OfEnvironment(), CertificateFiles{});
}

void CheckCertificateNames(const Credentials& credentials, const DeliveryAddress& address) {
  if (address.kind != DeliveryKind::kTls) return;
  const std::string missing = credentials.tls.MissingName(address.at.host);
  if (missing.empty()) return;
  throw Error(ExitCode::kPrivilege, "is not named by the certificate of this process",
              FormatDeliveryAddress(address),
              fmt::format("give a certificate with the subjectAltName {}, or give --listen a host "
                          "that is named",
                          missing));
}

}  // namespace headrace::reader

// Credentials: what a process shows, and asks of others, where a job's processes meet over a
// network.
#pragma once
#include <memory>
#include <string>

#include "reader/pipeline/delivery/address.h"
#include "reader/pipeline/delivery/tls.h"
#include "reader/pipeline/delivery/token.h"

namespace headrace::reader {

// Immutable, and shared by threads.
struct Credentials {
  Credentials(Token secret, const CertificateFiles& files) : token(std::move(secret)), tls(files) {}
  Token token;
  TlsContext tls;
};

// Of a producer or consumer that is no member of a job: the token that the environment has
// (Token::OfEnvironment), for addresses of a network; null for others. Throws Error as
// CheckExposure.
std::shared_ptr<const Credentials> CredentialsFor(const DeliveryAddress& address);

// Of a listener, with the address by which others call it. Throws Error kPrivilege when its
// certificate does not name that host: callers with its authority would refuse it, one by one.
void CheckCertificateNames(const Credentials& credentials, const DeliveryAddress& address);

}  // namespace headrace::reader

// AWS Signature Version 4 (docs.aws.amazon.com, "Signature Calculations for the Authorization
// Header"): the proof, with each request, that the sender knows a secret key.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace headrace::reader {

struct Credentials {
  std::string key_id, secret;
  std::string token;  // of temporary credentials, or empty
};

struct SigV4Request {
  std::string method = "GET";
  std::string path;                                        // URI-encoded but for its slashes
  std::vector<std::pair<std::string, std::string>> query;  // not encoded, any order
  // Those to be signed, "host" and "x-amz-date" among them, any order; names in lower case.
  std::vector<std::pair<std::string, std::string>> headers;
  std::string payload_sha256;  // in hexadecimal
};

// SHA-256 of no bytes, in hexadecimal.
inline constexpr const char* kEmptySha256 =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

// The value of the header "Authorization". The date is that of "x-amz-date" (20130524T000000Z).
std::string SigV4Authorization(const SigV4Request& request, const Credentials& credentials,
                               const std::string& region, const std::string& service);

// As SigV4 wants it: all bytes but A-Z a-z 0-9 - . _ ~ as %XX; "/" too unless kept.
std::string UriEncode(const std::string& text, bool keep_slash);

// "a=1&b=2" of sorted, encoded parts.
std::string CanonicalQuery(std::vector<std::pair<std::string, std::string>> query);

}  // namespace headrace::reader

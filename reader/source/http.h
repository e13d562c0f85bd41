// Sources behind HTTP(S): ranges of objects, through libcurl. A request that fails in a way that
// may pass (no connection, a stall, a body cut short, 408, 429, 5xx) is sent again after a growing
// pause, for the bytes that are still missing. An object that changes while it is read is an error.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "reader/source/options.h"
#include "reader/source/source.h"

namespace headrace::reader {

// Headers to add to a request for `path` (as in the URL) and `query`: what a signature wants.
using HttpHeaders = std::vector<std::pair<std::string, std::string>>;
using HttpSigner = std::function<HttpHeaders(
    const std::string& path, const std::vector<std::pair<std::string, std::string>>& query,
    const HttpHeaders& headers)>;

struct HttpPlace {
  std::string url;   // scheme, host, port and path; encoded
  std::string name;  // for messages
  RemoteOptions options;
  HttpSigner signer;              // may be null
  std::string refused;            // what to say of a 401 or 403: whose key is refused
  std::function<bool()> stopped;  // may be null; true ends every wait by Error kInterrupted
};

// The object's size is asked for at once. Each thread keeps its connections; at most
// options.connections are in use per thread. Throws Error: kBadData when there is no such object or
// it is shorter than asked for, kPrivilege when the server refuses, kFailure when retries are used
// up, or when the server ignores ranges.
std::shared_ptr<const Source> OpenHttp(HttpPlace place);

// The whole body of a GET, at most `max_bytes`; for listings. Throws Error as above.
std::string HttpGet(const HttpPlace& place,
                    const std::vector<std::pair<std::string, std::string>>& query,
                    uint64_t max_bytes);

}  // namespace headrace::reader

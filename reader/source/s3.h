// Objects of S3 and of stores that speak its protocol: names like s3://bucket/key, requests signed
// with Signature Version 4, keys from the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
// AWS_SESSION_TOKEN). Without them requests are not signed, which public buckets allow.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "reader/source/http.h"

namespace headrace::reader {

// The object or, with an empty key, the bucket of "s3://bucket/key", at options.endpoint or AWS, by
// paths (endpoint/bucket/key). Throws Error kUsage for another form.
HttpPlace S3Place(const std::string& url, const RemoteOptions& options,
                  std::function<bool()> stopped);

// The URLs of all objects below the "folder" s3://bucket/prefix, sorted. Throws Error as HttpGet.
std::vector<std::string> ListS3(const std::string& url, const RemoteOptions& options,
                                const std::function<bool()>& stopped);

// The keys of one page of ListObjectsV2's XML, and where the next page begins (empty: it is the
// last).
struct S3Page {
  std::vector<std::string> keys;
  std::string next;
};
S3Page ParseS3Page(const std::string& xml);

}  // namespace headrace::reader

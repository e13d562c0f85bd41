#include "reader/source/s3.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <string_view>

#include "base/error.h"
#include "reader/source/sigv4.h"

namespace headrace::reader {
namespace {

constexpr std::string_view kScheme = "s3://";
constexpr uint64_t kMaxPageBytes = 16 << 20;
constexpr size_t kMaxObjects = 1'000'000;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// As the header "Host": without the port that the scheme implies.
std::string HostOf(const std::string& endpoint) {
  const size_t scheme = endpoint.find("://");
  std::string host = endpoint.substr(scheme == std::string::npos ? 0 : scheme + 3);
  host.resize(std::min(host.size(), host.find('/')));
  const std::string implied = endpoint.starts_with("https") ? ":443" : ":80";
  if (host.ends_with(implied)) host.resize(host.size() - implied.size());
  return host;
}

std::string TimeNow() {
  const std::time_t now = std::time(nullptr);
  std::tm utc = {};
  gmtime_r(&now, &utc);
  char text[17];
  std::strftime(text, sizeof(text), "%Y%m%dT%H%M%SZ", &utc);
  return text;
}

HttpSigner SignerOf(const Credentials& credentials, const std::string& host,
                    const std::string& region) {
  return [credentials, host, region](const std::string& path,
                                     const std::vector<std::pair<std::string, std::string>>& query,
                                     const HttpHeaders& headers) {
    SigV4Request request;
    request.path = path;
    request.query = query;
    request.payload_sha256 = kEmptySha256;
    HttpHeaders added = {{"x-amz-content-sha256", kEmptySha256}, {"x-amz-date", TimeNow()}};
    if (!credentials.token.empty()) added.emplace_back("x-amz-security-token", credentials.token);
    request.headers = headers;
    request.headers.insert(request.headers.end(), added.begin(), added.end());
    request.headers.emplace_back("host", host);
    added.emplace_back("authorization", SigV4Authorization(request, credentials, region, "s3"));
    return added;
  };
}

// "bucket" and "key" of a URL.
std::pair<std::string, std::string> Split(const std::string& url) {
  const std::string rest = url.substr(kScheme.size());
  const size_t slash = std::min(rest.find('/'), rest.size());
  if (!url.starts_with(kScheme) || slash == 0)
    throw Error(ExitCode::kUsage, "is not s3://BUCKET/KEY", url);
  return {rest.substr(0, slash), slash < rest.size() ? rest.substr(slash + 1) : ""};
}

std::string Unescaped(std::string text) {
  constexpr std::pair<std::string_view, char> kEntities[] = {
      {"&lt;", '<'},    {"&gt;", '>'},   {"&quot;", '"'}, {"&#34;", '"'},
      {"&apos;", '\''}, {"&#39;", '\''}, {"&amp;", '&'}};
  std::string plain;
  for (size_t at = 0; at < text.size();) {
    const auto entity =
        std::find_if(std::begin(kEntities), std::end(kEntities), [&](const auto& candidate) {
          return text.compare(at, candidate.first.size(), candidate.first) == 0;
        });
    const bool found = entity != std::end(kEntities);
    plain += found ? entity->second : text[at];
    at += found ? entity->first.size() : 1;
  }
  return plain;
}

// The text between the tags from `*at` on, which moves behind them.
bool NextElement(const std::string& xml, const std::string& tag, size_t* at, std::string* text) {
  const size_t begin = xml.find("<" + tag + ">", *at);
  if (begin == std::string::npos) return false;
  const size_t from = begin + tag.size() + 2, to = xml.find("</" + tag + ">", from);
  if (to == std::string::npos) return false;
  *text = Unescaped(xml.substr(from, to - from));
  *at = to;
  return true;
}

}  // namespace

HttpPlace S3Place(const std::string& url, const RemoteOptions& options,
                  std::function<bool()> stopped) {
  const auto [bucket, key] = Split(url);
  std::string endpoint = options.endpoint;
  if (endpoint.empty()) endpoint = fmt::format("https://s3.{}.amazonaws.com", options.region);
  while (endpoint.ends_with('/')) endpoint.pop_back();
  HttpPlace place;
  place.url =
      endpoint + "/" + UriEncode(bucket, false) + (key.empty() ? "" : "/") + UriEncode(key, true);
  place.name = url;
  place.options = options;
  place.stopped = std::move(stopped);
  const Credentials credentials{Variable("AWS_ACCESS_KEY_ID"), Variable("AWS_SECRET_ACCESS_KEY"),
                                Variable("AWS_SESSION_TOKEN")};
  if (credentials.key_id.empty() || credentials.secret.empty()) {
    place.refused = " requests without AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";
    return place;
  }
  place.refused = fmt::format(" the key of id {}", Printable(credentials.key_id, 64));
  place.signer = SignerOf(credentials, HostOf(endpoint), options.region);
  return place;
}

S3Page ParseS3Page(const std::string& xml) {
  S3Page page;
  std::string text;
  for (size_t at = 0; NextElement(xml, "Key", &at, &text);) page.keys.push_back(text);
  size_t at = 0;
  if (!NextElement(xml, "IsTruncated", &at, &text) || text != "true") return page;
  at = 0;
  if (NextElement(xml, "NextContinuationToken", &at, &text)) page.next = text;
  return page;
}

std::vector<std::string> ListS3(const std::string& url, const RemoteOptions& options,
                                const std::function<bool()>& stopped) {
  auto [bucket, prefix] = Split(url);
  if (!prefix.empty() && !prefix.ends_with('/')) prefix += '/';
  HttpPlace place = S3Place(fmt::format("s3://{}", bucket), options, stopped);
  place.name = url;
  std::vector<std::string> urls;
  std::string next;
  do {
    std::vector<std::pair<std::string, std::string>> query = {{"list-type", "2"},
                                                              {"prefix", prefix}};
    if (!next.empty()) query.emplace_back("continuation-token", next);
    const S3Page page = ParseS3Page(HttpGet(place, query, kMaxPageBytes));
    for (const std::string& key : page.keys) {
      // Only what lies in the folder itself.
      if (key.find('/', prefix.size()) == std::string::npos)
        urls.push_back(fmt::format("s3://{}/{}", bucket, key));
    }
    if (urls.size() > kMaxObjects)
      throw Error(ExitCode::kBadData, fmt::format("lists more than {} objects", kMaxObjects), url);
    if (page.next == next && !next.empty())
      throw Error(ExitCode::kBadData, "its list of objects does not end", url);
    next = page.next;
  } while (!next.empty());
  std::sort(urls.begin(), urls.end());
  return urls;
}

}  // namespace headrace::reader

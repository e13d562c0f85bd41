#include "reader/source/open.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "reader/source/http.h"
#include "reader/source/local_file.h"
#include "reader/source/s3.h"
#include "reader/source/uring.h"

namespace headrace::reader {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxIndexBytes = 16 << 20;

bool IsTableFile(const std::string& name) {
  return name.ends_with(".dwrf") || name.ends_with(".orc");
}

// What a folder holds instead of a table, by the ends of its files' names: "holds no .dwrf file,
// but part-0.parquet".
std::string NoTable(const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    for (const char* end :
         {".parquet", ".feather", ".arrow", ".nimble", ".avro", ".csv", ".json", ".gz", ".zst"}) {
      if (file.ends_with(end))
        return "holds no .dwrf file, but " + file.substr(file.find_last_of('/') + 1);
    }
  }
  return "holds no .dwrf file";
}

HttpPlace PlaceOf(const std::string& url, const SourceOptions& options,
                  const SourceContext& context) {
  if (url.starts_with("s3://")) return S3Place(url, options.remote, context.stopped);
  if (!url.starts_with("http://") && !url.starts_with("https://"))
    throw Error(ExitCode::kUsage, "is neither a path nor http://, https:// or s3://", url);
  const size_t host = url.find("://") + 3;
  const std::string authority = url.substr(host, url.find('/', host) - host);
  if (authority.find('@') != std::string::npos) {
    throw Error(ExitCode::kUsage, "a URL must not hold credentials",
                url.substr(0, host) + "...@" + authority.substr(authority.find('@') + 1));
  }
  HttpPlace place;
  place.url = place.name = url;
  place.options = options.remote;
  place.stopped = context.stopped;
  return place;
}

// The files that `folder`/files.json names.
std::vector<std::string> ListHttp(const std::string& folder, const SourceOptions& options,
                                  const SourceContext& context) {
  const std::string index = folder + "files.json";
  const nlohmann::json json = nlohmann::json::parse(
      HttpGet(PlaceOf(index, options, context), {}, kMaxIndexBytes), nullptr, false);
  std::vector<std::string> files;
  if (json.is_object() && json.contains("files") && json["files"].is_array()) {
    for (const auto& name : json["files"]) {
      if (name.is_string() && name.get<std::string>().find('/') == std::string::npos)
        files.push_back(folder + name.get<std::string>());
    }
    if (files.size() == json["files"].size()) return files;
  }
  throw Error(ExitCode::kBadData, R"(is not {"files": ["part-00000.dwrf", ...]})", index);
}

std::vector<std::string> ListFolder(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;  // a link to nothing is no file
    if (it->is_regular_file(ignored)) files.push_back(it->path().string());
  }
  if (error) throw ErrnoError(error.value(), "read the folder", folder);
  return files;
}

}  // namespace

bool IsRemote(const std::string& place) { return place.find("://") != std::string::npos; }

std::shared_ptr<const Source> OpenSource(const std::string& place, const SourceOptions& options,
                                         const SourceContext& context) {
  std::shared_ptr<const Source> source;
  if (IsRemote(place)) {
    if (options.io == IoMethod::kUring || options.direct) {
      throw Error(ExitCode::kUsage, "io = \"uring\" and direct = true are for local files", place,
                  "leave them out: source.remote.connections says how many requests are under way");
    }
    source = OpenHttp(PlaceOf(place, options, context));
  } else if (options.io == IoMethod::kUring) {
    source = OpenUringFile(place, options.direct, options.depth, options.registered);
  } else {
    source = std::make_shared<LocalFile>(place, options.direct);
  }
  if (options.fault.enabled()) source = Faulty(std::move(source), options.fault, context.stopped);
  return context.throttle ? Throttled(std::move(source), context.throttle) : source;
}

std::vector<std::string> ListTable(const std::string& place, const SourceOptions& options,
                                   const SourceContext& context) {
  std::vector<std::string> files;
  std::error_code ignored;
  if (IsRemote(place) && IsTableFile(place)) return {place};
  if (place.starts_with("s3://")) {
    files = ListS3(place, options.remote, context.stopped);
  } else if (IsRemote(place)) {
    if (!place.ends_with('/')) return {place};
    files = ListHttp(place, options, context);
  } else if (fs::is_directory(place, ignored)) {
    files = ListFolder(place);
  } else {
    return {place};
  }
  std::sort(files.begin(), files.end());
  const std::string no_table = NoTable(files);
  std::erase_if(files, [](const std::string& file) { return !IsTableFile(file); });
  if (files.empty()) {
    throw Error(ExitCode::kBadData, no_table, place,
                "make a table with 'headrace generate rm1 -o DIR'");
  }
  return files;
}

}  // namespace headrace::reader

#include "reader/source/http.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <mutex>
#include <optional>
#include <random>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "base/units.h"
#include "reader/source/sigv4.h"

namespace headrace::reader {
namespace {

// A try that brings fewer has failed: a server that sends a few bytes at a time has no end.
constexpr uint64_t kProgressBytes = 4096;
constexpr int64_t kFirstPauseNs = 50'000'000, kLongestPauseNs = 2'000'000'000;

// The calling thread's connections, and handles that wait for their next request.
class Client {
 public:
  static Client& OfThread() {
    static std::once_flag once;
    std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
    thread_local Client client;
    return client;
  }
  ~Client() {
    for (CURL* handle : idle_) curl_easy_cleanup(handle);
    curl_multi_cleanup(multi_);
  }
  CURLM* multi() { return multi_; }
  CURL* Take() {
    if (idle_.empty()) return curl_easy_init();
    CURL* const handle = idle_.back();
    idle_.pop_back();
    curl_easy_reset(handle);  // keeps its connections: they are the multi's
    return handle;
  }
  void Put(CURL* handle) { idle_.push_back(handle); }

 private:
  Client() : multi_(curl_multi_init()) {}
  CURLM* multi_;
  std::vector<CURL*> idle_;
};

bool StartsWithNoCase(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() &&
         strncasecmp(text.data(), prefix.data(), prefix.size()) == 0;
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && static_cast<uint8_t>(text.back()) <= ' ') text.remove_suffix(1);
  while (!text.empty() && static_cast<uint8_t>(text.front()) <= ' ') text.remove_prefix(1);
  return text;
}

struct ContentRange {
  std::optional<uint64_t> first, total;
};

// "bytes 0-9/100", "bytes */100".
ContentRange ParseContentRange(std::string_view text) {
  ContentRange range;
  if (!StartsWithNoCase(text, "bytes ")) return range;
  text.remove_prefix(6);
  uint64_t value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc())
    range.first = value;
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return range;
  const std::string_view total = text.substr(slash + 1);
  if (std::from_chars(total.data(), total.data() + total.size(), value).ec == std::errc())
    range.total = value;
  return range;
}

// One GET and its repetitions, until all its bytes are there. A body goes into `out`, or, of
// unknown length, into `text`.
struct Transfer {
  // What is wanted.
  bool ranged = true;
  uint64_t offset = 0;
  std::span<uint8_t> out;
  std::string* text = nullptr;
  uint64_t max_text = 0;
  std::vector<std::pair<std::string, std::string>> query;

  // How far it is.
  uint64_t done = 0;
  uint32_t failures = 0;  // in a row, without kProgressBytes from one of them
  uint32_t tries = 0;
  int64_t begin_ns = 0, not_before_ns = 0;
  std::string last_failure;
  bool finished = false;

  // The answer under way.
  CURL* handle = nullptr;
  curl_slist* headers = nullptr;
  char message[CURL_ERROR_SIZE] = {};
  long status = 0;
  ContentRange range;
  std::string etag;
  bool wrong_range = false, too_long = false;
  uint64_t kept = 0, thrown_away = 0;
  int64_t last_progress_ns = 0;

  uint64_t left() const { return out.size() - done; }
};

size_t OnHeader(char* data, size_t, size_t size, void* user) {
  auto* transfer = static_cast<Transfer*>(user);
  const std::string_view line(data, size);
  transfer->last_progress_ns = MonotonicNs();
  if (StartsWithNoCase(line, "http/")) {  // a new answer: 100 Continue comes before the real one
    transfer->range = {};
    transfer->etag.clear();
    const size_t space = line.find(' ');
    transfer->status = 0;
    if (space != std::string_view::npos)
      std::from_chars(line.data() + space + 1, line.data() + line.size(), transfer->status);
  } else if (StartsWithNoCase(line, "content-range:")) {
    transfer->range = ParseContentRange(Trimmed(line.substr(14)));
  } else if (StartsWithNoCase(line, "etag:")) {
    transfer->etag = Trimmed(line.substr(5));
  }
  return size;
}

size_t OnBody(char* data, size_t, size_t size, void* user) {
  auto* transfer = static_cast<Transfer*>(user);
  transfer->last_progress_ns = MonotonicNs();
  const bool good = transfer->status == (transfer->ranged ? 206 : 200);
  if (!good) {
    transfer->thrown_away += size;
    // An object sent whole instead of its range is not waited for.
    return transfer->status == 200 || transfer->thrown_away > (1 << 20) ? 0 : size;
  }
  if (!transfer->ranged) {
    if (transfer->text->size() + size > transfer->max_text) {
      transfer->too_long = true;
      return 0;
    }
    transfer->text->append(data, size);
    transfer->kept += size;
    return size;
  }
  if (transfer->range.first != transfer->offset + transfer->done - transfer->kept) {
    transfer->wrong_range = true;
    transfer->thrown_away += size;
    return 0;
  }
  const size_t room = std::min<size_t>(size, transfer->left());
  std::memcpy(transfer->out.data() + transfer->done, data, room);
  transfer->done += room;
  transfer->kept += room;
  transfer->thrown_away += size - room;
  if (room < size) transfer->too_long = true;
  return room;
}

bool MayPass(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
      return true;
    default:
      return false;
  }
}

// Some transfers of one place, through the connections of the calling thread.
class Batch {
 public:
  Batch(const HttpPlace& place, std::string* etag)
      : place_(place), client_(Client::OfThread()), etag_(etag) {}
  ~Batch() {
    for (Transfer& transfer : transfers_) End(&transfer);
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  std::vector<Transfer>& transfers() { return transfers_; }

  void Run(ReadFigures* figures) {
    figures_ = figures;
    size_t left = transfers_.size();
    for (Transfer& transfer : transfers_) transfer.begin_ns = MonotonicNs();
    while (left > 0) {
      if (place_.stopped && place_.stopped())
        throw Error(ExitCode::kInterrupted, "stopped", place_.name);
      const int64_t now = MonotonicNs();
      int64_t next_event = now + 100'000'000;
      for (Transfer& transfer : transfers_) {
        if (transfer.finished) continue;
        if (transfer.handle != nullptr) {
          const int64_t limit = transfer.last_progress_ns + place_.options.stall_ns;
          // Only bytes that were asked for can be missing: a thread that itself did not run for so
          // long first takes what has come meanwhile.
          if (asked_ns_ >= limit) {
            const std::string what = fmt::format(
                "no byte for {}", FormatDuration(static_cast<double>(place_.options.stall_ns)));
            End(&transfer);
            Repeat(&transfer, what);
          }
          next_event = std::min(next_event, std::max(limit, now));
        }
        if (transfer.handle == nullptr && active_ < place_.options.connections) {
          if (now >= transfer.not_before_ns) {
            Begin(&transfer);
          } else {
            next_event = std::min(next_event, transfer.not_before_ns);
          }
        }
      }
      int running = 0;
      asked_ns_ = MonotonicNs();
      curl_multi_perform(client_.multi(), &running);
      int messages = 0;
      bool any = false;
      while (CURLMsg* message = curl_multi_info_read(client_.multi(), &messages)) {
        if (message->msg != CURLMSG_DONE) continue;
        any = true;
        left -= Finish(message->easy_handle, message->data.result);
      }
      if (any || left == 0) continue;
      const int64_t wait_ms = std::max<int64_t>(0, next_event - MonotonicNs()) / 1'000'000 + 1;
      curl_multi_poll(client_.multi(), nullptr, 0,
                      static_cast<int>(std::min<int64_t>(wait_ms, 100)), nullptr);
    }
  }

 private:
  void Begin(Transfer* transfer) {
    transfer->status = 0;
    transfer->range = {};
    transfer->etag.clear();
    transfer->wrong_range = transfer->too_long = false;
    transfer->kept = transfer->thrown_away = 0;
    transfer->message[0] = '\0';
    transfer->last_progress_ns = MonotonicNs();
    if (transfer->text != nullptr) transfer->text->clear();
    ++transfer->tries;
    ++figures_->requests;
    figures_->retries += transfer->tries > 1;

    CURL* const handle = client_.Take();
    if (handle == nullptr)
      throw Error(ExitCode::kResources, "no memory for a request", place_.name);
    transfer->handle = handle;
    ++active_;
    HttpHeaders headers;
    if (transfer->ranged) {
      headers.emplace_back("range", fmt::format("bytes={}-{}", transfer->offset + transfer->done,
                                                transfer->offset + transfer->out.size() - 1));
    }
    const std::string path = PathOf(place_.url);
    if (place_.signer) {
      for (auto& header : place_.signer(path, transfer->query, headers))
        headers.push_back(std::move(header));
    }
    // A weak tag never matches; it is compared when the answer comes.
    if (transfer->ranged && !etag_->empty() && !etag_->starts_with("W/"))
      headers.emplace_back("if-match", *etag_);
    for (const auto& [name, value] : headers)
      transfer->headers = curl_slist_append(transfer->headers, (name + ": " + value).c_str());
    std::string url = place_.url;
    if (!transfer->query.empty()) url += "?" + CanonicalQuery(transfer->query);
    curl_easy_setopt(handle, CURLOPT_URL, url.c_str());
    curl_easy_setopt(handle, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(handle, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    curl_easy_setopt(handle, CURLOPT_USERAGENT, "headrace/" HEADRACE_VERSION);
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(handle, CURLOPT_HTTPHEADER, transfer->headers);
    curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, transfer->message);
    curl_easy_setopt(handle, CURLOPT_PRIVATE, transfer);
    curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, OnHeader);
    curl_easy_setopt(handle, CURLOPT_HEADERDATA, transfer);
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, OnBody);
    curl_easy_setopt(handle, CURLOPT_WRITEDATA, transfer);
    curl_easy_setopt(handle, CURLOPT_BUFFERSIZE, 256L << 10);
    const auto timeout_ms = static_cast<long>(place_.options.timeout_ns / 1'000'000);
    curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, timeout_ms);
    curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, timeout_ms);
    if (!place_.options.ca_file.empty())
      curl_easy_setopt(handle, CURLOPT_CAINFO, place_.options.ca_file.c_str());
    curl_multi_add_handle(client_.multi(), handle);
  }

  void End(Transfer* transfer) {
    if (transfer->handle == nullptr) return;
    curl_multi_remove_handle(client_.multi(), transfer->handle);
    client_.Put(transfer->handle);
    transfer->handle = nullptr;
    curl_slist_free_all(transfer->headers);
    transfer->headers = nullptr;
    --active_;
    figures_->discarded_bytes += transfer->thrown_away;
    figures_->bytes += transfer->kept;
    if (transfer->kept >= kProgressBytes) transfer->failures = 0;
  }

  // Returns how many transfers are finished by it: one or none.
  size_t Finish(CURL* handle, CURLcode code) {
    char* user = nullptr;
    curl_easy_getinfo(handle, CURLINFO_PRIVATE, &user);
    auto* transfer = reinterpret_cast<Transfer*>(user);
    const std::string message =
        transfer->message[0] != '\0' ? transfer->message : curl_easy_strerror(code);
    End(transfer);
    const long status = transfer->status;
    if (status == 408 || status == 429 || status >= 500) {
      Repeat(transfer, fmt::format("status {}", status));
      return 0;
    }
    if (status != 0 && status != (transfer->ranged ? 206 : 200)) Refuse(*transfer);
    if (transfer->wrong_range) {
      Repeat(transfer, "an answer for another range than the one asked for");
      return 0;
    }
    if (transfer->too_long && !transfer->ranged)
      Fail(ExitCode::kBadData, "an answer longer than any listing", *transfer);
    if (transfer->ranged && status == 206) {
      if (!transfer->etag.empty() && etag_->empty()) *etag_ = transfer->etag;
      if (!transfer->etag.empty() && transfer->etag != *etag_) Changed(*transfer);
      if (transfer->range.total && transfer->offset + transfer->out.size() > *transfer->range.total)
        TooShort(*transfer);
      if (transfer->left() == 0) return transfer->finished = true;
      Repeat(transfer, code == CURLE_OK ? "a body cut short" : message);
      return 0;
    }
    if (code == CURLE_OK) return transfer->finished = true;
    if (!MayPass(code)) Fail(ExitCode::kFailure, message, *transfer);
    Repeat(transfer, message);
    return 0;
  }

  void Repeat(Transfer* transfer, const std::string& why) {
    transfer->last_failure = why;
    ++transfer->failures;
    const int64_t now = MonotonicNs();
    const int64_t spent = now - transfer->begin_ns;
    if (transfer->failures > place_.options.retries) {
      Fail(ExitCode::kFailure,
           fmt::format("{} tries over {}, the last: {}", transfer->tries,
                       FormatDuration(static_cast<double>(spent)), why),
           *transfer);
    }
    const uint32_t doublings = std::min<uint32_t>(transfer->failures - 1, 10);
    const int64_t pause = std::min(kFirstPauseNs << doublings, kLongestPauseNs);
    // Half of it at random, so that readers that failed together do not come back together.
    thread_local std::minstd_rand random(static_cast<uint32_t>(now));
    transfer->not_before_ns = now + pause / 2 + static_cast<int64_t>(random()) % (pause / 2 + 1);
  }

  [[noreturn]] void Refuse(const Transfer& transfer) const {
    const long status = transfer.status;
    if (status == 401 || status == 403) {
      throw Error(ExitCode::kPrivilege,
                  fmt::format("the server refuses{} (status {})", place_.refused, status),
                  place_.name);
    }
    if (status == 404) throw Error(ExitCode::kBadData, "no such object (status 404)", place_.name);
    if (status == 412) Changed(transfer);
    if (status == 416) TooShort(transfer);
    if (status == 200)
      Fail(ExitCode::kFailure, "the server ignores ranges and sends the whole object", transfer);
    if (status >= 300 && status < 400)
      Fail(ExitCode::kFailure, fmt::format("the server sends us elsewhere (status {})", status),
           transfer);
    Fail(ExitCode::kFailure, fmt::format("status {}", status), transfer);
  }
  [[noreturn]] void Changed(const Transfer& transfer) const {
    Fail(ExitCode::kBadData, "the object changed while it was read", transfer);
  }
  [[noreturn]] void TooShort(const Transfer& transfer) const {
    Fail(ExitCode::kBadData,
         fmt::format("the object is shorter than the range of {} bytes", transfer.out.size()),
         transfer);
  }
  [[noreturn]] void Fail(ExitCode code, const std::string& what, const Transfer& transfer) const {
    throw Error(code, what,
                transfer.ranged
                    ? fmt::format("{}: byte {}", place_.name, transfer.offset + transfer.done)
                    : place_.name);
  }

  static std::string PathOf(const std::string& url) {
    const size_t host = url.find("://");
    const size_t path = url.find('/', host == std::string::npos ? 0 : host + 3);
    return path == std::string::npos ? "/" : url.substr(path);
  }

  const HttpPlace& place_;
  Client& client_;
  std::string* etag_;
  std::vector<Transfer> transfers_;
  ReadFigures* figures_ = nullptr;
  uint32_t active_ = 0;
  int64_t asked_ns_ = 0;  // all bytes that had come by then are taken
};

class HttpSource final : public Source {
 public:
  explicit HttpSource(HttpPlace place) : place_(std::move(place)) { AskSize(); }
  const std::string& name() const override { return place_.name; }
  uint64_t size() const override { return size_; }
  std::string version() const override { return etag_; }
  uint32_t depth() const override { return place_.options.connections; }

  void ReadAt(uint64_t offset, std::span<uint8_t> out) const override {
    const ReadRequest request{offset, out};
    ReadFigures figures;
    ReadMany({&request, 1}, &figures);
  }

  void ReadMany(std::span<const ReadRequest> requests, ReadFigures* figures) const override {
    std::string etag = etag_;
    Batch batch(place_, &etag);
    for (const ReadRequest& request : requests) {
      if (request.out.empty()) continue;
      Transfer& transfer = batch.transfers().emplace_back();
      transfer.offset = request.offset;
      transfer.out = request.out;
    }
    batch.Run(figures);
  }

 private:
  // By a range of one byte: servers that know ranges tell the whole size with it, and HEAD is not
  // always allowed.
  void AskSize() {
    uint8_t byte = 0;
    Batch batch(place_, &etag_);
    Transfer& transfer = batch.transfers().emplace_back();
    transfer.out = {&byte, 1};
    ReadFigures figures;
    try {
      batch.Run(&figures);
    } catch (const Error&) {
      const Transfer& asked = batch.transfers().front();
      if (asked.status != 416 || asked.range.total != uint64_t{0}) throw;
      return;  // an object of no bytes
    }
    if (!transfer.range.total)
      throw Error(ExitCode::kFailure, "the server does not report the object's size", place_.name);
    size_ = *transfer.range.total;
  }

  HttpPlace place_;
  std::string etag_;
  uint64_t size_ = 0;
};

}  // namespace

std::shared_ptr<const Source> OpenHttp(HttpPlace place) {
  return std::make_shared<HttpSource>(std::move(place));
}

std::string HttpGet(const HttpPlace& place,
                    const std::vector<std::pair<std::string, std::string>>& query,
                    uint64_t max_bytes) {
  std::string text, etag;
  Batch batch(place, &etag);
  Transfer& transfer = batch.transfers().emplace_back();
  transfer.ranged = false;
  transfer.text = &text;
  transfer.max_text = max_bytes;
  transfer.query = query;
  ReadFigures figures;
  batch.Run(&figures);
  return text;
}

}  // namespace headrace::reader

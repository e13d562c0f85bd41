#include "dashboards/serve/server.h"

// Asio of Boost 1.74 uses std::exchange without its header.
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <list>
#include <optional>
#include <utility>

#include "base/error.h"
#include "dashboards/serve/event_stream.h"

namespace headrace::dashboards {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using tcp = asio::ip::tcp;
// One executor, and not any: what finds out at run time which it is would be in every operation.
using Executor = asio::io_context::executor_type;
using Socket = asio::basic_stream_socket<tcp, Executor>;
using Acceptor = asio::basic_socket_acceptor<tcp, Executor>;
using Timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                         asio::wait_traits<std::chrono::steady_clock>, Executor>;
using std::chrono::seconds;

constexpr size_t kMostHeaderBytes = 8 << 10, kMostBodyBytes = 64 << 10;
constexpr seconds kIdle{60}, kRequest{5}, kWrite{10}, kBetweenEvents{1};
constexpr int kReaders = 2;
constexpr std::chrono::milliseconds kWithoutDescriptors{100};

class Session;

}  // namespace

struct Server::State {
  explicit State(Site& of)
      : site(of), acceptor(network), pause(network), readers(kReaders), reports(1), questions(1) {}

  Site& site;
  // Of the network's thread alone. Sessions, which `network` ends, still change them.
  std::list<std::weak_ptr<Session>> idle;  // waiting for a request, longest first
  int connections = 0, streams = 0, asked_questions = 0;
  bool stopping = false;
  asio::io_context network{1};
  Acceptor acceptor;
  Timer pause;
  asio::thread_pool readers, reports, questions;

  asio::thread_pool& PoolOf(Site::Pace pace) {
    return pace == Site::Pace::kReport     ? reports
           : pace == Site::Pace::kQuestion ? questions
                                           : readers;
  }
};

namespace {

using ServerState = Server::State;

// One connection: request, answer, and again; or one event stream to its end.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(Socket socket, ServerState* state)
      : stream_(std::move(socket)), state_(state), timer_(stream_.get_executor()) {
    state_->connections++;
  }
  ~Session() {
    LeaveIdle();
    if (counted_) state_->connections--;
    if (streaming_) state_->streams--;
  }

  void Begin() {
    parser_.emplace();
    parser_->header_limit(kMostHeaderBytes);
    parser_->body_limit(kMostBodyBytes);
    if (buffer_.size() > 0) {
      Read();
      return;
    }
    idle_at_ = state_->idle.insert(state_->idle.end(), weak_from_this());
    stream_.expires_after(kIdle);
    auto self = shared_from_this();
    stream_.async_read_some(buffer_.prepare(4096), [self](beast::error_code error, size_t bytes) {
      self->LeaveIdle();
      if (error) return self->Close();
      self->buffer_.commit(bytes);
      self->Read();
    });
  }

  // Closes it for another connection; it has left the list of idle ones already.
  void Evict() {
    idle_at_.reset();
    counted_ = false;
    state_->connections--;
    Close();
  }

  void Close() {
    beast::error_code ignored;
    timer_.cancel();
    stream_.socket().shutdown(tcp::socket::shutdown_both, ignored);
    stream_.close();
  }

 private:
  void LeaveIdle() {
    if (idle_at_) state_->idle.erase(*idle_at_);
    idle_at_.reset();
  }

  void Read() {
    stream_.expires_after(kRequest);
    auto self = shared_from_this();
    http::async_read(stream_, buffer_, *parser_,
                     [self](beast::error_code error, size_t) { self->OnRead(error); });
  }

  void OnRead(beast::error_code error) {
    request_ = {};  // the one before may have been a HEAD
    keep_alive_ = false;
    version_ = 11;
    if (error == http::error::header_limit) {
      return Write(ErrorResponse(431, "the headers are longer than 8 KiB"));
    }
    if (error == http::error::body_limit) {
      return Write(ErrorResponse(413, "the body is longer than 64 KiB"));
    }
    if (error == http::error::end_of_stream || error == beast::error::timeout ||
        error == http::error::partial_message || error == asio::error::connection_reset) {
      return Close();
    }
    if (error) return Write(ErrorResponse(400, "that is no HTTP request"));
    const auto& message = parser_->get();
    keep_alive_ = message.keep_alive();
    version_ = message.version();
    request_ = {};
    request_.method = std::string(message.method_string());
    request_.target = std::string(message.target());
    for (const auto& field : message) {
      std::string name(field.name_string());
      std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) {
        return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
      });
      request_.headers[name] = std::string(field.value());
    }
    request_.body = message.body();
    Answer();
  }

  void Answer() {
    const Target target = ParseTarget(request_.target);
    const std::optional<RunPath> run =
        target.valid ? ParseRunPath(target.path) : std::optional<RunPath>();
    if (run && run->name == "events" && request_.method == "GET") {
      return BeginEvents(target, run->run_id);
    }
    const Site::Pace pace = target.valid ? Site::PaceOf(target.path) : Site::Pace::kAtOnce;
    if (pace == Site::Pace::kAtOnce) return Write(state_->site.Answer(request_));
    const bool question = pace == Site::Pace::kQuestion;
    if (question && state_->asked_questions >= Server::kMostQuestions) {
      return Write(Busy("too many questions are being answered just now"));
    }
    if (question) state_->asked_questions++;
    // The session goes with its question and comes back with the answer: it ends on this thread.
    asio::post(state_->PoolOf(pace), [self = shared_from_this(), question]() mutable {
      HttpResponse response = self->state_->site.Answer(self->request_);
      asio::io_context& network = self->state_->network;
      asio::post(network,
                 [self = std::move(self), response = std::move(response), question]() mutable {
                   if (question) self->state_->asked_questions--;
                   self->Write(std::move(response));
                 });
    });
  }

  void Write(HttpResponse answer) {
    const auto status = static_cast<unsigned>(answer.status);
    auto response = std::make_shared<Answered>();
    response->head = fmt::format(
        "HTTP/1.{} {} {}\r\nServer: headrace/{}\r\n", version_ % 10, status,
        std::string(http::obsolete_reason(http::int_to_status(status))), HEADRACE_VERSION);
    const auto add = [&](std::string_view name, std::string_view value) {
      response->head += fmt::format("{}: {}\r\n", name, value);
    };
    for (const auto& [name, value] : SafetyHeaders()) add(name, value);
    for (const auto& [name, value] : answer.headers) add(name, value);
    if (keep_alive_ != (version_ > 10)) add("Connection", keep_alive_ ? "keep-alive" : "close");
    if (answer.status != 304 && answer.status != 204) {
      add("Content-Type", answer.type);
      add("Content-Length", std::to_string(answer.body.size()));
      if (request_.method != "HEAD") response->body = std::move(answer.body);
    }
    response->head += "\r\n";
    WriteOn(std::move(response));
  }

  static HttpResponse Busy(const std::string& what) {
    HttpResponse busy = ErrorResponse(503, what, "", "ask again in some seconds");
    busy.headers.push_back({"Retry-After", "5"});
    return busy;
  }

  // A response on its way. Written by hand: Beast's serializer is much of the executable.
  struct Answered {
    std::string head, body;
    size_t sent = 0;  // of both

    std::array<asio::const_buffer, 2> rest() const {
      const size_t of_head = std::min(sent, head.size());
      return {asio::buffer(head) + of_head, asio::buffer(body) + (sent - of_head)};
    }
    bool done() const { return sent == head.size() + body.size(); }
  };

  // Piece by piece, so that a slow reader has its time for each.
  void WriteOn(std::shared_ptr<Answered> answered) {
    stream_.expires_after(kWrite);
    auto self = shared_from_this();
    stream_.async_write_some(answered->rest(),
                             [self, answered](beast::error_code error, size_t bytes) {
                               if (error) return self->Close();
                               answered->sent += bytes;
                               if (!answered->done()) return self->WriteOn(answered);
                               if (!self->keep_alive_ || self->state_->stopping)
                                 return self->Close();
                               self->Begin();
                             });
  }

  // ---------------------------------------------------------------- events

  void BeginEvents(const Target& target, int64_t run_id) {
    if (const auto refused = state_->site.Refuse(request_, target.path)) return Write(*refused);
    if (state_->streams >= Server::kMostStreams) {
      keep_alive_ = false;
      return Write(Busy("too many pages follow runs just now"));
    }
    streaming_ = true;
    state_->streams++;
    std::string last = request_.Header("last-event-id");
    const auto after = target.query.find("after");
    if (last.empty() && after != target.query.end()) last = after->second;
    events_.emplace(state_->site.cache(), run_id, last);
    text_ =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n"
        "Connection: close\r\n";
    for (const auto& [name, value] : SafetyHeaders())
      text_ += fmt::format("{}: {}\r\n", name, value);
    text_ += "\r\nretry: 1000\n\n";
    WatchForEnd();
    WriteEvents();
  }

  // A viewer sends nothing more: what can be read is the end of its connection.
  void WatchForEnd() {
    auto self = shared_from_this();
    stream_.socket().async_wait(tcp::socket::wait_read, [self](beast::error_code error) {
      if (error) return;
      char byte = 0;
      beast::error_code failed;
      self->stream_.socket().non_blocking(true, failed);
      self->stream_.socket().read_some(asio::buffer(&byte, 1), failed);
      if (failed == asio::error::would_block) return self->WatchForEnd();
      self->gone_ = true;
      self->Close();
    });
  }

  void WriteEvents() {
    stream_.expires_after(kWrite);
    auto self = shared_from_this();
    asio::async_write(stream_, asio::buffer(text_), [self](beast::error_code error, size_t) {
      if (error || self->gone_ || self->state_->stopping) return self->Close();
      if (self->events_->ended()) return self->Close();
      self->WaitForEvents();
    });
  }

  void WaitForEvents() {
    stream_.expires_never();
    timer_.expires_after(kBetweenEvents);
    auto self = shared_from_this();
    timer_.async_wait([self](beast::error_code error) {
      if (error || self->gone_ || self->state_->stopping) return;
      asio::post(self->state_->readers, [self]() mutable {
        std::string text;
        try {
          text = self->events_->Next();
        } catch (const std::exception&) {
          // Another program may hold the database; the next second tells more.
        }
        asio::io_context& network = self->state_->network;
        asio::post(network, [self = std::move(self), text = std::move(text)]() mutable {
          if (self->gone_ || self->state_->stopping) return self->Close();
          if (text.empty() && !self->events_->ended()) return self->WaitForEvents();
          self->text_ = std::move(text);
          self->WriteEvents();
        });
      });
    });
  }

  beast::basic_stream<tcp, Executor> stream_;
  ServerState* state_;  // outlives every session
  Timer timer_;
  beast::flat_buffer buffer_{kMostHeaderBytes + kMostBodyBytes + 4096};
  std::optional<http::request_parser<http::string_body>> parser_;
  HttpRequest request_;
  unsigned version_ = 11;
  bool keep_alive_ = false, streaming_ = false, gone_ = false;
  bool counted_ = true;  // among the connections
  std::optional<std::list<std::weak_ptr<Session>>::iterator> idle_at_;
  std::optional<EventStream> events_;
  std::string text_;
};

// Closes the connection that has waited longest for a request, if one does.
void EvictLongest(ServerState* state) {
  if (state->idle.empty()) return;
  const std::shared_ptr<Session> longest = state->idle.front().lock();
  state->idle.pop_front();
  if (longest) longest->Evict();
}

void Accept(ServerState* state) {
  state->acceptor.async_accept([state](beast::error_code error, Socket socket) {
    if (state->stopping) return;
    if (error || state->connections >= Server::kMostConnections) EvictLongest(state);
    if (!error && state->connections < Server::kMostConnections) {
      std::make_shared<Session>(std::move(socket), state)->Begin();
    }
    if (!error) return Accept(state);
    // Without descriptors the next connection would fail at once, too.
    state->pause.expires_after(kWithoutDescriptors);
    state->pause.async_wait([state](beast::error_code stopped) {
      if (!stopped && !state->stopping) Accept(state);
    });
  });
}

}  // namespace

Server::Server(Site& site, const std::string& address, uint16_t port)
    : state_(std::make_unique<State>(site)) {
  boost::system::error_code error;
  const auto ip = asio::ip::make_address(address, error);
  if (error) {
    throw Error(ExitCode::kUsage,
                "'" + Printable(address, 60) + "' is not an address of this machine", "--host",
                "give a number such as 127.0.0.1 or 0.0.0.0");
  }
  const tcp::endpoint endpoint(ip, port);
  state_->acceptor.open(endpoint.protocol(), error);
  if (!error) state_->acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) state_->acceptor.bind(endpoint, error);
  if (!error) state_->acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    const bool taken = error == asio::error::address_in_use;
    throw Error(error == asio::error::access_denied ? ExitCode::kPrivilege : ExitCode::kFailure,
                fmt::format("cannot listen at {}:{}: {}", address, port, error.message()), "--port",
                taken ? "another program has it; choose another, or --port 0 for any free one"
                : error == asio::error::access_denied
                    ? "choose a port above 1023"
                    : "choose an address of this machine with --host");
  }
  fcntl(state_->acceptor.native_handle(), F_SETFD, FD_CLOEXEC);
  site.set_port(this->port());
}

Server::~Server() = default;

uint16_t Server::port() const { return state_->acceptor.local_endpoint().port(); }

void Server::Run() {
  Accept(state_.get());
  // Most people look at the latest run first, and the report of a long one takes seconds.
  asio::post(state_->reports, [&site = state_->site] { site.Prepare(); });
  state_->network.run();
  for (asio::thread_pool* pool : {&state_->readers, &state_->reports, &state_->questions}) {
    pool->stop();
  }
}

void Server::Stop() {
  asio::post(state_->network, [state = state_.get()] {
    state->stopping = true;
    boost::system::error_code ignored;
    state->acceptor.close(ignored);
    state->network.stop();
  });
}

}  // namespace headrace::dashboards

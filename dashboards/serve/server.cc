#include "dashboards/serve/server.h"

// Asio of Boost 1.74 uses std::exchange without its header.
#include <fmt/format.h>

#include <algorithm>
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
using std::chrono::seconds;

constexpr size_t kMostHeaderBytes = 8 << 10, kMostBodyBytes = 64 << 10;
constexpr seconds kIdle{60}, kRequest{5}, kWrite{10}, kBetweenEvents{1};
constexpr int kWorkers = 2;

class Session;

}  // namespace

struct Server::State {
  explicit State(Site& of) : site(of), acceptor(network), workers(kWorkers) {}

  Site& site;
  // Of the network's thread alone. Sessions, which `network` ends, still change them.
  std::list<std::weak_ptr<Session>> idle;  // waiting for a request, longest first
  int connections = 0, streams = 0;
  bool stopping = false;
  asio::io_context network{1};
  tcp::acceptor acceptor;
  asio::thread_pool workers;
};

namespace {

using ServerState = Server::State;

// One connection: request, answer, and again; or one event stream to its end.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, ServerState* state)
      : stream_(std::move(socket)), state_(state), timer_(stream_.get_executor()) {
    state_->connections++;
  }
  ~Session() {
    LeaveIdle();
    state_->connections--;
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
    if (!target.valid || Site::IsQuick(target.path)) return Write(state_->site.Answer(request_));
    // The session goes with its question and comes back with the answer: it ends on this thread.
    asio::post(state_->workers, [self = shared_from_this()]() mutable {
      HttpResponse response = self->state_->site.Answer(self->request_);
      asio::io_context& network = self->state_->network;
      asio::post(network, [self = std::move(self), response = std::move(response)]() mutable {
        self->Write(std::move(response));
      });
    });
  }

  void Write(HttpResponse answer) {
    auto response = std::make_shared<http::response<http::string_body>>();
    response->version(version_);
    response->result(static_cast<unsigned>(answer.status));
    response->set(http::field::server, "headrace/" HEADRACE_VERSION);
    for (const auto& [name, value] : SafetyHeaders()) response->set(name, value);
    for (const auto& [name, value] : answer.headers) response->set(name, value);
    const bool bodiless = answer.status == 304 || answer.status == 204;
    if (!bodiless) response->set(http::field::content_type, answer.type);
    response->keep_alive(keep_alive_);
    if (request_.method == "HEAD") {
      response->content_length(answer.body.size());
    } else if (!bodiless) {
      response->body() = std::move(answer.body);
      response->prepare_payload();
    }
    stream_.expires_after(kWrite);
    auto self = shared_from_this();
    http::async_write(stream_, *response, [self, response](beast::error_code error, size_t) {
      if (error || !self->keep_alive_ || self->state_->stopping) return self->Close();
      self->Begin();
    });
  }

  // ---------------------------------------------------------------- events

  void BeginEvents(const Target& target, int64_t run_id) {
    if (const auto refused = state_->site.Refuse(request_, target.path)) return Write(*refused);
    if (state_->streams >= Server::kMostStreams) {
      HttpResponse busy = ErrorResponse(503, "too many pages follow runs just now", "events",
                                        "close one, or ask again later");
      busy.headers.push_back({"Retry-After", "5"});
      keep_alive_ = false;
      return Write(std::move(busy));
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
      const size_t got = self->stream_.socket().read_some(asio::buffer(&byte, 1), failed);
      if (got == 0 && failed != asio::error::would_block) {
        self->gone_ = true;
        return self->Close();
      }
      self->WatchForEnd();
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
      asio::thread_pool& workers = self->state_->workers;
      asio::post(workers, [self]() mutable {
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

  beast::tcp_stream stream_;
  ServerState* state_;  // outlives every session
  asio::steady_timer timer_;
  beast::flat_buffer buffer_{kMostHeaderBytes + kMostBodyBytes + 4096};
  std::optional<http::request_parser<http::string_body>> parser_;
  HttpRequest request_;
  unsigned version_ = 11;
  bool keep_alive_ = false, streaming_ = false, gone_ = false;
  std::optional<std::list<std::weak_ptr<Session>>::iterator> idle_at_;
  std::optional<EventStream> events_;
  std::string text_;
};

void Accept(ServerState* state) {
  state->acceptor.async_accept([state](beast::error_code error, tcp::socket socket) {
    if (state->stopping) return;
    if (!error) {
      while (state->connections >= Server::kMostConnections && !state->idle.empty()) {
        const std::shared_ptr<Session> longest = state->idle.front().lock();
        if (!longest) {
          state->idle.pop_front();
          continue;
        }
        state->idle.pop_front();
        longest->Evict();
      }
      if (state->connections < Server::kMostConnections) {
        std::make_shared<Session>(std::move(socket), state)->Begin();
      }
    }
    Accept(state);
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
                      : "choose a port above 1023");
  }
  site.set_port(this->port());
}

Server::~Server() = default;

uint16_t Server::port() const { return state_->acceptor.local_endpoint().port(); }

void Server::Run() {
  Accept(state_.get());
  // Most people look at the latest run first, and the report of a long one takes seconds.
  asio::post(state_->workers, [&site = state_->site] { site.Prepare(); });
  state_->network.run();
  state_->workers.stop();
  state_->workers.join();
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

// headrace serve: pages of all runs of a database, in a browser.
#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <thread>

#include "base/error.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/verdict.h"
#include "collectors/store/read_store.h"
#include "dashboards/serve/port.h"
#include "dashboards/serve/server.h"

namespace headrace::cli {
namespace {

struct ServeOptions {
  std::string database = DefaultDatabase(), host = "127.0.0.1", run;
  int port = dashboards::kServePort;
  bool open = false;
};

bool IsLoopback(const std::string& host) { return host.starts_with("127.") || host == "::1"; }
bool IsWildcard(const std::string& host) { return host == "0.0.0.0" || host == "::"; }

// As it stands in an address: an IPv6 number in brackets.
std::string Bracketed(const std::string& host) {
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

// The machine's own addresses, but those of its loopback.
std::vector<std::string> OwnAddresses() {
  std::vector<std::string> addresses;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return addresses;
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr) continue;
    const int family = each->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    char text[NI_MAXHOST] = "";
    const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (getnameinfo(each->ifa_addr, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) {
      continue;
    }
    const std::string address = text;
    if (!IsLoopback(address) && address.find('%') == std::string::npos) {
      addresses.push_back(Bracketed(address));
    }
  }
  freeifaddrs(list);
  return addresses;
}

dashboards::AccessRules RulesFor(const std::string& host) {
  dashboards::AccessRules rules;
  rules.hosts.push_back(Bracketed(host));
  if (IsLoopback(host)) return rules;
  rules.token = dashboards::MakeToken();
  char name[256] = "";
  if (gethostname(name, sizeof name - 1) == 0 && name[0] != '\0') rules.hosts.push_back(name);
  if (IsWildcard(host)) {
    for (const std::string& address : OwnAddresses()) rules.hosts.push_back(address);
  }
  return rules;
}

// The browser is no child of this process: it outlives it, and nobody waits for it.
void ShowInBrowser(const std::string& address) {
  if (std::getenv("DISPLAY") == nullptr && std::getenv("WAYLAND_DISPLAY") == nullptr) {
    fmt::print(stderr, "there is no display here: open the address in a browser\n");
    return;
  }
  const pid_t child = fork();
  if (child == 0) {
    if (fork() != 0) _exit(0);
    setsid();
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nothing >= 0) dup2(nothing, STDOUT_FILENO);
    execlp("xdg-open", "xdg-open", address.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = 0;
  if (child > 0) waitpid(child, &status, 0);
}

int Serve(const ServeOptions& options) {
  if (options.port < 0 || options.port > 65535) {
    throw Error(ExitCode::kUsage, fmt::format("{} is no port", options.port), "--port",
                "give 0 to 65535; 0 takes any free one");
  }
  std::string path = "/";
  {
    collectors::ReadStore store(options.database);  // refuses what is no run store
    if (!options.run.empty()) path = fmt::format("/run/{}", store.FindRun(options.run));
  }
  const std::string host = options.host == "localhost" ? "127.0.0.1" : options.host;
  const dashboards::AccessRules rules = RulesFor(host);
  const std::string database_option = DatabaseOption(options.database);
  dashboards::Site site(options.database, "headrace", database_option, rules);
  // Blocked before a thread is made, so that they come to sigwait alone.
  sigset_t ends;
  sigemptyset(&ends);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ends, signal);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  dashboards::Server server(site, host, static_cast<uint16_t>(options.port));
  const std::string shown = IsWildcard(host) ? rules.hosts.back() : Bracketed(host);
  const std::string address = fmt::format("http://{}:{}{}{}", shown, server.port(), path,
                                          rules.token.empty() ? "" : "#token=" + rules.token);
  fmt::print("{}\n", address);
  std::fflush(stdout);
  fmt::print(stderr, "pages of {}; Ctrl-C ends it\n", Printable(options.database));
  if (options.open) ShowInBrowser(address);
  std::thread([&] {
    int signal = 0;
    sigwait(&ends, &signal);
    server.Stop();
  }).detach();
  server.Run();
  // Nothing is written, so what is still being answered need not be waited for.
  std::fflush(stdout);
  _exit(0);
}

HR_COMMAND(
    "serve",
    {.summary = "shows the runs of a database as pages in a browser",
     .examples = "  headrace serve                      # then open http://127.0.0.1:7070\n"
                 "  headrace serve latest --open        # the latest run, in the browser\n"
                 "  headrace serve --port 0             # at any free port\n"
                 "  ssh -L 7070:127.0.0.1:7070 host headrace serve   # of another machine\n",
     .exit_codes = "0 ended by a signal, 1 cannot listen, 2 usage, 5 not a headrace database or no "
                   "such run",
     .next = "headrace report",
     .configure = [](CommandLine& command_line) -> std::function<int()> {
       auto options = std::make_shared<ServeOptions>();
       command_line.AddOption("RUN", options->run, "Begin with this run: an id, a name, or latest");
       command_line.AddOption("--db", options->database, "Show this database");
       command_line.AddOption("--port", options->port, "Listen at this port; 0 takes any free one")
           ->ShowDefault();
       command_line
           .AddOption("--host", options->host,
                      "Listen at this address; others than this machine's own need the token that "
                      "is printed")
           ->TypeName("ADDRESS")
           ->ShowDefault();
       command_line.AddFlag("--open", options->open, "Show the page in the browser");
       return [options] { return Serve(*options); };
     }});

}  // namespace
}  // namespace headrace::cli

#include "reader/pipeline/delivery/tls.h"

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <mutex>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/error.h"

namespace headrace::reader {
namespace {

template <auto kFree>
struct OpenSslFree {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using Context = std::unique_ptr<SSL_CTX, OpenSslFree<SSL_CTX_free>>;
using Certificate = std::unique_ptr<X509, OpenSslFree<X509_free>>;
using PrivateKey = std::unique_ptr<EVP_PKEY, OpenSslFree<EVP_PKEY_free>>;
using Session = std::unique_ptr<SSL, OpenSslFree<SSL_free>>;

// Of the oldest error that OpenSSL has noted in this thread, without the others.
std::string TakeReason() {
  const unsigned long code = ERR_peek_error();
  const char* const reason = ERR_reason_error_string(code);
  ERR_clear_error();
  return reason == nullptr ? "unknown reason" : reason;
}

void Must(bool holds, const std::string& what, const std::string& where = "") {
  if (holds) return;
  throw Error(ExitCode::kPrivilege, fmt::format("{}: {}", what, TakeReason()), where,
              where.empty() ? "" : "give PEM files that belong together");
}

constexpr size_t kBurstBytes = 256 << 10;  // what a call moves at most
// Of a side that has not proved that it has the token, either way: it could ask for new keys for
// ever, which OpenSSL answers without coming back.
constexpr size_t kStrangerBytes = 64 << 10;
constexpr size_t kReadBytes = 1 << 20;   // from the socket, in one call of a side that has
constexpr size_t kMostUnsent = 4 << 20;  // answers to new keys that it does not read

// The socket below a session. What goes out is gathered, so that many records take one call.
struct Pipe {
  int fd = -1;
  std::vector<char> out;
  size_t sent = 0;  // of out
  bool is_trusted = false;
  size_t may_read = kStrangerBytes;   // of a stranger in all, otherwise in this call
  size_t may_write = kStrangerBytes;  // to a stranger in all

  bool is_spent() const { return !is_trusted && (may_read == 0 || may_write == 0); }
};

Pipe& PipeOf(BIO* bio) { return *static_cast<Pipe*>(BIO_get_data(bio)); }

int WritePipe(BIO* bio, const char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  Pipe& pipe = PipeOf(bio);
  const auto more = static_cast<size_t>(size);
  if (pipe.out.size() - pipe.sent + more > kMostUnsent) return -1;
  if (!pipe.is_trusted) {
    if (more > pipe.may_write) pipe.may_write = 0;
    if (pipe.may_write == 0) return -1;
    pipe.may_write -= more;
  }
  pipe.out.insert(pipe.out.end(), bytes, bytes + size);
  return size;
}
int ReadPipe(BIO* bio, char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  Pipe& pipe = PipeOf(bio);
  if (pipe.may_read == 0) {
    if (!pipe.is_trusted) return 0;  // as if it had closed the connection
    BIO_set_retry_read(bio);         // the caller has others to look after
    return -1;
  }
  const size_t room = std::min(static_cast<size_t>(size), pipe.may_read);
  const ssize_t got = recv(pipe.fd, bytes, room, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
    BIO_set_retry_read(bio);
  if (got > 0) pipe.may_read -= static_cast<size_t>(got);
  return static_cast<int>(got);
}
long ControlPipe(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

// 1: all is sent; -1: there is no room now; 0: the other side is gone, which is no signal.
int FlushPipe(Pipe* pipe) {
  while (pipe->sent < pipe->out.size()) {
    const ssize_t sent = send(pipe->fd, pipe->out.data() + pipe->sent,
                              pipe->out.size() - pipe->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? -1 : 0;
    pipe->sent += static_cast<size_t>(sent);
  }
  pipe->out.clear();
  pipe->sent = 0;
  return 1;
}

BIO_METHOD* PipeMethod() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* const made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
    BIO_meth_set_write(made, WritePipe);
    BIO_meth_set_read(made, ReadPipe);
    BIO_meth_set_ctrl(made, ControlPipe);
    return made;
  }();
  return method;
}

// A certificate that this process signs itself, with a key that no file has.
void MakeCertificate(Certificate* certificate, PrivateKey* key) {
  key->reset(EVP_EC_gen("P-256"));
  certificate->reset(X509_new());
  Must(*key && *certificate, "no certificate can be made");
  X509* const x509 = certificate->get();
  X509_set_version(x509, X509_VERSION_3);
  uint32_t serial = 0;
  FillRandom({reinterpret_cast<uint8_t*>(&serial), sizeof serial});
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(x509), serial);
  constexpr long kDay = 86'400, kYears = 3650;
  X509_gmtime_adj(X509_getm_notBefore(x509), -kDay);  // clocks differ
  X509_gmtime_adj(X509_getm_notAfter(x509), kYears * kDay);
  X509_set_pubkey(x509, key->get());
  X509_NAME* const name = X509_get_subject_name(x509);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("headrace"), -1, -1, 0);
  X509_set_issuer_name(x509, name);
  Must(X509_sign(x509, key->get(), EVP_sha256()) != 0, "no certificate can be signed");
}

Context MakeContext(const SSL_METHOD* method) {
  Context context(SSL_CTX_new(method));
  Must(context != nullptr, "TLS cannot begin");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION);
  // Of the suites of TLS 1.3 the one that CPUs have instructions for comes first.
  Must(SSL_CTX_set_ciphersuites(context.get(),
                                "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:"
                                "TLS_CHACHA20_POLY1305_SHA256") == 1,
       "no cipher can be chosen");
  SSL_CTX_set_num_tickets(context.get(), 0);  // sessions are not taken up again
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context.get(),
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_read_ahead(context.get(), 1);
  SSL_CTX_set_default_read_buffer_len(context.get(), kBurstBytes);  // several records a call
  return context;
}

// In the place of OpenSSL's, which asks at the terminal.
int NotePassphrase(char*, int, int, void* is_wanted) {
  *static_cast<bool*>(is_wanted) = true;
  return -1;
}

void UseFiles(SSL_CTX* context, const CertificateFiles& files) {
  bool is_locked = false;
  SSL_CTX_set_default_passwd_cb(context, NotePassphrase);
  SSL_CTX_set_default_passwd_cb_userdata(context, &is_locked);  // for as long as files are read
  Must(SSL_CTX_use_certificate_chain_file(context, files.certificate.c_str()) == 1,
       "is not a certificate that can be used", files.certificate);
  const bool is_key =
      SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM) == 1;
  SSL_CTX_set_default_passwd_cb(context, nullptr);
  SSL_CTX_set_default_passwd_cb_userdata(context, nullptr);
  if (is_locked) {
    ERR_clear_error();
    throw Error(ExitCode::kPrivilege, "has a passphrase, which nobody is asked for", files.key,
                "give a key without one, that nobody else can read: openssl pkey -in KEY -out NEW");
  }
  Must(is_key, "is not a key that can be used", files.key);
  Must(SSL_CTX_check_private_key(context) == 1, "is not the key of the certificate", files.key);
}

// An alert of the other side about the certificate that it was shown, or not shown.
bool IsOfOurCertificate(unsigned long error) {
  constexpr int kReasons[] = {
      SSL_R_SSLV3_ALERT_NO_CERTIFICATE,      SSL_R_SSLV3_ALERT_BAD_CERTIFICATE,
      SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED, SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED,
      SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN, SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE,
      SSL_R_TLSV1_ALERT_UNKNOWN_CA,          SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED};
  return ERR_GET_LIB(error) == ERR_LIB_SSL &&
         std::ranges::find(kReasons, ERR_GET_REASON(error)) != std::end(kReasons);
}

constexpr unsigned kHostFlags =
    X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS;

// The certificate that comes must name this host. What its subject is called does not count.
void ExpectHost(SSL* ssl, const std::string& host) {
  HR_CHECK(!host.empty(), "whom a caller means is compared with the certificate");
  X509_VERIFY_PARAM* const wanted = SSL_get0_param(ssl);
  X509_VERIFY_PARAM_set_hostflags(wanted, kHostFlags);
  const bool is_set = X509_VERIFY_PARAM_set1_ip_asc(wanted, host.c_str()) == 1 ||
                      X509_VERIFY_PARAM_set1_host(wanted, host.c_str(), 0) == 1;
  ERR_clear_error();
  if (!is_set) throw Error(ExitCode::kUsage, "is not a host that a certificate can name", host);
}

}  // namespace

struct TlsContext::State {
  Context caller = MakeContext(TLS_client_method()), listener = MakeContext(TLS_server_method());
  bool has_authority = false, has_files = false;
};

TlsContext::TlsContext(const CertificateFiles& files) : state_(std::make_unique<State>()) {
  if (files.certificate.empty() != files.key.empty())
    throw Error(ExitCode::kUsage, "a certificate and its key come together", "",
                "give --tls-certificate and --tls-key, or none of them");
  Certificate made;
  PrivateKey key;
  state_->has_files = !files.certificate.empty();
  if (!state_->has_files) MakeCertificate(&made, &key);
  for (SSL_CTX* const context : {state_->caller.get(), state_->listener.get()}) {
    if (!made) {
      UseFiles(context, files);
    } else if (context == state_->listener.get()) {
      Must(SSL_CTX_use_certificate(context, made.get()) == 1 &&
               SSL_CTX_use_PrivateKey(context, key.get()) == 1,
           "the certificate cannot be used");
    }
    state_->has_authority = !files.authority.empty();
    if (!state_->has_authority) continue;
    Must(SSL_CTX_load_verify_locations(context, files.authority.c_str(), nullptr) == 1,
         "has no certificate of an authority", files.authority);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }
}

TlsContext::~TlsContext() = default;

std::unique_ptr<TlsSession> TlsContext::Begin(int fd, Side side, const std::string& host) const {
  const bool is_caller = side == Side::kCaller;
  Session ssl(SSL_new(is_caller ? state_->caller.get() : state_->listener.get()));
  BIO* const bio = ssl ? BIO_new(PipeMethod()) : nullptr;
  if (bio == nullptr) throw Error(ExitCode::kResources, "out of memory");
  SSL_set_bio(ssl.get(), bio, bio);
  is_caller ? SSL_set_connect_state(ssl.get()) : SSL_set_accept_state(ssl.get());
  if (is_caller && state_->has_authority) ExpectHost(ssl.get(), host);
  return std::make_unique<TlsSession>(ssl.release(), fd);
}

std::string TlsContext::MissingName(const std::string& host) const {
  if (!state_->has_authority || !state_->has_files) return "";
  X509* const ours = SSL_CTX_get0_certificate(state_->listener.get());
  const int as_number = X509_check_ip_asc(ours, host.c_str(), kHostFlags);
  const bool is_number = as_number != -2;
  const bool is_named =
      is_number ? as_number == 1
                : X509_check_host(ours, host.data(), host.size(), kHostFlags, nullptr) == 1;
  ERR_clear_error();
  return is_named ? "" : (is_number ? "IP:" : "DNS:") + host;
}

struct TlsSession::State {
  std::mutex mutex;  // one thread may read while another one writes
  Pipe pipe;
  Session ssl;
  size_t taken = 0;  // bytes of the caller's that are encrypted and not all sent
  bool is_gone = false, is_broken = false;

  // What a call's result says: 0 gone, -1 not now.
  ptrdiff_t Judge(int result) {
    if (result > 0) return result;
    const int error = SSL_get_error(ssl.get(), result);
    if (error == SSL_ERROR_WANT_READ) return -1;
    is_gone = true;
    is_broken = error == SSL_ERROR_SSL || pipe.is_spent();
    return 0;
  }
  ptrdiff_t Flush() {
    const int flushed = FlushPipe(&pipe);
    is_gone |= flushed == 0;
    return flushed;
  }
};

TlsSession::TlsSession(void* ssl, int fd) : state_(std::make_unique<State>()) {
  state_->ssl.reset(static_cast<SSL*>(ssl));
  state_->pipe.fd = fd;
  BIO* const bio = SSL_get_rbio(state_->ssl.get());
  BIO_set_data(bio, &state_->pipe);
  BIO_set_init(bio, 1);
}

TlsSession::~TlsSession() = default;

bool TlsSession::Agree() {
  State& state = *state_;
  std::lock_guard lock(state.mutex);
  ERR_clear_error();
  const int result = SSL_do_handshake(state.ssl.get());
  const int error = SSL_get_error(state.ssl.get(), result);
  const bool is_over = result != 1 && error != SSL_ERROR_WANT_READ;
  const bool is_refused = error == SSL_ERROR_SSL && IsOfOurCertificate(ERR_peek_error());
  const std::string reason = state.pipe.is_spent()    ? "it says too much"
                             : error == SSL_ERROR_SSL ? TakeReason()
                                                      : "";
  const ptrdiff_t flushed = state.Flush();  // also the alert that says why not
  if (is_over) CheckHost();
  if (is_over && is_refused)
    throw Error(ExitCode::kFailure, "refuses this process's certificate", "",
                "look at its subjectAltName, and at --tls-ca of both");
  if (is_over && !reason.empty())
    throw Error(ExitCode::kFailure, fmt::format("no TLS 1.3: {}", reason));
  if (is_over || flushed == 0)
    throw ClosedEarly(ExitCode::kFailure, "no TLS 1.3: it closed the connection");
  wants_room_ = flushed < 0;
  return result == 1 && flushed > 0;
}

void TlsSession::CheckHost() const {
  const long verified = SSL_get_verify_result(state_->ssl.get());
  if (verified != X509_V_ERR_HOSTNAME_MISMATCH && verified != X509_V_ERR_IP_ADDRESS_MISMATCH)
    return;
  throw Error(ExitCode::kPrivilege, "its certificate names other hosts", "",
              "name this one in the certificate (subjectAltName), or call it by a name that is "
              "there");
}

ptrdiff_t TlsSession::Read(std::span<uint8_t> bytes) {
  State& state = *state_;
  std::lock_guard lock(state.mutex);
  if (state.pipe.is_trusted) state.pipe.may_read = kReadBytes;
  size_t have = 0;
  while (have < bytes.size() && !state.is_gone) {
    ERR_clear_error();
    const size_t room = std::min<size_t>(bytes.size() - have, INT_MAX);
    const ptrdiff_t got =
        state.Judge(SSL_read(state.ssl.get(), bytes.data() + have, static_cast<int>(room)));
    if (got < 0) break;
    have += static_cast<size_t>(got);
  }
  if (!state.pipe.out.empty() && state.taken == 0) state.Flush();  // an answer to new keys
  if (have > 0) return static_cast<ptrdiff_t>(have);
  return state.is_gone ? 0 : -1;
}

ptrdiff_t TlsSession::Write(std::span<const uint8_t> bytes) {
  State& state = *state_;
  std::lock_guard lock(state.mutex);
  if (state.is_gone) return 0;
  const size_t burst = std::min(bytes.size(), kBurstBytes);
  while (state.taken < burst && state.pipe.sent == 0) {
    ERR_clear_error();
    const ptrdiff_t put = state.Judge(SSL_write(state.ssl.get(), bytes.data() + state.taken,
                                                static_cast<int>(burst - state.taken)));
    if (put <= 0) return put;
    state.taken += static_cast<size_t>(put);
  }
  const ptrdiff_t flushed = state.Flush();
  if (flushed <= 0) return flushed;
  return static_cast<ptrdiff_t>(std::exchange(state.taken, 0));
}

void TlsSession::Trust() {
  std::lock_guard lock(state_->mutex);
  state_->pipe.is_trusted = true;
}

bool TlsSession::is_broken() const {
  std::lock_guard lock(state_->mutex);
  return state_->is_broken;
}

Digest TlsSession::Binding() {
  constexpr std::string_view kLabel = "EXPORTER-headrace-delivery";
  std::lock_guard lock(state_->mutex);
  Digest digest;
  if (SSL_export_keying_material(state_->ssl.get(), digest.data(), digest.size(), kLabel.data(),
                                 kLabel.size(), nullptr, 0, 0) != 1)
    throw Error(ExitCode::kFailure, "the TLS session cannot be named");
  return digest;
}

}  // namespace headrace::reader

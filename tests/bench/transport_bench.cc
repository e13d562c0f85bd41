// Transports between processes beside what the machine gives: frames over a Unix socket, TCP and
// TLS beside the bare socket, TLS beside bare OpenSSL, the ring in shared memory beside memcpy, and
// what handing a batch to another thread costs. Pairs are interleaved; medians with the 10th and
// 90th percentile of the pairs' ratios.
//
//   transport_bench [PAIRS [network]]        default 9; network: TCP and TLS alone
//   transport_bench serve                    "unix", "shm" or "tcp" a line of standard input: moves
//                                            1 GiB of frames, made into tensors, and prints what it
//                                            took as JSON (flight_pairs.py)
#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "reader/pipeline/delivery/connect.h"
#include "reader/pipeline/delivery/transport.h"
#include "reader/pipeline/element.h"
#include "reader/pipeline/queue.h"
#include "tests/bench/paired.h"
#include "tests/reader/pipeline/delivery/random_batch.h"

using namespace headrace;
using namespace headrace::reader;
using headrace::bench::Quantile;

namespace {

double Seconds(const std::function<void()>& work) {
  const int64_t start = MonotonicNs();
  work();
  return static_cast<double>(MonotonicNs() - start) / 1e9;
}

void Compare(const std::string& name, int pairs, double gigabytes, const std::string& rival_name,
             const std::function<double()>& ours, const std::function<double()>& rival,
             double goal) {
  const bench::Pairs seconds = bench::MeasurePairs(pairs, ours, rival);
  std::vector<double> mine, theirs, ratios;
  for (size_t i = 0; i < seconds.ours.size(); ++i) {
    mine.push_back(gigabytes / seconds.ours[i]);
    theirs.push_back(gigabytes / seconds.rival[i]);
    ratios.push_back(seconds.rival[i] / seconds.ours[i]);
  }
  fmt::print("{:44} {:6.2f} GB/s   {:12} {:6.2f} GB/s   ratio {:.2f} [{:.2f}, {:.2f}]{}\n", name,
             Quantile(mine, 0.5), rival_name, Quantile(theirs, 0.5), Quantile(ratios, 0.5),
             Quantile(ratios, 0.1), Quantile(ratios, 0.9),
             goal > 0 ? fmt::format("   goal {:.1f}: {}", goal,
                                    Quantile(ratios, 0.5) >= goal ? "reached" : "missed")
                      : "");
  std::fflush(stdout);
}

// Both ends of a connection through the loopback interface.
void TcpPair(int* pair) {
  TcpListener listener({"127.0.0.1", 0});
  std::string why;
  pair[0] = ConnectTcp(listener.at(), 1'000'000'000, {}, &why);
  while ((pair[1] = accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC)) < 0) {
  }
  for (int i = 0; i < 2; ++i) fcntl(pair[i], F_SETFL, 0);
}

// `total` bytes in writes of `block` from one thread to another.
double RawSocket(uint64_t total, uint64_t block, bool tcp = false) {
  int pair[2];
  if (tcp) {
    TcpPair(pair);
  } else if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) {
    std::abort();
  }
  const int buffer = 4 << 20;
  if (!tcp) setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
  std::vector<char> from(block, 1), to(block);
  const double seconds = Seconds([&] {
    std::thread reader([&] {
      for (uint64_t left = total; left > 0;) {
        const ssize_t got = recv(pair[1], to.data(), std::min(left, block), 0);
        if (got <= 0) std::abort();
        left -= static_cast<uint64_t>(got);
      }
    });
    for (uint64_t left = total; left > 0;) {
      const ssize_t sent = send(pair[0], from.data(), std::min(left, block), MSG_NOSIGNAL);
      if (sent <= 0) std::abort();
      left -= static_cast<uint64_t>(sent);
    }
    reader.join();
  });
  close(pair[0]);
  close(pair[1]);
  return seconds;
}

// What OpenSSL reaches by itself: its own sockets, one thread at each end, `total` bytes in writes
// of `block`. As ours: TLS 1.3, the same first cipher.
class BareTls {
 public:
  BareTls() : context_(SSL_CTX_new(TLS_method())) {
    EVP_PKEY* const key = EVP_EC_gen("P-256");
    X509* const certificate = X509_new();
    X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 86'400);
    X509_set_pubkey(certificate, key);
    if (X509_sign(certificate, key, EVP_sha256()) == 0 ||
        SSL_CTX_use_certificate(context_, certificate) != 1 ||
        SSL_CTX_use_PrivateKey(context_, key) != 1 ||
        SSL_CTX_set_min_proto_version(context_, TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_ciphersuites(context_, "TLS_AES_128_GCM_SHA256") != 1)
      std::abort();
    X509_free(certificate);
    EVP_PKEY_free(key);
  }
  ~BareTls() { SSL_CTX_free(context_); }
  BareTls(const BareTls&) = delete;
  BareTls& operator=(const BareTls&) = delete;

  double Move(uint64_t total, uint64_t block) const {
    int pair[2];
    TcpPair(pair);
    SSL* const writer = SSL_new(context_);
    SSL* const reader = SSL_new(context_);
    SSL_set_fd(writer, pair[0]);
    SSL_set_fd(reader, pair[1]);
    std::thread agreeing([&] {
      if (SSL_accept(reader) != 1) std::abort();
    });
    if (SSL_connect(writer) != 1) std::abort();
    agreeing.join();
    const std::vector<char> from(block, 1);
    std::vector<char> to(block);
    const double seconds = Seconds([&] {
      std::thread reading([&] {
        for (uint64_t left = total; left > 0;) {
          const int got = SSL_read(reader, to.data(), static_cast<int>(std::min(left, block)));
          if (got <= 0) std::abort();
          left -= static_cast<uint64_t>(got);
        }
      });
      for (uint64_t left = total; left > 0;) {
        const int put = SSL_write(writer, from.data(), static_cast<int>(std::min(left, block)));
        if (put <= 0) std::abort();
        left -= static_cast<uint64_t>(put);
      }
      reading.join();
    });
    SSL_free(writer);
    SSL_free(reader);
    close(pair[0]);
    close(pair[1]);
    return seconds;
  }

 private:
  SSL_CTX* const context_;
};

// `count` frames of the batch; `decodes`: into tensors on the other side, else the checksum alone.
double Frames(DeliveryKind kind, const TensorBatch& batch, int count, bool decodes) {
  const DeliveryAddress at{
      kind,
      (std::filesystem::temp_directory_path() / fmt::format("hrbench{}", getpid())).string(),
      {"127.0.0.1", 0}};
  static const auto credentials = std::make_shared<const Credentials>(
      Token(std::string(64, 'f'), "the benchmark"), CertificateFiles{});
  Listener listener(at, credentials);
  double seconds = 0;
  std::thread producer([&] {
    auto sender =
        ConnectSender(listener.address(), {.ring_bytes = 16 << 20, .credentials = credentials});
    FrameEncoder encoder;
    for (int i = 0; i < count; ++i)
      for (const Frame& frame : encoder.Encode(batch)) sender->Send(frame, UINT32_MAX);
    sender->Send(encoder.End(true), UINT32_MAX);
    sender->AwaitAcknowledged(static_cast<uint64_t>(count));
  });
  auto receiver = listener.Accept({});
  FrameDecoder decoder;
  seconds = Seconds([&] {
    for (;;) {
      const ReceivedFrame frame = receiver->Receive(UINT32_MAX);
      if (decodes) {
        decoder.Decode(frame.header, frame.body, frame.keep, frame.memory);
      } else if (frame.memory != FrameMemory::kChecked &&
                 FrameChecksum(frame.header, frame.body) != frame.header.checksum) {
        std::abort();
      }
      if (frame.header.kind == static_cast<uint8_t>(FrameKind::kEnd)) break;
    }
    receiver->Acknowledge(static_cast<uint64_t>(count));
  });
  producer.join();
  return seconds;
}

double Memcpy(uint64_t total, uint64_t block) {
  // As the ring: 16 MiB written in turn.
  std::vector<uint8_t> from(block, 1), to(16 << 20);
  return Seconds([&] {
    for (uint64_t done = 0; done < total; done += block)
      std::memcpy(to.data() + done / block % (to.size() / block) * block, from.data(), block);
    asm volatile("" : : "r"(to.data()) : "memory");
  });
}

// CPU seconds to copy `count` frames into a ring with their checksums: made on the way, or before.
double CopyFrames(const Frame& frame, int count, bool one_pass) {
  const uint64_t slots = (uint64_t{16} << 20) / frame.bytes();
  std::vector<uint8_t> ring(slots * frame.bytes());
  const int64_t begin = ThreadCpuNs();
  for (uint64_t i = 0; i < static_cast<uint64_t>(count); ++i) {
    uint8_t* to = ring.data() + i % slots * frame.bytes();
    if (one_pass) {
      CopyFrame(frame, to);
      continue;
    }
    const FrameHeader header = SealedHeader(frame);
    std::memcpy(to, &header, sizeof header);
    to += sizeof header;
    for (const std::span<const uint8_t>& part : frame.parts) {
      std::memcpy(to, part.data(), part.size());
      to += part.size();
    }
  }
  return static_cast<double>(ThreadCpuNs() - begin) / 1e9;
}

// Nanoseconds to put a batch into a queue and take it out.
double HandOff(bool threads) {
  Queue<Element> queue(64, false, UINT32_MAX);
  constexpr int kCount = 300000;
  std::mt19937_64 random(1);
  Element carried;
  carried.payload = RandomBatch({.rows = 512, .dense = 16, .sparse = 4}, random);
  const double seconds = Seconds([&] {
    if (!threads) {
      for (int i = 0; i < kCount; ++i) {
        queue.Put(std::move(carried), UINT32_MAX);
        queue.Get(&carried, UINT32_MAX, 0);
      }
      return;
    }
    std::thread taker([&] {
      Element element;
      for (int i = 0; i < kCount; ++i) queue.Get(&element, UINT32_MAX, 0);
    });
    for (int i = 0; i < kCount; ++i) queue.Put(Element(), UINT32_MAX);
    taker.join();
  });
  return seconds * 1e9 / kCount;
}

}  // namespace

// TCP and TLS beside a bare TCP socket, with frames of about `mebibytes`.
void CompareNetwork(int pairs, uint64_t mebibytes) {
  std::mt19937_64 random(mebibytes);
  const TensorBatch batch =
      RandomBatch({.rows = 512 * mebibytes, .dense = 170, .sparse = 20, .longest = 16}, random);
  FrameEncoder encoder;
  const uint64_t frame_bytes = encoder.Encode(batch).back().bytes();
  const int count = static_cast<int>((uint64_t{1} << 30) / frame_bytes);
  const uint64_t total = frame_bytes * static_cast<uint64_t>(count);
  const double gigabytes = static_cast<double>(total) / 1e9;
  const std::string size =
      fmt::format("of {:.1f} MiB", static_cast<double>(frame_bytes) / (1 << 20));
  const BareTls tls;
  const auto raw = [&] { return RawSocket(total, frame_bytes, true); };
  const auto open_ssl = [&] { return tls.Move(total, frame_bytes); };
  const auto ours = [&](DeliveryKind kind) {
    return [&, kind] { return Frames(kind, batch, count, false); };
  };
  Compare("tcp, frames " + size + ", checked", pairs, gigabytes, "bare TCP",
          ours(DeliveryKind::kTcp), raw, 0.9);
  Compare("tls, frames " + size + ", checked", pairs, gigabytes, "bare TCP",
          ours(DeliveryKind::kTls), raw, 0.6);
  Compare("bare OpenSSL, writes " + size, pairs, gigabytes, "bare TCP", open_ssl, raw, 0);
  Compare("tls, frames " + size + ", checked", pairs, gigabytes, "bare OpenSSL",
          ours(DeliveryKind::kTls), open_ssl, 0);
}

// For a rival in another program.
void Serve(const TensorBatch& batch) {
  FrameEncoder encoder;
  const uint64_t frame_bytes = encoder.Encode(batch).back().bytes();
  const int count = static_cast<int>((uint64_t{1} << 30) / frame_bytes);
  for (std::string word; std::getline(std::cin, word);) {
    const int64_t begin = ProcessCpuNs();
    const double seconds = Frames(word == "shm"   ? DeliveryKind::kShm
                                  : word == "tcp" ? DeliveryKind::kTcp
                                                  : DeliveryKind::kUnix,
                                  batch, count, true);
    fmt::print(R"({{"seconds": {:.6f}, "cpu_seconds": {:.6f}, "bytes": {}}})"
               "\n",
               seconds, static_cast<double>(ProcessCpuNs() - begin) / 1e9,
               frame_bytes * static_cast<uint64_t>(count));
    std::fflush(stdout);
  }
}

int main(int argc, char** argv) {
  setenv("HEADRACE_ACCOUNTS", "off", 0);
  const int pairs = argc > 1 ? std::max(1, std::atoi(argv[1])) : 9;
  if (argc > 2 && std::string(argv[2]) == "network") {
    for (const uint64_t mebibytes : {1, 9}) CompareNetwork(pairs, mebibytes);
    return 0;
  }
  std::mt19937_64 random(1);
  constexpr uint64_t kMiB = 1 << 20;
  // A frame of 1 MiB, most of it ids as in rm1.
  const TensorBatch batch =
      RandomBatch({.rows = 512, .dense = 170, .sparse = 20, .longest = 16}, random);
  if (argc > 1 && std::string(argv[1]) == "serve") {
    Serve(batch);
    return 0;
  }
  uint64_t frame_bytes = 0;
  {
    FrameEncoder encoder;
    frame_bytes = encoder.Encode(batch).back().bytes();
  }
  const int count = static_cast<int>(1024 * kMiB / frame_bytes);
  const uint64_t total = frame_bytes * static_cast<uint64_t>(count);
  const double gigabytes = static_cast<double>(total) / 1e9;
  fmt::print("frames of {:.2f} MiB, {:.2f} GB a run, {} pairs\n",
             static_cast<double>(frame_bytes) / kMiB, gigabytes, pairs);
  const auto raw = [&] { return RawSocket(total, frame_bytes); };
  const auto copy = [&] { return Memcpy(total, frame_bytes); };
  Compare(
      "unix, frames checked", pairs, gigabytes, "bare socket",
      [&] { return Frames(DeliveryKind::kUnix, batch, count, false); }, raw, 0.9);
  Compare(
      "unix, decoded to tensors", pairs, gigabytes, "bare socket",
      [&] { return Frames(DeliveryKind::kUnix, batch, count, true); }, raw, 0);
  Compare(
      "shared memory, frames checked", pairs, gigabytes, "memcpy",
      [&] { return Frames(DeliveryKind::kShm, batch, count, false); }, copy, 0);
  Compare(
      "shared memory, decoded to tensors", pairs, gigabytes, "memcpy",
      [&] { return Frames(DeliveryKind::kShm, batch, count, true); }, copy, 0);
  Compare(
      "shared memory, frames checked", pairs, gigabytes, "bare socket",
      [&] { return Frames(DeliveryKind::kShm, batch, count, false); }, raw, 0);
  FrameEncoder encoder;
  const Frame frame = encoder.Encode(batch).back();
  Compare(
      "hashed while copied, CPU time", pairs, gigabytes, "before",
      [&] { return CopyFrames(frame, count, true); },
      [&] { return CopyFrames(frame, count, false); }, 0);
  for (const uint64_t mebibytes : {1, 9}) CompareNetwork(pairs, mebibytes);
  for (const bool threads : {false, true}) {
    std::vector<double> times;
    for (int i = 0; i < pairs; ++i) times.push_back(HandOff(threads));
    fmt::print("{:44} {:6.0f} ns a batch [{:.0f}, {:.0f}]{}\n",
               threads ? "hand-off to another thread through the queue"
                       : "put and take of a batch, one thread",
               Quantile(times, 0.5), Quantile(times, 0.1), Quantile(times, 0.9),
               threads ? "" : "   goal 50");
  }
  return 0;
}

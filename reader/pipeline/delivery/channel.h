// Channel: a connected stream socket, Unix or TCP, perhaps under TLS. Its calls never wait: who has
// it polls its descriptor.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "reader/pipeline/delivery/tls.h"

namespace headrace::reader {

// One thread may read while another one writes.
class Channel {
 public:
  // Takes the descriptor; `tls`, if any, has agreed.
  explicit Channel(int fd, std::unique_ptr<TlsSession> tls = nullptr);
  Channel(Channel&& other) noexcept;
  Channel& operator=(Channel&&) = delete;
  ~Channel();

  int fd() const { return fd_; }
  bool is_encrypted() const { return tls_ != nullptr; }
  // As of TlsSession; nothing and false without TLS.
  void Trust();
  bool is_broken() const { return tls_ && tls_->is_broken(); }
  // The bytes moved; 0: the other side is gone, or broke; -1: not now. Bytes that Write could not
  // take are to come next, as they were; more may follow them.
  ptrdiff_t Read(std::span<uint8_t> bytes);
  ptrdiff_t Write(std::span<const uint8_t> bytes);

 private:
  int fd_;
  std::unique_ptr<TlsSession> tls_;
};

}  // namespace headrace::reader

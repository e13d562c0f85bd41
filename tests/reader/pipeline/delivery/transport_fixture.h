// What tests of deliveries in one machine share: an address of each kind in a folder of its own.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "reader/pipeline/delivery/connect.h"

namespace headrace::reader {

class Transport : public testing::TestWithParam<DeliveryKind> {
 protected:
  Transport()
      : folder_(std::filesystem::temp_directory_path() / ("hr" + std::to_string(getpid()))) {
    std::filesystem::create_directory(folder_);
    address_ = {GetParam(), (folder_ / "s").string()};
  }
  ~Transport() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<Receiver> Accept(Listener* listener) {
    return listener->Accept([&] { return MonotonicNs() > deadline_; });
  }

  std::filesystem::path folder_;
  DeliveryAddress address_;
  int64_t deadline_ = MonotonicNs() + 600'000'000'000;  // no test may hang
};

// The text of the error that `act` ends with, which must have this code.
inline std::string TransportErrorOf(const std::function<void()>& act,
                                    ExitCode code = ExitCode::kFailure) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "no error";
}

}  // namespace headrace::reader

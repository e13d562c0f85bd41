// Reads bytes of a file through a named device of limited rate.
#include <algorithm>
#include <any>
#include <cstring>
#include <memory>
#include <string>

#include "base/buffer.h"
#include "base/error.h"
#include "base/file.h"
#include "reader/pipeline/operators/synthetic.h"

namespace headrace::reader {
namespace {

struct ReadKeys {
  Cost cost;
  std::string device;  // shared by all operators that name it
  double bytes_per_second = 0;
  std::string file;  // absolute, or empty
};

std::any ParseRead(const SpecValue& table, const std::string& kind) {
  ReadKeys keys;
  keys.cost = ParseSize(table, kind);
  const std::string name = table.Text("name", "");
  keys.device = table.Text("device", name.empty() ? "device" : name);
  if (!table["rate"]) table.Fail("read needs a rate such as rate = \"200MB/s\"");
  keys.bytes_per_second = table.Rate("rate", 0);
  const std::string file = table.Text("file", "");
  if (!file.empty()) keys.file = table.Path(file);
  return keys;
}

class ReadOperator final : public SyntheticOperator {
 public:
  ReadOperator(const OperatorPlan& plan, const OperatorContext& context)
      : ReadOperator(std::any_cast<const ReadKeys&>(plan.spec.keys), plan, context) {}

 private:
  ReadOperator(const ReadKeys& keys, const OperatorPlan& plan, const OperatorContext& context)
      : SyntheticOperator(keys.cost, plan, context),
        device_(context.resources->Device(keys.device, keys.bytes_per_second)) {
    if (keys.file.empty()) return;
    file_ = std::make_unique<File>(keys.file);
    if (file_->size() == 0) throw Error(ExitCode::kBadData, "0 bytes, nothing to read", keys.file);
  }

  void Work(double amount, Element* element) override {
    const auto bytes = static_cast<uint64_t>(amount);
    if (!device_->Serve(bytes, stop())) return;
    // The bytes are really moved: from the file, from its start again and again, or from zeroed
    // memory without one.
    memory_.Resize(std::min<uint64_t>(bytes, 1 << 20));
    for (uint64_t done = 0; done < bytes;) {
      uint64_t part = std::min<uint64_t>(bytes - done, memory_.size());
      if (file_) {
        const uint64_t at = (element->seed + done) % file_->size();
        part = std::min(part, file_->size() - at);
        file_->ReadAt(at, memory_.span().first(part));
      } else {
        std::memset(memory_.data(), static_cast<int>(done), part);
      }
      done += part;
    }
    element->bytes = bytes;
  }
  SharedDevice* device_;
  std::unique_ptr<File> file_;
  Buffer memory_;
};

HR_OPERATOR("read", ReadOperator,
            {.order = 1040,
             .keys = {"cv", "distribution", "file", "rate", "device"},
             .needs = "a cost: write { read = \"...\" }",
             .parse = ParseRead});

}  // namespace
}  // namespace headrace::reader

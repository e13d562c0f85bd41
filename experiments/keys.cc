#include "experiments/keys.h"

namespace headrace::experiments {

reader::dwrf::OpenOptions OpenWithKeys(const std::string& place) {
  reader::dwrf::OpenOptions options;
  if (!place.empty()) options.keys = reader::dwrf::KeyRing::Load(place);
  return options;
}

}  // namespace headrace::experiments

#include "reader/dwrf/crypto/decrypt.h"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <memory>

#include "base/check.h"
#include "base/error.h"
#include "reader/dwrf/chunk.h"
#include "reader/dwrf/crypto/file_keys.h"

namespace headrace::reader::dwrf {
namespace {

constexpr size_t kStreamAlignment = 64;

// One group of one stripe.
struct OpenGroup {
  std::shared_ptr<const DataKey> key;
  std::unique_ptr<ChunkCipher> cipher;
};

class StripeDecrypter {
 public:
  explicit StripeDecrypter(const StripePlan& plan) : plan_(plan) {}

  // Writes the plain form of a stream, no longer than the stored one; returns its length. It is
  // framed as other streams of the file are.
  size_t Stream(uint32_t index, std::span<const uint8_t> stored, uint8_t* out) {
    const StreamInfo& stream = plan_.streams[index];
    OpenGroup& group = Open(stream.group - 1);
    ChunkPlace place = PlaceOf(plan_.stripe_index, stream);
    const bool keep_frames = plan_.compression != CompressionKind::kNone;
    uint8_t* at = out;
    for (uint64_t position = 0; position < stored.size();) {
      const uint64_t left = stored.size() - position;
      if (left < kChunkHeaderBytes) Damaged(index, position, "a chunk header is cut short");
      const ChunkHeader header = ParseChunkHeader(stored.data() + position);
      if (header.length > left - kChunkHeaderBytes || header.length < group.cipher->tag_bytes())
        Damaged(index, position,
                fmt::format("a chunk claims {} bytes, {} are left", header.length,
                            left - kChunkHeaderBytes));
      if (!keep_frames && !header.original)
        Damaged(index, position, "a compressed chunk in a file without compression");
      place.position = static_cast<uint32_t>(position);
      place.original = header.original;
      uint8_t* plain = keep_frames ? at + kChunkHeaderBytes : at;
      const auto payload = stored.subspan(position + kChunkHeaderBytes, header.length);
      if (!group.cipher->Decrypt(place, payload, plain))
        Damaged(index, position, "an encrypted chunk is not as it was written");
      const size_t size = payload.size() - group.cipher->tag_bytes();
      if (keep_frames) {
        const size_t word = size << 1 | (header.original ? 1 : 0);
        for (int i = 0; i < 3; ++i) at[i] = static_cast<uint8_t>(word >> (8 * i));
      }
      at = plain + size;
      position += kChunkHeaderBytes + header.length;
    }
    return static_cast<size_t>(at - out);
  }

 private:
  [[noreturn]] void Damaged(uint32_t index, uint64_t position, const std::string& what) const {
    throw Error(ExitCode::kBadData, what,
                fmt::format("{}, byte {} of the stream", plan_.Where(index), position),
                "the file is damaged or was tampered with");
  }
  OpenGroup& Open(uint32_t group) {
    OpenGroup& open = groups_[group];
    if (open.cipher) return open;
    if (plan_.keys != nullptr) open.key = plan_.keys->Key(plan_.stripe_index, group);
    HR_CHECK(open.key != nullptr, "a stream was planned without its key");
    open.cipher = std::make_unique<ChunkCipher>(open.key->cipher, open.key->key);
    return open;
  }

  const StripePlan& plan_;
  std::map<uint32_t, OpenGroup> groups_;
};

size_t Aligned(size_t size) {
  return (size + kStreamAlignment - 1) / kStreamAlignment * kStreamAlignment;
}

}  // namespace

uint64_t EncryptedBytes(const FetchedStripe& fetched) {
  uint64_t bytes = 0;
  for (const StreamInfo& stream : fetched.plan.streams)
    if (stream.group != 0) bytes += stream.length;
  return bytes;
}

FetchedStripe Decrypt(FetchedStripe&& fetched) {
  FetchedStripe out = std::move(fetched);
  std::vector<StreamInfo>& streams = out.plan.streams;
  size_t room = 0;
  for (const StreamInfo& stream : streams)
    if (stream.group != 0) room += Aligned(stream.length);
  if (room == 0) {
    for (StreamInfo& stream : streams) stream.group = 0;
    return out;
  }
  out.decrypted = StripeBuffers().Take(room);
  StripeDecrypter decrypter(out.plan);
  size_t end = 0;
  for (uint32_t i = 0; i < streams.size(); ++i) {
    if (streams[i].group == 0) continue;
    uint8_t* place = out.decrypted->data() + end;
    const size_t size = decrypter.Stream(i, out.stored[i], place);
    out.stored[i] = {place, size};
    end += Aligned(size);
  }
  out.decrypted->Resize(end);
  for (uint32_t i = 0; i < streams.size(); ++i) {
    if (streams[i].group == 0) continue;
    streams[i].group = 0;
    streams[i].length = out.stored[i].size();
  }
  return out;
}

}  // namespace headrace::reader::dwrf

// Narrowing: 64-bit integers without their upper halves where these are zero, as most ids of a
// table have them. By groups of 64: one that fits 32 bits as a whole is stored so.
//
//   a bit for each group, set if it is narrow, in whole u64 | the groups | bytes behind the last
//   whole integer
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace headrace::reader {

// The most bytes that Narrow gives for `plain` bytes.
constexpr size_t NarrowRoom(size_t plain) { return plain; }
// `plain`, which may hold anything, narrowed into `to`, which has NarrowRoom for it. The bytes put
// there; 0 where it would not shrink by an eighth.
size_t Narrow(std::span<const uint8_t> plain, uint8_t* to);

// The inverse. False for bytes that are not `plain.size()` bytes narrowed; `plain` then holds
// anything.
bool Widen(std::span<const uint8_t> narrowed, std::span<uint8_t> plain);

}  // namespace headrace::reader

// Decrypt: the step of the fast path between Fetch and Decompress, for stripes with encrypted
// streams (feature_stream.h has the other steps).
#pragma once
#include "reader/fetch/fetch.h"

namespace headrace::reader::dwrf {

// Puts the plain form of each encrypted stream into a buffer of its own; streams that are not
// encrypted stay where they are. A stripe without any is passed on as it is. Afterwards every
// stream of the plan has group 0 and the length of its plain form. Throws Error kBadData for a
// chunk that is damaged or, under GCM, was changed, naming stripe, stream and column.
FetchedStripe Decrypt(FetchedStripe&& fetched);

// Stored bytes of the encrypted streams: what Decrypt has to do.
uint64_t EncryptedBytes(const FetchedStripe& fetched);

}  // namespace headrace::reader::dwrf

// Messages between the dispatcher of a job, its workers and its clients, and their wire form.
//
//   u32 magic "HRSV" | u16 version | u16 kind | u32 bytes of the body | u32 0 | u64 XXH3-64 of the
//   body, seeded by the first 16 bytes | body
//
// The body has the message's fields in the order in which they stand here: integers little-endian
// of their size, texts and lists with a u32 count before them. There is no protobuf in it: the
// client lives in trainers that bring a protobuf of their own. What is read is checked before use
// and allocates no more than a small multiple of the bytes that are there.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "reader/pipeline/fingerprint.h"
#include "reader/service/lease.h"

namespace headrace::reader::service {

constexpr uint32_t kMessageMagic = 0x56535248;  // "HRSV" in memory
constexpr uint16_t kMessageVersion = 10;        // 10: splits given back
constexpr uint64_t kMessageHeaderBytes = 24;
constexpr uint64_t kMaxMessageBytes = uint64_t{256} << 20;
// Of a rank's address, and of the name of a host and process: a dispatcher tells every worker those
// of all ranks, and keeps some of each worker's.
constexpr uint64_t kMostNameBytes = 300;
constexpr uint64_t kMostReasonBytes = 4 << 10;  // why a worker failed: more is cut

// Client -> dispatcher: this process is rank `rank`, and has the rows of `states`.
struct Join {
  uint32_t rank = 0, ranks = 1;
  uint64_t instance = 0;    // of the process, random
  uint64_t number = 0;      // of this Join among those of the process
  uint64_t generation = 0;  // 0: fresh, has been in no term
  Term term = 0;            // the last it was in
  // Of the moment at which the ranks' states were saved together: those of one generation must
  // agree. 0: the rank's state stands for itself.
  uint64_t checkpoint = 0;
  std::string address;              // where it takes batches
  std::string host;                 // and process, for messages
  std::vector<std::string> states;  // checkpoints (delivery/checkpoint.h); none: no rows yet
};

// Dispatcher -> client: these ranks are not there yet.
struct Waiting {
  std::vector<uint32_t> missing;
};

// So many splits, one behind the other, of as many rows each.
struct SplitRun {
  uint64_t rows = 0, splits = 0;
  bool operator==(const SplitRun&) const = default;
};
constexpr uint64_t kMostSplits = uint64_t{1} << 24;  // of a job's table
// Of a message, so that what waits for a rank takes little, whatever the table: with those of as
// many ranks as a job can have it fits into what may wait for all (ControlLimits).
constexpr uint64_t kMostSplitRuns = 1000;

// Dispatcher -> client: the term begins, or goes on for a rank that joined again.
struct Started {
  Term term = 0;
  uint64_t generation = 0, instance = 0, number = 0;  // the last two: of the Join it answers
  uint64_t batch_rows = 0, epochs = 0, unit_rows = 0;
  uint32_t in_file_order = 0;  // 1: unit n of the table's order is of rank n mod ranks
  Fingerprint fingerprint;
  uint64_t features = 0;             // that units have (unit_check.h)
  uint64_t splits = 0;               // of the table
  std::vector<SplitRun> split_runs;  // the first of them; none for a rank that has them
};

// Client -> dispatcher: the splits of the table from this one on. It asks for the next when it has
// these.
struct AskSplits {
  Term term = 0;
  uint64_t first = 0;
};

// Dispatcher -> client: at least one.
struct Splits {
  Term term = 0;
  uint64_t first = 0;
  std::vector<SplitRun> runs;
};

// Dispatcher -> client: the term is over before all was delivered. Join again.
struct Again {};

// Dispatcher -> client: another process has its place, or its generation is over.
struct Superseded {
  uint64_t instance = 0;
  std::string reason;
};

// Dispatcher -> client or worker: not with this job.
struct Refused {
  uint32_t code = 1;  // ExitCode
  std::string reason, fix;
};

// Client -> dispatcher: rows admitted since the last Report of the term, and how it fares.
struct Report {
  uint64_t instance = 0;
  Term term = 0;
  std::vector<RowSpan> admitted;
  uint64_t delivered_rows = 0, delivered_batches = 0;  // by this process
  uint64_t wait_ns = 0, compute_ns = 0;
  // All that it has of the epochs before this one, which all ranks have admitted (EpochsOver), is
  // durable: delivered, and in its checkpoint on the disk. Where it writes none, delivered.
  uint64_t durable_epochs = 0;
  uint32_t writes_checkpoints = 0;  // 1: it does
  static constexpr uint32_t kReading = 0;
  static constexpr uint32_t kHeardEnded = 1;
  static constexpr uint32_t kFinished = 2;  // and all that was admitted is durable
  uint32_t progress = kReading;
};

// Dispatcher -> client: all rows of all epochs are admitted by the ranks. Bye follows once all of
// them have heard it: a rank that left before could be waited for by another one, in a new term.
struct Ended {
  Term term = 0;
};

// Dispatcher -> client: all rows of the epochs before `admitted_epochs` are admitted by the ranks.
// Of those before `durable_epochs` every rank's own are durable (Report): nobody needs to remember
// which these were.
struct EpochsOver {
  Term term = 0;
  uint64_t admitted_epochs = 0, durable_epochs = 0;
};

// Worker -> dispatcher.
struct Register {
  uint64_t instance = 0;
  int64_t pid = 0;
  std::string host;
  Term term = 0;  // the highest it has heard of
};

// Dispatcher -> worker: what to read, for whom. A higher term than the last makes all leases void.
struct Session {
  Term term = 0;
  std::string path, text, folder;  // of the pipeline file
  std::vector<std::pair<std::string, std::string>> settings;
  Fingerprint fingerprint;
  uint64_t features = 0, unit_rows = 0;
  std::vector<std::string> clients;  // addresses, by rank
  bool operator==(const Session&) const = default;
};

// Worker -> dispatcher: has room for `count` leases more. Without one free, the answer waits.
struct Ask {
  Term term = 0;
  uint32_t count = 0;
};

// Dispatcher -> worker: make these rows of the split.
struct Lease {
  Term term = 0;
  uint64_t epoch = 0, split = 0;
  Deal deal;
  std::vector<RowRange> wanted;  // ascending, not empty
};

struct EpochSplit {
  uint64_t epoch = 0, split = 0;
  bool operator==(const EpochSplit&) const = default;
};

// Worker -> dispatcher, which drains it: leases of which it has made no row, and will send none.
struct GiveBack {
  Term term = 0;
  std::vector<EpochSplit> splits;
};

// Worker -> dispatcher: the connection to this rank broke, with what was on it.
struct Cut {
  Term term = 0;
  uint32_t rank = 0;
};

// Worker -> dispatcher: cannot go on.
struct Failed {
  uint32_t code = 1;
  std::string reason;
};

// Worker -> dispatcher, once a second: it lives.
struct Alive {
  uint64_t sent_units = 0;
  // Of the process so far: it had no lease; a unit waited for room in the lane to its rank.
  uint64_t idle_ns = 0, no_room_ns = 0;
  // Rows in the units that it has made, and for how long the busiest of its pipeline's stages
  // worked: while a unit waits for room, stages before it still fill their queues.
  uint64_t made_rows = 0, busy_ns = 0;
};

// Dispatcher -> worker: asks for no more and gives back splits of which it has made no row; Bye
// once its leases are done. Worker -> dispatcher: wants to leave, and be drained.
struct Drain {};
// Dispatcher -> worker or client: may go.
struct Bye {};

// Of a command to the dispatcher: `status`, `drain WORKER`, `end`; and the answer, a JSON object
// for status.
struct Command {
  std::string verb, argument;
};
struct Answer {
  uint32_t code = 0;
  std::string text;
};

// Worker or client -> dispatcher: what it measured of itself, as bytes that the service only
// carries (measured.h). Sent again on every connection until it is kept.
struct Measured {
  uint64_t instance = 0;  // of the process
  uint64_t number = 0;    // of this message among those of the process, from 1
  int64_t sent_realtime_ns = 0;
  std::string bytes;  // at most kMaxMeasuredBytes
};
constexpr uint64_t kMaxMeasuredBytes = 1 << 20;
// Dispatcher -> worker or client: that Measured is stored, or will never be.
struct Kept {
  uint64_t instance = 0, number = 0;
};

// Of a command to a dispatcher without a job: this one. Its pipeline file is one that the
// dispatcher can read. Answered by Answer.
struct Submit {
  std::string pipeline;
  std::vector<std::pair<std::string, std::string>> settings;
  uint32_t ranks = 1, mode = 0;  // Mode
};

// Of a pool (pool.h): so many workers for the job whose dispatcher is met there (job_place.h).
struct WorkersAt {
  std::string place;
  uint32_t workers = 0;
  bool operator==(const WorkersAt&) const = default;
};
// Machine -> pool, at first and whenever it changes: it lends so many workers, and runs these.
// Alive follows once a second, and Drain where it wants to leave.
struct Offer {
  uint64_t instance = 0;  // of the process, random
  std::string machine;
  uint32_t workers = 0;
  std::vector<WorkersAt> running;
};
// Pool -> machine: run these, and let all others finish what they have and end.
struct Assign {
  std::vector<WorkersAt> workers;
};
// Dispatcher of a job -> pool, at first and whenever it changes: so many workers would be of use.
// Bye follows once it needs none any more.
struct Want {
  std::string job, place;
  std::string machine;  // where alone the place can be reached; "": from everywhere
  // The same for every dispatcher of the job, whatever its place.
  std::string origin;
  uint32_t weight = 1, workers = 0;
  // Instead of a number: as many as the dispatcher before this one wanted.
  static constexpr uint32_t kAsBefore = UINT32_MAX;
};
// Pool -> dispatcher of a job: has so many workers now, of all that there are.
struct Grant {
  uint32_t workers = 0, of = 0;
  bool operator==(const Grant&) const = default;
};

// The kind on the wire is the place here, from 1.
using Message =
    std::variant<Join, Waiting, Started, Again, Superseded, Refused, Report, Ended, Register,
                 Session, Ask, Lease, Cut, Failed, Alive, Drain, Bye, Command, Answer, Measured,
                 Kept, Submit, EpochsOver, AskSplits, Splits, Offer, Assign, Want, Grant, GiveBack>;

// The message on the wire. Throws Error kResources when its body is longer than kMaxMessageBytes.
std::string Serialize(const Message& message);

// Bytes of a whole message, header included, from its first kMessageHeaderBytes. Throws Error
// kBadData when they are not a header of this version.
uint64_t MessageBytes(std::span<const uint8_t> header);
// Exactly one message. Throws Error kBadData for anything that Serialize did not make.
Message ParseMessage(std::span<const uint8_t> bytes);

}  // namespace headrace::reader::service

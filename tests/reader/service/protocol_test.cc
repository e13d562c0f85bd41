// The service's rules with its real state machines: rows exactly once whatever dies in whatever
// order, and each rule seen to matter.
#include <gtest/gtest.h>

#include <cinttypes>
#include <cstdlib>
#include <map>

#include "tests/reader/service/service_world.h"
#include "tests/seed.h"

namespace headrace::reader::service {
namespace {

// HEADRACE_SERVICE_RUNS=100000 for the acceptance test of the design.
uint64_t Runs(uint64_t usual) {
  const char* text = std::getenv("HEADRACE_SERVICE_RUNS");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : usual;
}

struct Tally {
  uint64_t runs = 0, faults = 0, steps = 0;
  uint64_t have = 0, stale = 0, waits = 0, voided = 0, superseded = 0, generations = 0,
           timeouts = 0, closed = 0, given_back = 0, drained = 0;
  std::map<std::string, uint64_t> failures;
};

Tally Play(Mutation mutation, uint64_t runs, uint64_t seed, bool ends_at_first) {
  Tally tally;
  for (uint64_t run = 0; run < runs; ++run) {
    WorldOptions options;
    options.seed = seed * 1'000'003 + run;
    options.mutation = mutation;
    options.mode = run % 2 == 0 ? Mode::kLockstep : Mode::kIndependent;
    const WorldResult result = ServiceWorld(options).Run();
    ++tally.runs;
    tally.faults += static_cast<uint64_t>(result.faults);
    tally.steps += result.steps;
    tally.have += result.have;
    tally.stale += result.stale;
    tally.waits += result.waits;
    tally.voided += result.voided;
    tally.superseded += result.superseded;
    tally.generations += result.generations;
    tally.timeouts += result.timeouts;
    tally.closed += result.closed;
    tally.given_back += result.given_back;
    tally.drained += result.drained;
    if (result.what.empty()) continue;
    if (++tally.failures[result.what] == 1)
      std::printf("run %" PRIu64 " (world seed %" PRIu64 "): %s\n", run, options.seed,
                  result.what.c_str());
    if (ends_at_first) break;
  }
  return tally;
}

TEST(ServiceProtocol, EachRowComesOnceWhateverDies) {
  const uint64_t seed = TestSeed();
  const Tally tally = Play(Mutation::kNone, Runs(1000), seed, false);
  std::printf("%" PRIu64 " runs, %" PRIu64 " faults, %" PRIu64
              " steps; units that a client had %" PRIu64 ", of an older term %" PRIu64
              ", before a Started %" PRIu64 ", of a void lease %" PRIu64
              "; ranks superseded %" PRIu64 ", generations %" PRIu64 ", left alone %" PRIu64
              "; states with closed epochs %" PRIu64 "; splits given back %" PRIu64 " by %" PRIu64
              " workers drained\n",
              tally.runs, tally.faults, tally.steps, tally.have, tally.stale, tally.waits,
              tally.voided, tally.superseded, tally.generations, tally.timeouts, tally.closed,
              tally.given_back, tally.drained);
  EXPECT_EQ(tally.faults, 14 * tally.runs);
  // What the rules are for did happen.
  for (const uint64_t times : {tally.have, tally.stale, tally.waits, tally.voided, tally.superseded,
                               tally.closed, tally.given_back, tally.drained})
    EXPECT_GT(times, 0u);
  EXPECT_GT(tally.generations, tally.runs);
  EXPECT_LT(tally.timeouts, 1 + tally.runs / 100) << "ranks wait in vain too often";
  for (const auto& [what, runs] : tally.failures)
    ADD_FAILURE() << what << " in " << runs << " of " << tally.runs
                  << " runs, HEADRACE_SEED=" << seed;
}

// Each rule left out is found by the same runs.
TEST(ServiceProtocol, EveryRuleLeftOutIsCaught) {
  const uint64_t seed = TestSeed();
  for (const auto& [mutation, name] :
       {std::pair{Mutation::kAnyTerm, "frames of any term are admitted"},
        {Mutation::kNoBarrier, "a term starts without all ledgers"},
        {Mutation::kNoLedger, "clients do not look into their ledger"},
        {Mutation::kNewDeal, "a split leased again gets a new deal"},
        {Mutation::kForgets, "epochs are closed before checkpoints have them"}}) {
    const Tally tally = Play(mutation, 2000, seed, true);
    EXPECT_FALSE(tally.failures.empty()) << name << ", HEADRACE_SEED=" << seed;
    std::printf("%s: caught by run %" PRIu64 "\n", name, tally.runs);
  }
}

}  // namespace
}  // namespace headrace::reader::service

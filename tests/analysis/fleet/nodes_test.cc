// Files of nodes: what is read, and that every mistake is one line with file, line, what is wrong
// and what to write.
#include "analysis/fleet/nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"

namespace headrace::analysis {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kLeast = "[[node]]\nname = \"a\"\nprice_per_hour = 1\ncores = 4\n";

TEST(Nodes, LeastFileHasDefaults) {
  const NodesFile nodes = ParseNodes(kLeast, "n.toml");
  ASSERT_EQ(nodes.types.size(), 1u);
  EXPECT_EQ(nodes.types[0].name, "a");
  EXPECT_EQ(nodes.types[0].cores, 4);
  EXPECT_FALSE(nodes.types[0].speed);
  EXPECT_FALSE(nodes.types[0].nic_bytes_per_s);
  EXPECT_FALSE(nodes.types[0].max_count);
  EXPECT_FALSE(nodes.storage.bytes_per_s);
  EXPECT_FALSE(nodes.clients.demand_rows_per_s);
  EXPECT_FALSE(nodes.dispatcher.requests_per_s);
  EXPECT_EQ(nodes.headroom, kDefaultHeadroom);
  EXPECT_EQ(nodes.dispatcher.in_flight, kDefaultInFlight);
}

TEST(Nodes, EveryKeyIsRead) {
  const NodesFile nodes = ParseNodes(
      "currency = \"EUR\"\nheadroom = 0.2\n"
      "[[node]]\nname = \"a\"\nprice_per_hour = 0.5\ncores = 18\nspeed = 1.5\ncpu_model = \"X\"\n"
      "speed_of = { decode = 2, fetch = 0.5 }\nmemory = \"64GiB\"\nmemory_bandwidth = \"75GB/s\"\n"
      "nic = \"12.5Gbit/s\"\ndisk = \"500MB/s\"\nwatts_idle = 100\nwatts_peak = 250\nmax = 40\n"
      "have = 3\nrack = 20\n"
      "[storage]\nbandwidth = \"40GB/s\"\niops = 200000\nlatency = \"5ms\"\n"
      "[clients]\ncount = 16\nnic = \"100 Gbit/s\"\ndemand = \"2.5e5 rows/s\"\nbuffer = 9\n"
      "[dispatcher]\nrequests_per_second = 5e4\nlatency = \"300us\"\nin_flight = 4\n",
      "n.toml");
  EXPECT_EQ(nodes.currency, "EUR");
  EXPECT_EQ(nodes.headroom, 0.2);
  const NodeType& type = nodes.types.at(0);
  EXPECT_EQ(type.speed, 1.5);
  EXPECT_EQ(type.cpu_model, "X");
  EXPECT_THAT(type.speed_of, testing::ElementsAre(std::pair<std::string, double>("decode", 2),
                                                  std::pair<std::string, double>("fetch", 0.5)));
  EXPECT_EQ(type.memory_bytes, 64.0 * (1 << 30));
  EXPECT_EQ(type.memory_bandwidth_bytes_per_s, 75e9);
  EXPECT_EQ(type.nic_bytes_per_s, 12.5e9 / 8);
  EXPECT_EQ(type.disk_bytes_per_s, 500e6);
  EXPECT_EQ(type.watts_idle, 100);
  EXPECT_EQ(type.watts_peak, 250);
  EXPECT_EQ(type.max_count, 40);
  EXPECT_EQ(type.have, 3);
  EXPECT_EQ(type.rack, 20);
  EXPECT_EQ(nodes.storage.bytes_per_s, 40e9);
  EXPECT_EQ(nodes.storage.requests_per_s, 200000);
  EXPECT_DOUBLE_EQ(nodes.storage.latency_s, 0.005);
  EXPECT_EQ(nodes.clients.count, 16);
  EXPECT_EQ(nodes.clients.nic_bytes_per_s, 12.5e9);
  EXPECT_EQ(nodes.clients.demand_rows_per_s, 2.5e5);
  EXPECT_EQ(nodes.clients.buffer_batches, 9);
  EXPECT_EQ(nodes.dispatcher.requests_per_s, 5e4);
  EXPECT_DOUBLE_EQ(nodes.dispatcher.latency_s, 300e-6);
  EXPECT_EQ(nodes.dispatcher.in_flight, 4);
}

TEST(Nodes, TheExampleIsRead) {
  const NodesFile nodes = LoadNodes(std::string(HEADRACE_SOURCE_DIR) + "/docs/examples/nodes.toml");
  EXPECT_GE(nodes.types.size(), 2u);
  EXPECT_TRUE(nodes.storage.bytes_per_s && nodes.clients.demand_rows_per_s);
}

TEST(Nodes, LatencyMayBeAMinute) {
  const NodesFile nodes =
      ParseNodes(std::string(kLeast) + "[storage]\nlatency = \"60s\"\n", "n.toml");
  EXPECT_EQ(nodes.storage.latency_s, 60);
}

struct Mistake {
  const char* name;
  std::string text;   // after kLeast, unless it begins with '!'
  const char* place;  // ":LINE:COLUMN:" or ":" without a line
  const char* what;
  const char* fix;
};

std::string Many(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

// kLeast has four lines: what follows begins on the fifth.
const Mistake kMistakes[] = {
    {"empty", "!", ":", "no type of node", "write a [[node]]"},
    {"no list", "!node = []", ":", "no type of node", "write a [[node]]"},
    {"syntax", "!currency =", ":1:", "", "see docs/examples/nodes.toml"},
    {"syntax in a table", "cores", ":5:6:", "", "see docs/examples/nodes.toml"},
    {"key twice", "cores = 5", ":5:9:", "cores", "see docs/examples/nodes.toml"},
    {"unknown section", "[storge]", ":5:2:", "unknown key 'storge' in the file", "'storage'"},
    {"unknown top key", "!hedroom = 0.1", ":1:1:", "unknown key 'hedroom'", "'headroom'"},
    {"unknown node key", "core = 5", ":5:1:", "unknown key 'core' in [[node]]", "'cores'"},
    {"far node key", "qqqq = 5", ":5:1:", "unknown key 'qqqq'", "valid keys: name, price_per_hour"},
    {"unknown storage key", "[storage]\nbandwith = \"1GB/s\"",
     ":6:1:", "unknown key 'bandwith' in [storage]", "'bandwidth'"},
    {"unknown client key", "[clients]\nnics = 1", ":6:1:", "unknown key 'nics' in [clients]",
     "'nic'"},
    {"unknown dispatcher key", "[dispatcher]\nlatencey = \"1ms\"",
     ":6:1:", "unknown key 'latencey' in [dispatcher]", "'latency'"},
    {"node no list", "!node = 3", ":1:8:", "'node' is not a list", "write [[node]]"},
    {"node a table", "![node]\nname = \"a\"", ":1:1:", "'node' is not a list", "write [[node]]"},
    {"node list of numbers", "!node = [1]", ":1:8:", "'node' is not a list", "write [[node]]"},
    {"no name", "!\n[[node]]\nprice_per_hour = 1\ncores = 4", ":2:", "this [[node]] has no 'name'",
     "every type needs"},
    {"no price", "!\n[[node]]\nname = \"a\"\ncores = 4",
     ":2:", "this [[node]] has no 'price_per_hour'", "every type needs"},
    {"no cores", "[[node]]\nname = \"b\"\nprice_per_hour = 4",
     ":5:", "this [[node]] has no 'cores'", "every type needs"},
    {"same name", "[[node]]\nname = \"a\"\nprice_per_hour = 4\ncores = 1",
     ":5:", "two types are named 'a'", "name them apart"},
    {"name a number", "!\n[[node]]\nname = 1\nprice_per_hour = 1\ncores = 4",
     ":3:8:", "'name' is not a text", "write name = \"...\""},
    {"empty name", "!\n[[node]]\nname = \"\"\nprice_per_hour = 1\ncores = 4",
     ":3:8:", "'name' has 0 characters", "give it 1 to 60"},
    {"long name", "!\n[[node]]\nname = \"" + Many("x", 61) + "\"\nprice_per_hour = 1\ncores = 4",
     ":3:8:", "'name' has 61 characters", "give it 1 to 60"},
    {"price a text", "!\n[[node]]\nname = \"a\"\nprice_per_hour = \"1\"\ncores = 4",
     ":4:18:", "'price_per_hour' is not a number", "from 0 to 1e+06"},
    {"negative price", "!\n[[node]]\nname = \"a\"\nprice_per_hour = -1\ncores = 4",
     ":4:18:", "'price_per_hour' is -1", "from 0 to 1e+06"},
    {"endless price", "!\n[[node]]\nname = \"a\"\nprice_per_hour = inf\ncores = 4",
     ":4:18:", "'price_per_hour' is", "from 0 to 1e+06"},
    {"price not a number", "!\n[[node]]\nname = \"a\"\nprice_per_hour = nan\ncores = 4",
     ":4:18:", "'price_per_hour' is nan", "from 0 to 1e+06"},
    {"no cores at all", "!\n[[node]]\nname = \"a\"\nprice_per_hour = 1\ncores = 0",
     ":5:9:", "'cores' is 0", "from 0.01 to 4096"},
    {"speed of nothing", "speed = 0", ":5:9:", "'speed' is 0", "from 0.01 to 100"},
    {"speed a flag", "speed = true", ":5:9:", "'speed' is not a number", "from 0.01 to 100"},
    {"speed_of a number", "speed_of = 2", ":5:12:", "'speed_of' is not a section",
     "write [speed_of]"},
    {"operator's speed a text", "speed_of = { decode = \"2\" }",
     ":5:23:", "'decode' is not a number", "from 0.01 to 100"},
    {"memory without unit", "memory = 64", ":5:10:", "'memory' has no unit", "\"64GiB\""},
    {"memory of nothing", "memory = \"0GiB\"", ":5:10:", "'memory' is '0GiB'", "\"64GiB\""},
    {"memory nonsense", "memory = \"much\"", ":5:10:", "'memory' is 'much'", "\"64GiB\""},
    {"nic without time", "nic = \"10GB\"", ":5:7:", "'nic' is '10GB'", "12.5Gbit/s"},
    {"nic a number", "nic = 10", ":5:7:", "'nic' has no unit", "12.5Gbit/s"},
    {"nic nonsense", "nic = \"fastbit/s\"", ":5:7:", "'nic' is 'fastbit/s'", "12.5Gbit/s"},
    {"one of the watts", "watts_idle = 3", ":1:", "only one of watts_idle and watts_peak",
     "give both, or neither"},
    {"watts swapped", "watts_idle = 3\nwatts_peak = 2",
     ":6:14:", "'watts_peak' is less than 'watts_idle'", "swap them"},
    {"max a fraction", "max = 2.5", ":5:7:", "'max' is not a whole number", "from 0 to 100000"},
    {"max too many", "max = 100001", ":5:7:", "'max' is 100001", "from 0 to 100000"},
    {"rack of none", "rack = 0", ":5:8:", "'rack' is 0", "from 1 to 100000"},
    {"have less than none", "have = -1", ":5:8:", "'have' is -1", "from 0 to 100000"},
    {"headroom of all", "!headroom = 1\n" + std::string(kLeast), ":1:12:", "'headroom' is 1",
     "from 0 to 0.9"},
    {"currency", "!currency = 1\n" + std::string(kLeast), ":1:12:", "'currency' is not a text",
     "write currency"},
    {"storage a number", "!storage = 1\n" + std::string(kLeast),
     ":1:11:", "'storage' is not a section", "write [storage]"},
    {"iops of none", "[storage]\niops = 0", ":6:8:", "'iops' is 0", "from 0.001"},
    {"local a text", "[storage]\nlocal = \"yes\"", ":6:9:", "'local' is not true or false",
     "write true or false"},
    {"local and shared", "[storage]\nlocal = true\niops = 5", ":5:", "no shared storage to limit",
     "'disk'"},
    {"latency without unit", "[storage]\nlatency = 5", ":6:11:", "'latency' has no unit",
     "\"300us\""},
    {"latency backwards", "[storage]\nlatency = \"-5ms\"", ":6:11:", "'latency' is '-5ms'",
     "\"300us\""},
    {"latency of an hour", "[dispatcher]\nlatency = \"1h\"", ":6:11:", "'latency' is 3600 s",
     "at most 60 s"},
    {"demand in batches", "[clients]\ndemand = \"5batches/s\"",
     ":6:10:", "'demand' is '5batches/s'", "282000rows/s"},
    {"demand of nothing", "[clients]\ndemand = \"0rows/s\"", ":6:10:", "'demand' is '0rows/s'",
     "282000rows/s"},
    {"no clients", "[clients]\ncount = 0", ":6:9:", "'count' is 0", "from 1 to 100000"},
    {"buffer of none", "[clients]\nbuffer = 0", ":6:10:", "'buffer' is 0", "from 1 to 65536"},
    {"in flight none", "[dispatcher]\nin_flight = 0", ":6:13:", "'in_flight' is 0",
     "from 1 to 65536"},
    {"requests a text", "[dispatcher]\nrequests_per_second = \"5\"",
     ":6:23:", "'requests_per_second' is not a number", "from 0.001"},
    {"key of many parts", Many("a.", 200000) + "b = 1", ":5:", "a key of more than 33 parts",
     "shorter key"},
    {"lists in lists", "a = " + Many("[", 100000), ":5:", "more than 32 brackets within each other",
     "nest less"},
    {"too many types", "!" + Many("[[node]]\n", 65), ":1:", "65 types of nodes", "at most 64"},
};

TEST(Nodes, EveryMistakeNamesItsPlaceAndItsRemedy) {
  for (const Mistake& mistake : kMistakes) {
    SCOPED_TRACE(mistake.name);
    const std::string text =
        mistake.text.starts_with('!') ? mistake.text.substr(1) : kLeast + mistake.text;
    try {
      ParseNodes(text, "n.toml");
      ADD_FAILURE() << "was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kBadData);
      EXPECT_THAT(error.what(), StartsWith(std::string("n.toml") + mistake.place));
      EXPECT_THAT(error.fact(), HasSubstr(mistake.what));
      EXPECT_THAT(error.fix(), HasSubstr(mistake.fix));
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace headrace::analysis

#include "cohort/data/iteration/state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "cohort/core/bytes/varint.h"
#include "cohort/core/error.h"
#include "cohort/ops/philox.h"

namespace cohort::data {
namespace {

using testing::HasSubstr;

IteratorState example() {
  IteratorState inner;
  inner.set_int("smallest", std::numeric_limits<int64_t>::min());
  inner.set_int("largest", std::numeric_limits<int64_t>::max());
  IteratorState state;
  state.set_int("position", 7);
  state.set_int("negative", -1);
  state.set_bytes("bytes", std::string("a\0b", 3));
  state.set_child("input", inner);
  return state;
}

// As the writer would end these bytes, so that damage gets past the checksum.
std::string with_checksum(std::string bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (unsigned char byte : bytes) hash = (hash ^ byte) * 0x100000001b3u;
  for (int i = 0; i < 8; ++i, hash >>= 8) bytes += static_cast<char>(hash & 0xff);
  return bytes;
}

TEST(IteratorState, KeepsItsEntries) {
  const IteratorState state = example();
  EXPECT_EQ(state.get_int("position"), 7);
  EXPECT_EQ(state.get_int("position", 7, 8), 7);
  EXPECT_EQ(state.get_bytes("bytes"), std::string("a\0b", 3));
  EXPECT_EQ(state.child("input").get_int("smallest"), std::numeric_limits<int64_t>::min());
}

TEST(IteratorState, RefusesWhatIsNotThere) {
  const IteratorState state = example();
  EXPECT_THROW(state.get_int("nothing"), DataLossError);
  EXPECT_THROW(state.get_int("bytes"), DataLossError);
  EXPECT_THROW(state.get_bytes("position"), DataLossError);
  EXPECT_THROW(state.child("position"), DataLossError);
  try {
    state.get_int("position", 0, 6);
    FAIL() << "7 is not in [0, 6]";
  } catch (const DataLossError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'position' is 7, not in [0, 6]"));
  }
}

TEST(IteratorState, ComesBackFromBytes) {
  const IteratorState state = example();
  const IteratorState parsed = IteratorState::parse(state.serialize());
  EXPECT_EQ(parsed, state);
  EXPECT_EQ(parsed.child("input").get_int("largest"), std::numeric_limits<int64_t>::max());
  IteratorState other = example();
  other.set_int("more", 1);
  EXPECT_FALSE(parsed == other);
}

TEST(IteratorState, EveryTruncationAndEveryFlippedBitIsNoticed) {
  const std::string bytes = example().serialize();
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_THROW(IteratorState::parse(bytes.substr(0, length)), DataLossError) << length;
  }
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] ^= static_cast<char>(1 << bit % 8);
    EXPECT_THROW(IteratorState::parse(damaged), Error) << bit;
  }
}

TEST(IteratorState, RefusesVersionsOfTheFuture) {
  std::string bytes = example().serialize();
  bytes[4] = 2;
  EXPECT_THROW(IteratorState::parse(bytes), UnimplementedError);
}

TEST(IteratorState, RandomBytesBehindAGoodChecksumEndInDataLoss) {
  internal::Philox random(1);
  const std::string good = example().serialize();
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = good.substr(0, good.size() - 8);
    if (round % 2 == 0) {
      bytes.resize(5 + random.below(40));
      for (size_t i = 5; i < bytes.size(); ++i) bytes[i] = static_cast<char>(random.below(256));
    } else {
      bytes[5 + random.below(bytes.size() - 5)] = static_cast<char>(random.below(256));
    }
    try {
      const IteratorState state = IteratorState::parse(with_checksum(bytes));
      EXPECT_EQ(IteratorState::parse(state.serialize()), state);  // some bytes do make a state
    } catch (const DataLossError&) {
    }
  }
}

// However long: what is written can be read.
TEST(IteratorState, LongChainsOfStagesComeBack) {
  IteratorState state = example();
  for (int i = 0; i < 200'000; ++i) {
    IteratorState outer;
    outer.set_child("first", std::move(state));
    state = std::move(outer);
  }
  const IteratorState parsed = IteratorState::parse(state.serialize());
  EXPECT_EQ(parsed, state);
  IteratorState changed = parsed;
  changed.set_int("more", 1);
  EXPECT_FALSE(changed == state);
}

TEST(IteratorState, DeepNestingDoesNotExhaustTheStack) {
  std::string bytes = "CDIS\x01";
  for (int i = 0; i < 1'000'000; ++i) bytes += std::string("\x01\x00\x02", 3);
  EXPECT_THROW(IteratorState::parse(with_checksum(bytes)), DataLossError) << "it does not end";
  IteratorState::parse(with_checksum(bytes + '\0'));
}

TEST(Varint, RefusesWhatDoesNotEndOrIsTooLarge) {
  std::string_view open = "\xff\xff";
  EXPECT_THROW(internal::take_varint(open), DataLossError);
  std::string_view large = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02";
  EXPECT_THROW(internal::take_varint(large), DataLossError);
  std::string most;
  internal::append_varint(most, std::numeric_limits<uint64_t>::max());
  std::string_view rest = most;
  EXPECT_EQ(internal::take_varint(rest), std::numeric_limits<uint64_t>::max());
  EXPECT_TRUE(rest.empty());
}

}  // namespace
}  // namespace cohort::data

#include "cohort/parameter_server/store/packed_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "cohort/cluster/rpc/frame.h"
#include "cohort/core/bytes/wire.h"
#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

rpc::Bytes bytes_of(std::string text) {
  auto owner = std::make_shared<const std::string>(std::move(text));
  return {owner, owner->data(), owner->size()};
}

std::vector<std::string> texts(const rpc::Message& message) {
  std::vector<std::string> all;
  for (const rpc::Bytes& bytes : message.bulk) all.emplace_back(bytes.data, bytes.size);
  return all;
}

rpc::Message message_of(size_t tensors, size_t each) {
  rpc::Message message{.control = "fields"};
  for (size_t i = 0; i < tensors; ++i) {
    message.bulk.push_back(bytes_of(std::string(i % 3 * each, static_cast<char>('a' + i % 26))));
  }
  return message;
}

TEST(PackedMessage, ShortOnesAreSentAsTheyAre) {
  const rpc::Message message = packed(message_of(1024, 8));
  EXPECT_EQ(message.control, "fields");
  EXPECT_EQ(message.bulk.size(), 1024u);
  EXPECT_FALSE(unpacked({.control = "", .bulk = message.bulk}));
}

TEST(PackedMessage, ManyTensorsArriveAsTheyWereSent) {
  for (const size_t each : {0, 1, 500, 30'000}) {
    const size_t count = each == 30'000 ? 1'100 : 10'000;
    const rpc::Message sent = message_of(count, each);
    const rpc::Message message = packed(sent);
    EXPECT_LE(message.bulk.size(), rpc::kMaxBulks / 2);
    const auto whole = unpacked(message);
    ASSERT_TRUE(whole);
    EXPECT_EQ(whole->control, "fields");
    EXPECT_TRUE(texts(*whole) == texts(sent)) << each;
  }
}

TEST(PackedMessage, ALargeTensorIsNotCopied) {
  rpc::Message sent = message_of(2'000, 1);
  sent.bulk.push_back(bytes_of(std::string(3 << 20, 'x')));
  const char* const data = sent.bulk.back().data;
  const auto whole = unpacked(packed(sent));
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->bulk.back().data, data);
}

TEST(PackedMessage, LongFieldsTravelAsBulkAndWhatIsAddedComesBehindThem) {
  WireWriter fields, session;
  fields.bytes(1, std::string(rpc::kMaxHeaderBytes, 'n'));
  session.varint(100, 7);
  rpc::Message message = packed({.control = fields.str()});
  message.control += session.str();
  EXPECT_LT(message.control.size(), 100u);
  const auto whole = unpacked(message);
  ASSERT_TRUE(whole);
  EXPECT_TRUE(whole->control == fields.str() + session.str());
  EXPECT_TRUE(whole->bulk.empty());
}

TEST(PackedMessage, TooMuchIsRefusedByItsSender) {
  EXPECT_THROW(packed({.control = std::string(kMostPackedFields, 'n')}), ResourceExhaustedError);
  EXPECT_THROW(packed({.control = "", .bulk = std::vector<rpc::Bytes>((1 << 20) + 1)}),
               ResourceExhaustedError);
}

TEST(PackedMessage, WhatIsNonePutsNothingTogether) {
  const rpc::Message good = packed(message_of(3'000, 700));
  rpc::Message cut = good;
  cut.bulk.pop_back();
  EXPECT_THROW(unpacked(cut), DataLossError);
  rpc::Message more = good;
  more.bulk.push_back(bytes_of("more"));
  EXPECT_THROW(unpacked(more), DataLossError);
  rpc::Message shorter = good;
  --shorter.bulk.back().size;
  EXPECT_THROW(unpacked(shorter), DataLossError);
  EXPECT_THROW(unpacked({.control = good.control}), DataLossError);
  rpc::Message damaged = good;
  damaged.bulk[0] = bytes_of("\x0a\xff");
  EXPECT_THROW(unpacked(damaged), DataLossError);
}

}  // namespace
}  // namespace cohort::internal

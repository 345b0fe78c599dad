#include "cohort/core/bytes/wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

using testing::HasSubstr;

std::string what_of(std::string_view bytes) {
  try {
    WireReader reader(bytes, "the message");
    while (reader.next()) {
    }
  } catch (const DataLossError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Wire, ReadsWhatWasWritten) {
  const std::string inner = WireWriter().varint(1, ~uint64_t{0}).str();
  const std::string message =
      WireWriter().varint(1, 300).bytes(2, inner).fixed32(6, 0xdeadbeef).bytes(7, "").str();
  WireReader reader(message, "the message");
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.field(), 1u);
  EXPECT_EQ(reader.varint(), 300u);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.bytes(), inner);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.field(), 6u);
  EXPECT_EQ(reader.fixed32(), 0xdeadbeefu);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.bytes(), "");
  EXPECT_FALSE(reader.next());
}

TEST(Wire, EveryTruncationInsideAFieldIsAnError) {
  const std::string message = WireWriter().bytes(2, "abc").str();
  for (size_t size = 1; size < message.size(); ++size) {
    EXPECT_THAT(what_of(message.substr(0, size)), HasSubstr("the message: ")) << size;
  }
}

TEST(Wire, LengthsAreCheckedAgainstWhatIsLeft) {
  EXPECT_THAT(what_of("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), HasSubstr("are there"));
  EXPECT_THAT(what_of("\x0d\x01"), HasSubstr("needs 4 bytes"));
}

TEST(Wire, GroupsAndFieldZeroAreErrors) {
  EXPECT_THAT(what_of("\x0b"), HasSubstr("unknown wire type 3"));
  EXPECT_THAT(what_of(std::string("\0\0", 2)), HasSubstr("field number"));
}

TEST(Wire, AValueOfAnotherTypeIsAnError) {
  WireReader reader("\x08\x01", "the message");
  ASSERT_TRUE(reader.next());
  EXPECT_THROW(reader.bytes(), DataLossError);
  EXPECT_THROW(reader.fixed32(), DataLossError);
  EXPECT_EQ(reader.varint(), 1u);
}

}  // namespace
}  // namespace cohort::internal

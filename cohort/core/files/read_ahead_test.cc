#include "cohort/core/files/read_ahead.h"

#include <gtest/gtest.h>

#include <cstring>
#include <future>

#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

// Blocks of one letter each, of that letter's number in bytes.
ReadAhead::Read letters(std::string text) {
  return [text, next = size_t{0}](char* out, size_t) mutable -> size_t {
    if (next == text.size()) return 0;
    const char letter = text[next++];
    std::memset(out, letter, static_cast<size_t>(letter));
    return static_cast<size_t>(letter);
  };
}

TEST(ReadAhead, GivesEveryBlockInOrder) {
  ReadAhead ahead(letters("abc"));
  for (const char letter : {'a', 'b', 'c'}) {
    EXPECT_EQ(ahead.next(), std::string(static_cast<size_t>(letter), letter));
  }
  EXPECT_EQ(ahead.next(), "");
  EXPECT_EQ(ahead.next(), "");
}

TEST(ReadAhead, ReadsWhileABlockIsWorkedOn) {
  std::promise<void> second;
  int reads = 0;
  ReadAhead ahead([&](char* out, size_t) -> size_t {
    if (++reads == 2) second.set_value();
    out[0] = 'x';
    return reads < 3 ? 1 : 0;
  });
  EXPECT_EQ(ahead.next(), "x");
  second.get_future().wait();  // without another call of next
  EXPECT_EQ(ahead.next(), "x");
  EXPECT_EQ(ahead.next(), "");
}

TEST(ReadAhead, ErrorsComeWhereTheirBlockWouldHave) {
  int reads = 0;
  ReadAhead ahead([&](char* out, size_t) -> size_t {
    if (++reads == 2) throw DataLossError("the second block");
    out[0] = 'x';
    return 1;
  });
  EXPECT_EQ(ahead.next(), "x");
  EXPECT_THROW(ahead.next(), DataLossError);
  EXPECT_THROW(ahead.next(), DataLossError);
}

TEST(ReadAhead, CanBeGivenUpAtAnyTime) {
  { ReadAhead unused(letters("ab")); }
  ReadAhead used(letters("ab"));
  used.next();
}

}  // namespace
}  // namespace cohort::internal

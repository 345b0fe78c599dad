#include "cohort/ops/vocabulary/vocabulary_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/files/simulated_file_system.h"
#include "cohort/core/testing_errors.h"
#include "cohort/core/text.h"
#include "cohort/ops/vocabulary/index_builder.h"

namespace cohort::internal {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int kWords = 20'000;

std::string word(int i) { return str("word ", i * 7919); }

const std::string& good_bytes() {
  static const std::string bytes = [] {
    SimulatedFileSystem files;
    std::string text;
    for (int i = 0; i < kWords; ++i) text += word(i) + "\n";
    files.set_content("words", text);
    build_vocabulary_index(files, "words", "index", {.identity = TextIdentity{1, 2, 3, 4}});
    return files.content("index");
  }();
  return bytes;
}

// Whatever the bytes: the right answer, or an error that names the file.
void expect_right_or_refused(const std::string& bytes, const std::string& what) {
  try {
    const VocabularyIndex index(bytes, "index");
    ASSERT_EQ(index.size(), kWords) << what;
    for (int i = 0; i < kWords; i += 97) {
      ASSERT_EQ(index.find(word(i)), i) << what;
      ASSERT_EQ(index.token(i), word(i)) << what;
      ASSERT_EQ(index.find(word(kWords + i)), -1) << what;
    }
    index.check_all();
  } catch (const DataLossError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'index'")) << what;
  } catch (const UnimplementedError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("'index'"), HasSubstr("version"))) << what;
  }
}

bool is_refused(const std::string& bytes) {
  try {
    VocabularyIndex(bytes, "index").check_all();
  } catch (const Error&) {
    return true;
  }
  return false;
}

TEST(VocabularyIndex, AnyByteOfTheEndThatIsChangedIsFoundAtOnce) {
  const IndexLayout layout = VocabularyIndex(good_bytes(), "index").layout();
  const size_t identity = layout.identity_at(), trailer = good_bytes().size() - 88;
  std::string bytes = good_bytes();
  for (size_t at = layout.checksums_at(); at < bytes.size(); ++at) {
    for (const char flip : {'\x01', '\x80', '\xff'}) {
      bytes[at] ^= flip;
      const bool is_list = at < layout.checksums_at() + layout.num_blocks() * 4;
      if (is_list || at >= trailer) {
        EXPECT_THROW(VocabularyIndex(bytes, "index"), Error) << at;
      } else {  // the identity, or nothing at all
        EXPECT_FALSE(is_refused(bytes)) << at;
        if (at >= identity && at < identity + 32) {
          EXPECT_EQ(decode_identity(bytes, layout), std::nullopt) << at;
        }
      }
      bytes[at] ^= flip;
    }
  }
  EXPECT_EQ(decode_identity(bytes, layout), (TextIdentity{1, 2, 3, 4}));
}

TEST(VocabularyIndex, AnyByteThatIsChangedIsFoundWhenItIsTouched) {
  const IndexLayout layout = VocabularyIndex(good_bytes(), "index").layout();
  std::string bytes = good_bytes();
  for (size_t at = 0; at < layout.checksums_at(); at += 3001) {
    bytes[at] ^= 0x10;
    EXPECT_TRUE(is_refused(bytes)) << at;
    expect_right_or_refused(bytes, str("byte ", at));
    bytes[at] ^= 0x10;
  }
  expect_right_or_refused(bytes, "good");
}

TEST(VocabularyIndex, AnyLengthButItsOwnIsRefused) {
  for (size_t length = 0; length < good_bytes().size(); length += length < 300 ? 1 : 4099) {
    EXPECT_THROW(VocabularyIndex(good_bytes().substr(0, length), "index"), DataLossError) << length;
    EXPECT_THROW(VocabularyIndex(good_bytes().substr(good_bytes().size() - length), "index"),
                 DataLossError)
        << length;
  }
  EXPECT_THROW(VocabularyIndex(good_bytes() + '\0', "index"), DataLossError);
  EXPECT_THROW(VocabularyIndex(good_bytes() + good_bytes(), "index"), DataLossError);
}

TEST(VocabularyIndex, SaysWhatIsWrong) {
  const auto error = [](const std::string& bytes) {
    return thrown<DataLossError>([&] { VocabularyIndex(bytes, "index").check_all(); });
  };
  EXPECT_THAT(error("abc"), AllOf(HasSubstr("'index'"), HasSubstr("too short")));
  EXPECT_THAT(error(std::string(5000, 'x')), HasSubstr("not written to its end"));
  std::string bytes = good_bytes();
  bytes[70'000] ^= 1;
  EXPECT_EQ(error(bytes),
            "the vocabulary's index 'index' is damaged in the 65536 bytes from byte 65536 on; "
            "remove it, and it is built anew");
}

// Whose checksums are right, as those of a program that means harm.
TEST(VocabularyIndex, SizesThatNobodyCanHaveAreRefused) {
  const IndexLayout good = VocabularyIndex(good_bytes(), "index").layout();
  const std::string_view checksums =
      std::string_view(good_bytes()).substr(good.checksums_at(), good.num_blocks() * 4);
  const auto with = [&](auto change) {
    IndexLayout layout = good;
    change(layout);
    std::string bytes = good_bytes();
    bytes.resize(bytes.size() - 88);
    return bytes + encode_trailer(layout, checksums);
  };
  EXPECT_NO_THROW(VocabularyIndex(with([](IndexLayout&) {}), "index"));
  for (const uint64_t number : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 40, uint64_t{1} << 47,
                                uint64_t{1} << 63, ~uint64_t{0}}) {
    const auto refuse = [&](auto change) {
      const std::string bytes = with(change);
      EXPECT_THROW(VocabularyIndex(bytes, "index"), DataLossError) << number;
    };
    refuse([&](IndexLayout& layout) { layout.text_bytes = number; });
    refuse([&](IndexLayout& layout) { layout.twins = number + 6000; });
    refuse([&](IndexLayout& layout) { layout.function.parts = number + (number == 1 ? 7 : 0); });
    if (number > 1) refuse([&](IndexLayout& layout) { layout.lines = number; });
  }
  for (const uint32_t number : {0u, 1u, 1u << 31, ~0u}) {
    const std::string slots =
        with([&](IndexLayout& layout) { layout.function.slots_per_part = number; });
    EXPECT_THROW(VocabularyIndex(slots, "index"), DataLossError) << number;
  }
  // What is possible finds something or nothing, within the file.
  for (const uint32_t number : {0u, 1u, 100u, 6000u, 1u << 31, ~0u}) {
    const std::string bytes =
        with([&](IndexLayout& layout) { layout.function.buckets_per_part = number; });
    try {
      const VocabularyIndex index(bytes, "index");
      for (int i = 0; i < 1000; ++i) index.find(word(i));
      for (int i = 0; i < 1000; ++i) index.token(i);
    } catch (const DataLossError&) {
    }
  }
}

TEST(VocabularyIndex, IsReadByManyThreads) {
  const VocabularyIndex index(good_bytes(), "index");
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kWords; i += 3) right += index.find(word(i)) == i;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 4 * ((kWords + 2) / 3));
}

TEST(EntryFormat, KeepsNumbersOfAnySize) {
  for (const uint64_t lines : {1ull, 1000ull, 100'000'000ull, 4'000'000'000ull}) {
    for (const uint64_t bytes : {1ull, 5000ull, 1ull << 30, 1ull << 36, (1ull << 40) - 1}) {
      const EntryFormat format(lines, bytes);
      char memory[32] = {};
      const uint64_t hash = 0x123456789abcdef5;
      format.store({lines, bytes, hash}, memory);
      const auto entry = format.load(memory);
      EXPECT_EQ(entry.number, lines);
      EXPECT_EQ(entry.offset, bytes);
      EXPECT_EQ(entry.hash, format.part_of(hash));
      EXPECT_NE(format.part_of(hash), format.part_of(hash + 1));
    }
  }
  EXPECT_EQ(EntryFormat(100'000'000, 1'100'000'000).bytes(), 8);
  EXPECT_EQ(EntryFormat(4'000'000'000, 1ull << 36).bytes(), 10);
}

}  // namespace
}  // namespace cohort::internal

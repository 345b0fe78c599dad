#include "cohort/ops/vocabulary/index_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "cohort/core/files/simulated_file_system.h"
#include "cohort/core/testing_errors.h"
#include "cohort/core/text.h"
#include "cohort/ops/vocabulary/text_chunks.h"

namespace cohort::internal {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kText = "words.txt";
constexpr const char* kIndex = "words.txt.cohort-index";

std::string built(const std::string& text, const IndexBuildOptions& options = {}) {
  SimulatedFileSystem files;
  files.set_content(kText, text);
  build_vocabulary_index(files, kText, kIndex, options);
  return files.content(kIndex);
}

std::string numbered_words(int count, const std::string& line_end = "\n") {
  std::string text;
  for (int i = 0; i < count; ++i) text += str("word ", i, line_end);
  return text;
}

template <class ErrorType>
std::string error_of(const std::string& text, const IndexBuildOptions& options = {}) {
  return thrown<ErrorType>([&] { built(text, options); });
}

TEST(VocabularyIndexBuilder, FindsEveryLine) {
  for (const char* line_end : {"\n", "\r\n"}) {
    const std::string text = numbered_words(150'000, line_end);
    const std::string bytes = built(text);
    const VocabularyIndex index(bytes, kIndex);
    ASSERT_EQ(index.size(), 150'000);
    EXPECT_EQ(index.text(), text);
    std::vector<std::string> words;
    for (int i = 0; i < 150'000; ++i) words.push_back(str("word ", i));
    std::vector<std::string_view> views(words.begin(), words.end());
    EXPECT_EQ(index.tokens(), views);
    std::vector<int64_t> numbers(words.size());
    index.find_all(views.data(), index.size(), numbers.data());
    for (int64_t i = 0; i < index.size(); ++i) {
      const auto at = static_cast<size_t>(i);
      ASSERT_EQ(numbers[at], i);
      ASSERT_EQ(index.find(views[at]), i);
      ASSERT_EQ(index.token(i), views[at]);
    }
    for (int i = 0; i < 10'000; ++i) ASSERT_EQ(index.find(str("other ", i)), -1);
    std::vector<std::string_view> tokens(words.size() + 2, "left");
    numbers.push_back(-1);
    numbers.push_back(index.size());
    index.tokens_at(numbers.data(), index.size() + 2, tokens.data());
    views.resize(tokens.size(), "left");
    EXPECT_EQ(tokens, views);
  }
}

TEST(VocabularyIndexBuilder, TellsATokenFromItsNeighbours) {
  const std::string bytes = built("a\nb\r\nab\nb \nc\r\r\nlast");
  const VocabularyIndex index(bytes, kIndex);
  const std::vector<std::string> tokens = {"a", "b", "ab", "b ", "c\r", "last"};
  for (size_t i = 0; i < tokens.size(); ++i) {
    EXPECT_EQ(index.find(tokens[i]), static_cast<int64_t>(i)) << tokens[i];
    EXPECT_EQ(index.token(static_cast<int64_t>(i)), tokens[i]);
  }
  for (const char* token : {"", "a\nb", "b\r", "b\r\nab", "c", "c\r\r", "las", "last\n", "\n"}) {
    EXPECT_EQ(index.find(token), -1) << token;
  }
}

TEST(VocabularyIndexBuilder, MayBeEmptyOrOneToken) {
  const std::string none = built("");
  EXPECT_EQ(VocabularyIndex(none, kIndex).size(), 0);
  EXPECT_EQ(VocabularyIndex(none, kIndex).find("a"), -1);
  EXPECT_EQ(VocabularyIndex(none, kIndex).find(""), -1);
  const std::string one = built("a");
  EXPECT_EQ(VocabularyIndex(one, kIndex).find("a"), 0);
  EXPECT_EQ(VocabularyIndex(one, kIndex).find("b"), -1);
}

TEST(VocabularyIndexBuilder, TakesAColumn) {
  const std::string text = "10 the\n7 a b\r\n7 of \n3 \n2 x\r\n1 end";
  const std::string bytes = built(text, {.column = {1, ' '}});
  const VocabularyIndex index(bytes, kIndex);
  EXPECT_EQ(index.find("the"), 0);
  EXPECT_EQ(index.find("a"), 1);
  EXPECT_EQ(index.find("of"), 2);
  EXPECT_EQ(index.find(""), 3);
  EXPECT_EQ(index.find("x"), 4);
  EXPECT_EQ(index.find("end"), 5);
  for (const char* token : {"a b", "10", "10 the", "of ", "x\r", "\r"}) {
    EXPECT_EQ(index.find(token), -1) << token;
  }
  EXPECT_EQ(index.token(1), "a");
  EXPECT_EQ(error_of<RepeatedTokenError>("1 \n2 ", {.column = {1, ' '}}),
            "'' is at 'words.txt', line 1 (byte offset 0) and again at 'words.txt', line 2 (byte "
            "offset 3); a vocabulary has each token once");
  const std::string at_end = built("1 ", {.column = {1, ' '}});
  EXPECT_EQ(VocabularyIndex(at_end, kIndex).find(""), 0);
  EXPECT_THAT(error_of<InvalidArgumentError>("1 a\n2\n", {.column = {1, ' '}}),
              AllOf(HasSubstr("line 2 (byte offset 4)"),
                    HasSubstr(" has 1 columns, but column 1 is asked for")));
}

// Chunks, blocks and groups begin and end anywhere in lines, and lines span several of them.
TEST(VocabularyIndexBuilder, LinesMayBeLong) {
  std::string text;
  std::vector<std::string> tokens;
  uint64_t state = 1;
  while (text.size() < 5 * kTextChunk) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const size_t length = (state >> 40) % (state >> 61 == 0 ? 3'000'000 : 30'000);
    tokens.push_back(str(tokens.size(), std::string(length, 'x')));
    text += tokens.back() + "\n";
  }
  const std::string bytes = built(text, {.threads = 2});
  const VocabularyIndex index(bytes, kIndex);
  ASSERT_EQ(index.size(), static_cast<int64_t>(tokens.size()));
  for (size_t i = 0; i < tokens.size(); ++i) {
    ASSERT_EQ(index.find(tokens[i]), static_cast<int64_t>(i));
    ASSERT_EQ(index.token(static_cast<int64_t>(i)), tokens[i]);
  }
  // A line that ends exactly where a chunk does.
  const std::string at_end =
      std::string(kTextChunk - 1, 'a') + "\nb\n" + std::string(2 * kTextChunk - 3, 'c') + "\nd";
  const std::string other = built(at_end);
  EXPECT_EQ(VocabularyIndex(other, kIndex).find("b"), 1);
  EXPECT_EQ(VocabularyIndex(other, kIndex).find("d"), 3);
}

TEST(VocabularyIndexBuilder, GivesTheSameBytesHoweverItIsBuilt) {
  const std::string text = numbered_words(200'000);
  const std::string expected = built(text);
  EXPECT_EQ(built(text, {.threads = 4}), expected);
  EXPECT_EQ(built(text, {.threads = 3, .memory_bytes = 1}), expected);
}

uint64_t poor_hash(std::string_view token) { return token.size() % 7; }

TEST(VocabularyIndexBuilder, TellsEqualHashesApart) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += std::string(static_cast<size_t>(i) + 1, 'x') + "\n";
  const std::string bytes = built(text, {.hash = poor_hash});
  const VocabularyIndex index(bytes, kIndex, poor_hash);
  EXPECT_EQ(index.layout().twins, 33u);
  for (int64_t i = 0; i < 40; ++i) {
    EXPECT_EQ(index.find(std::string(static_cast<size_t>(i) + 1, 'x')), i);
  }
  EXPECT_EQ(index.find("yy"), -1);
  EXPECT_EQ(index.find(std::string(41, 'x')), -1);
  EXPECT_EQ(error_of<RepeatedTokenError>(text + "xx\n", {.hash = poor_hash}),
            "'xx' is at 'words.txt', line 2 (byte offset 2) and again at 'words.txt', line 41 "
            "(byte offset 860); a vocabulary has each token once");
}

TEST(VocabularyIndexBuilder, NamesTheFirstLineThatIsWrong) {
  EXPECT_EQ(error_of<InvalidArgumentError>("a\n\nb\n\n"),
            "'words.txt', line 2 (byte offset 2) is empty; a table's file has one entry a line");
  EXPECT_THAT(error_of<InvalidArgumentError>("\r\n"), HasSubstr("line 1 (byte offset 0) is empty"));
  const std::string text = numbered_words(100'000);
  for (const int threads : {1, 3}) {
    const IndexBuildOptions options = {.threads = threads, .memory_bytes = 1};
    EXPECT_THAT(error_of<RepeatedTokenError>(text + "word 7\nword 3\nword 7\n", options),
                AllOf(HasSubstr("'word 7' is at 'words.txt', line 8 (byte offset 49)"),
                      HasSubstr(str("line 100001 (byte offset ", text.size(), ")"))));
    EXPECT_THAT(error_of<InvalidArgumentError>(text + "\n" + text + "\n", options),
                HasSubstr("line 100001 "));
  }
}

// So many that no part of the perfect hash holds them.
TEST(VocabularyIndexBuilder, RefusesATokenThatIsThereAgainAndAgain) {
  std::string text = numbered_words(1000);
  for (int i = 0; i < 100'000; ++i) text += "the\n";
  EXPECT_THAT(error_of<RepeatedTokenError>(text), HasSubstr("'the' is at 'words.txt', line 1001 "));
  EXPECT_THAT(error_of<RepeatedTokenError>(text + text, {.threads = 2}), HasSubstr("and again at"));
}

TEST(VocabularyIndexBuilder, AnyFailureLeavesWhatWasThere) {
  const std::string text = numbered_words(100);
  const std::string expected = built(text);
  for (int64_t call = 1;; ++call) {
    SimulatedFileSystem files;
    files.set_content(kText, text);
    files.set_content(kIndex, "before");
    files.set_faults({.fail_at = call, .error_number = ENOSPC});
    bool failed = false;
    try {
      build_vocabulary_index(files, kText, kIndex, {});
    } catch (const Error&) {
      failed = true;
    }
    files.set_faults({});
    const std::string found = files.content(kIndex);
    EXPECT_THAT(found, testing::AnyOf("before", expected)) << "call " << call;
    if (!failed) {
      EXPECT_EQ(found, expected);
      break;
    }
    ASSERT_LT(call, 100);
  }
}

TEST(VocabularyIndexBuilder, APowerCutLeavesAWholeIndexOrNone) {
  const std::string text = numbered_words(100);
  const std::string expected = built(text);
  for (int64_t call = 1;; ++call) {
    ASSERT_LT(call, 100);
    SimulatedFileSystem files;
    files.set_content(kText, text);
    files.set_faults({.kill_at = call});
    bool killed = false;
    try {
      build_vocabulary_index(files, kText, kIndex, {});
    } catch (const SimulatedKill&) {
      killed = true;
    }
    for (const auto entries : {Unsynced::kKept, Unsynced::kLost}) {
      const auto found = files.after_power_cut({.entries = entries});
      if (found->exists(kIndex)) {
        EXPECT_EQ(found->content(kIndex), expected) << "call " << call;
      }
    }
    if (!killed) break;
  }
}

}  // namespace
}  // namespace cohort::internal

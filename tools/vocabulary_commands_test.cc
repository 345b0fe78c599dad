#include "tools/vocabulary_commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"
#include "cohort/core/testing_folder.h"

namespace cohort::tools {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct VocabularyCommands : testing::Test {
  VocabularyCommands() { ::setenv("XDG_CACHE_HOME", (folder / "cache").c_str(), 1); }

  std::string run(int (*command)(const VocabularyCommandOptions&, std::ostream&),
                  const VocabularyCommandOptions& options, int exit_code) {
    std::ostringstream out;
    EXPECT_EQ(command(options, out), exit_code);
    return out.str();
  }

  internal::TemporaryFolder folder;
  const std::string text = folder.write("words.txt", "a\nb\nc\n");
  const std::string index = text + ".cohort-index";
};

TEST_F(VocabularyCommands, BuildsAnIndexAndVerifiesIt) {
  EXPECT_EQ(run(verify_vocabularies, {.paths = {text}}, kExitBadData),
            "DAMAGED '" + text + "': it has no index\n");
  const std::string expected = "'" + text + "': 3 tokens, index '" + index + "'\n";
  EXPECT_EQ(run(index_vocabularies, {.paths = {text}}, kExitOk), expected);
  EXPECT_EQ(run(index_vocabularies, {.paths = {text}, .threads = 2}, kExitOk), expected);
  EXPECT_EQ(run(verify_vocabularies, {.paths = {text}}, kExitOk), "OK '" + text + "'\n");
}

TEST_F(VocabularyCommands, FindsWhatIsWrong) {
  run(index_vocabularies, {.paths = {text}}, kExitOk);
  folder.write("words.txt", "a\nb\nd\n");
  EXPECT_THAT(run(verify_vocabularies, {.paths = {text}}, kExitBadData),
              HasSubstr("is the index of another text"));
  folder.write("words.txt", "a\nb\nc\nd\n");
  EXPECT_THAT(run(verify_vocabularies, {.paths = {text}}, kExitBadData),
              HasSubstr("is the index of another text"));
  {
    std::fstream file(index, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(70'000);
    file.put('x');
  }
  EXPECT_THAT(run(verify_vocabularies, {.paths = {text}}, kExitBadData),
              AllOf(HasSubstr("DAMAGED"), HasSubstr("65536")));
  EXPECT_THAT(run(index_vocabularies, {.paths = {text}}, kExitOk), HasSubstr("4 tokens"));
  EXPECT_EQ(run(verify_vocabularies, {.paths = {text}}, kExitOk), "OK '" + text + "'\n");
}

TEST_F(VocabularyCommands, TakesColumns) {
  const std::string counts = folder.write("counts.txt", "3 the\n2 of\n");
  const VocabularyCommandOptions options = {.paths = {counts}, .column = 1, .delimiter = " "};
  EXPECT_THAT(run(index_vocabularies, options, kExitOk), HasSubstr(".column-1-20.cohort-index'"));
  EXPECT_EQ(run(verify_vocabularies, options, kExitOk), "OK '" + counts + "'\n");
}

TEST_F(VocabularyCommands, RefusesWrongTextsAndCalls) {
  std::ostringstream out;
  const std::string twice = folder.write("twice.txt", "a\na\n");
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { index_vocabularies({.paths = {twice}}, out); }),
              HasSubstr("line 2 (byte offset 2)"));
  EXPECT_THROW(index_vocabularies({.paths = {folder / "none"}}, out), NotFoundError);
  EXPECT_THROW(index_vocabularies({.paths = {text}, .delimiter = "ab"}, out), InvalidArgumentError);
}

}  // namespace
}  // namespace cohort::tools

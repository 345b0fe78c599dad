#include "cohort/ops/vocabulary/mapped_vocabulary.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "cohort/core/files/temporary_files.h"
#include "cohort/core/testing_errors.h"
#include "cohort/core/testing_folder.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

std::string words(int count, const std::string& word = "word ") {
  std::string text;
  for (int i = 0; i < count; ++i) text += str(word, i, "\n");
  return text;
}

uint64_t inode(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
  return status.st_ino;
}

struct MappedVocabularyTest : testing::Test {
  MappedVocabularyTest() { ::setenv("XDG_CACHE_HOME", cache.path().c_str(), 1); }

  std::shared_ptr<const MappedVocabulary> open(const std::string& text,
                                               std::chrono::nanoseconds settled_after = {}) {
    return MappedVocabulary::open(text, {.least_bytes = 1, .settled_after = settled_after});
  }
  // What opening the text logs.
  std::string log_of_opening(const std::string& text) {
    testing::internal::CaptureStderr();
    open(text);
    return testing::internal::GetCapturedStderr();
  }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
      found.push_back(entry.path().filename());
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  TemporaryFolder folder;
  TemporaryFolder cache;
  const std::string text = folder.write("words.txt", words(1000));
  const std::string index = text + ".cohort-index";
};

TEST_F(MappedVocabularyTest, IsBuiltOnceAndFindsTokens) {
  EXPECT_THAT(log_of_opening(text),
              AllOf(HasSubstr("Indexed the vocabulary '" + text + "': 1000 tokens in"),
                    HasSubstr("the index is '" + index + "'")));
  EXPECT_THAT(names(), ElementsAre("words.txt", "words.txt.cohort-index"));
  EXPECT_EQ(log_of_opening(text), "");
  const auto vocabulary = open(text);
  EXPECT_EQ(vocabulary->index().find("word 17"), 17);
  EXPECT_EQ(vocabulary->index().find("word"), -1);
  EXPECT_EQ(vocabulary->place(2), "'" + text + "', line 3 (byte offset 14)");
  EXPECT_EQ(vocabulary->path(), index);
}

TEST_F(MappedVocabularyTest, SmallTextsAreReadUnlessThereIsAnIndex) {
  EXPECT_EQ(MappedVocabulary::open(text), nullptr);
  EXPECT_THAT(names(), ElementsAre("words.txt"));
  open(text);
  EXPECT_NE(MappedVocabulary::open(text), nullptr);
  folder.write("words.txt", words(7));
  EXPECT_EQ(MappedVocabulary::open(text), nullptr);
  EXPECT_THROW(open(folder / "none.txt"), NotFoundError);
}

TEST_F(MappedVocabularyTest, TheIndexIsAsReadableAsTheText) {
  ::chmod(text.c_str(), 0640);
  open(text);
  struct stat status {};
  ASSERT_EQ(::stat(index.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
}

// The same size and the same time of modification: the inode's time of change tells.
TEST_F(MappedVocabularyTest, FollowsTheText) {
  open(text);
  folder.write("words.txt", words(2000));
  EXPECT_EQ(open(text)->index().size(), 2000);
  struct stat before {};
  ASSERT_EQ(::stat(text.c_str(), &before), 0);
  folder.write("words.txt", words(2000, "WORD "));
  const timespec times[] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, text.c_str(), times, 0), 0);
  EXPECT_EQ(open(text)->index().find("WORD 7"), 7);
  const std::string other = folder.write("other", words(2000, "wOrD "));
  ASSERT_EQ(::utimensat(AT_FDCWD, other.c_str(), times, 0), 0);
  std::filesystem::rename(other, text);
  EXPECT_EQ(open(text)->index().find("wOrD 7"), 7);
}

// A text that was changed a moment ago may change again within the same step of the clock.
TEST_F(MappedVocabularyTest, TimesOfAMomentAgoProveNothing) {
  const auto vocabulary = open(text, std::chrono::hours(1));
  std::ifstream file(index, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(decode_identity(bytes, vocabulary->index().layout()), std::nullopt);
  const uint64_t first = inode(index);
  open(text, std::chrono::hours(1));
  EXPECT_EQ(inode(index), first);  // it was compared with the text
}

TEST_F(MappedVocabularyTest, ACopyIsReadAndComparedOnce) {
  open(text);
  const std::string copy = folder / "copy.txt";
  std::filesystem::copy_file(text, copy);
  std::filesystem::copy_file(index, copy + ".cohort-index");
  const uint64_t first = inode(copy + ".cohort-index");
  const auto vocabulary = open(copy);
  EXPECT_EQ(vocabulary->index().find("word 17"), 17);
  EXPECT_EQ(inode(copy + ".cohort-index"), first);
  std::ifstream file(copy + ".cohort-index", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const auto identity = decode_identity(bytes, vocabulary->index().layout());
  ASSERT_TRUE(identity.has_value());
  EXPECT_EQ(identity->inode, inode(copy));
}

TEST_F(MappedVocabularyTest, AnIndexOfNoUseIsBuiltAnew) {
  open(text);
  std::ifstream file(index, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  for (const std::string& damaged :
       {std::string(), std::string("x"), bytes.substr(0, bytes.size() - 1),
        bytes.substr(0, bytes.size() / 2), bytes + "x", std::string(bytes.size(), '\0')}) {
    folder.write("words.txt.cohort-index", damaged);
    EXPECT_EQ(open(text)->index().find("word 17"), 17) << damaged.size();
  }
  folder.write("words.txt.cohort-index", bytes.substr(0, 100));
  EXPECT_THAT(log_of_opening(text), AllOf(HasSubstr("cannot be used"), HasSubstr("Indexed")));
}

// The index is a file that nobody writes to: a change of the text, whatever it is, changes nothing
// for who has opened it, and ends no process.
TEST_F(MappedVocabularyTest, WhoHasItOpenDoesNotSeeWhatBecomesOfTheText) {
  const auto vocabulary = open(text);
  std::filesystem::resize_file(text, 0);
  EXPECT_EQ(vocabulary->index().find("word 999"), 999);
  folder.write("words.txt", words(1000, "WORD "));
  open(text);
  std::filesystem::remove(text);
  std::filesystem::remove(index);
  EXPECT_EQ(vocabulary->index().find("word 998"), 998);
  EXPECT_EQ(vocabulary->index().token(0), "word 0");
}

TEST_F(MappedVocabularyTest, GoesToTheCacheWhereItCannotBeBeside) {
  if (::geteuid() == 0) {  // who may write everywhere
    const std::string long_name = folder.write(std::string(245, 'w'), words(10));
    EXPECT_THAT(log_of_opening(long_name),
                AllOf(HasSubstr("is read and not mapped"), HasSubstr("cohort vocabulary index")));
    EXPECT_EQ(open(long_name), nullptr);
  }
  std::filesystem::create_directory(folder / "full");
  const std::string other = folder.write("full/words.txt", words(10));
  std::filesystem::create_directory(other + ".cohort-index.lock");
  const auto vocabulary = open(other);
  ASSERT_NE(vocabulary, nullptr);
  EXPECT_THAT(vocabulary->path(), StartsWith(cache.path().string() + "/cohort/vocabularies/"));
  EXPECT_EQ(log_of_opening(other), "");
}

TEST_F(MappedVocabularyTest, AnIndexOfAnotherUserIsNotBelieved) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  open(text);
  ASSERT_EQ(::chown(index.c_str(), 12345, 12345), 0);
  EXPECT_THAT(log_of_opening(text), AllOf(HasSubstr("user 12345"), HasSubstr("Indexed")));
}

TEST_F(MappedVocabularyTest, WrongTextsLeaveNothingBehind) {
  folder.write("words.txt", "a\nb\na\n");
  EXPECT_THROW(open(text), RepeatedTokenError);
  folder.write("words.txt", "a\n\n");
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { open(text); }), HasSubstr("line 2"));
  EXPECT_THAT(names(), ElementsAre("words.txt"));
}

TEST_F(MappedVocabularyTest, WhatADeadProcessLeftIsRemoved) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  std::string left = base_name(unlocked_temporary_path("", "words.txt.cohort-index"));
  const std::string pid = str(".", ::getpid(), ".");
  left.replace(left.find(pid), pid.size(), str(".", child, "."));
  folder.write(left, "half");
  open(text);
  EXPECT_THAT(names(), ElementsAre("words.txt", "words.txt.cohort-index"));
}

// Eight processes open a text that has no index: one builds it, the others wait for that.
TEST_F(MappedVocabularyTest, IsBuiltByOneOfManyProcesses) {
  folder.write("words.txt", words(200'000));
  const std::string log = folder / "log";
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      const int fd = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
      ::dup2(fd, STDERR_FILENO);
      ::alarm(60);
      const auto vocabulary = open(text);
      ::_exit(vocabulary != nullptr && vocabulary->index().find("word 199999") == 199'999 ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  std::ifstream file(log);
  const std::string lines{std::istreambuf_iterator<char>(file), {}};
  size_t built = 0;
  for (size_t at = 0; (at = lines.find("Indexed", at)) != lines.npos; ++at) ++built;
  EXPECT_EQ(built, 1u) << lines;
}

// One that is killed while it builds: the next begins anew, and at once.
TEST_F(MappedVocabularyTest, ABuilderMayBeKilled) {
  folder.write("words.txt", words(300'000));
  for (int i = 0; i < 4; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      open(text);
      ::_exit(0);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5 * i));
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  }
  EXPECT_EQ(open(text)->index().find("word 299999"), 299'999);
}

TEST_F(MappedVocabularyTest, WaitsNoLongerThanItIsTold) {
  const auto lock = posix_file_system().lock(index + ".lock", "somebody");
  EXPECT_THAT(thrown<DeadlineExceededError>([&] {
                MappedVocabulary::open(text,
                                       {.least_bytes = 1, .patience = std::chrono::seconds(0)});
              }),
              AllOf(HasSubstr("somebody"), HasSubstr("after 0 s")));
}

TEST_F(MappedVocabularyTest, ColumnsHaveIndicesOfTheirOwn) {
  const std::string counts = folder.write("counts.txt", "10 the\n7 of\n");
  const auto column = MappedVocabulary::open(counts, {.column = {1, ' '}, .least_bytes = 1});
  EXPECT_EQ(column->index().find("of"), 1);
  EXPECT_EQ(open(counts)->index().find("7 of"), 1);
  EXPECT_THAT(names(), ElementsAre("counts.txt", "counts.txt.cohort-index",
                                   "counts.txt.column-1-20.cohort-index", "words.txt"));
}

}  // namespace
}  // namespace cohort::internal

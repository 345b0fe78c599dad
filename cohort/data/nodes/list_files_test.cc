#include "cohort/data/nodes/list_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <set>

#include "cohort/core/files/simulated_file_system.h"
#include "cohort/data/records/glob.h"
#include "cohort/data/test_util.h"
#include "cohort/data/testing_files.h"
#include "cohort/ops/testing_seed.h"

namespace cohort::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct ListFiles : FilesTest {
  ListFiles() {
    for (const char* name : {"b.txt", "a.txt", "c.csv", ".hidden.txt"}) write(name, "");
    std::filesystem::create_directory(path("sub"));
    write("sub/d.txt", "");
  }
  std::vector<std::string> names(const Dataset& dataset) const {
    std::vector<std::string> found;
    for (const Structure& name : dataset) {
      found.push_back(std::string(name.strings().item().substr(directory.size() + 1)));
    }
    return found;
  }
  std::vector<std::string> listed(const std::string& pattern) const {
    return names(Dataset::list_files(path(pattern), {.shuffle = false}));
  }
};

TEST_F(ListFiles, MatchesAndSorts) {
  EXPECT_THAT(listed("*.txt"), ElementsAre("a.txt", "b.txt"));
  EXPECT_THAT(listed(".*.txt"), ElementsAre(".hidden.txt"));
  EXPECT_THAT(listed("*/*"), ElementsAre("sub/d.txt"));
  EXPECT_THAT(listed("[bc].?[xs]?"), ElementsAre("b.txt", "c.csv"));
  EXPECT_THAT(listed("c.csv"), ElementsAre("c.csv"));
  EXPECT_THAT(names(Dataset::list_files({path("b*"), path("*.txt")}, {.shuffle = false})),
              ElementsAre("a.txt", "b.txt"));
}

TEST_F(ListFiles, NoMatchIsAnError) {
  for (const char* pattern : {"*.none", "none", "none/*", "a.txt/*"}) {
    const std::string text = thrown<NotFoundError>([&] {
      Dataset::list_files({path(pattern), ""});
    });
    EXPECT_THAT(text, AllOf(HasSubstr("no file matches"), HasSubstr(path(pattern))));
  }
}

// On a file system of our own: permissions mean nothing to root.
TEST(Glob, ADirectoryThatMayNotBeListedIsNotEmpty) {
  internal::SimulatedFileSystem files;
  files.make_directories("secret");
  files.set_content("secret/a.txt", "");
  std::optional<std::string> denied;
  EXPECT_THAT(internal::matching_paths(files, "secret/*.txt", &denied),
              ElementsAre("secret/a.txt"));
  EXPECT_FALSE(denied);
  files.set_faults({.fail_at = files.calls() + 1, .error_number = EACCES, .stays_broken = true});
  EXPECT_THAT(internal::matching_paths(files, "secret/*.txt", &denied), IsEmpty());
  ASSERT_TRUE(denied);
  EXPECT_THAT(
      thrown<PermissionDeniedError>([&] { internal::throw_no_match("'secret/*.txt'", denied); }),
      AllOf(HasSubstr("'secret/*.txt'"), HasSubstr("directory 'secret' may not be listed")));
  EXPECT_THROW(internal::throw_no_match("'*'", std::nullopt), NotFoundError);
}

TEST_F(ListFiles, ShufflesByItsSeed) {
  for (int i = 0; i < 20; ++i) write(internal::str("n", i), "");
  const auto order = [&](const ListFilesOptions& options) {
    return names(Dataset::list_files(path("n*"), options));
  };
  const auto sorted = order({.shuffle = false}), shuffled = order({.seed = 1});
  EXPECT_NE(shuffled, sorted);
  EXPECT_EQ(shuffled, order({.seed = 1}));
  EXPECT_NE(shuffled, order({.seed = 2}));
  EXPECT_EQ(std::set<std::string>(shuffled.begin(), shuffled.end()).size(), sorted.size());
  const Dataset list = Dataset::list_files(path("n*"), {.seed = 1});
  EXPECT_NE(names(list), names(list));  // a new order for each pass
}

TEST_F(ListFiles, AStateIsOfTheFilesThatWereThere) {
  const auto list = [&] { return Dataset::list_files(path("*.txt"), {.shuffle = false}); };
  auto iterator = list().iterator();
  iterator.next();
  const IteratorState state = iterator.state();
  auto restored = list().iterator();
  restored.restore(state);
  EXPECT_EQ(texts(restored).size(), 1u);
  std::filesystem::rename(path("b.txt"), path("e.txt"));
  auto other = list().iterator();
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { other.restore(state); }), HasSubstr("list_files"));
}

TEST_F(ListFiles, WarnsWhereAnUnseededShuffleIsDivided) {
  internal::forget_seed();
  const auto log_of = [&](const ListFilesOptions& options, int64_t shards) {
    testing::internal::CaptureStderr();
    Dataset::list_files(path("*.txt"), options).shard(shards, 0);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(log_of({}, 2), HasSubstr("a shuffled list of files without a seed is divided"));
  EXPECT_THAT(log_of({}, 1), IsEmpty());
  EXPECT_THAT(log_of({.seed = 1}, 2), IsEmpty());
  EXPECT_THAT(log_of({.shuffle = false}, 2), IsEmpty());
}

TEST_F(ListFiles, WarnsOnceForAllWorkers) {
  internal::forget_seed();
  testing::internal::CaptureStderr();
  const Dataset files = Dataset::list_files(path("*.txt"));
  for (int64_t worker = 0; worker < 3; ++worker) files.shard(3, worker);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("without a seed"));
  EXPECT_EQ(log.find("without a seed"), log.rfind("without a seed"));
}

TEST_F(ListFiles, ChecksItsDeadline) {
  EXPECT_THROW(Dataset::list_files(path("*.txt"), {.read_timeout = std::chrono::milliseconds(-1)}),
               InvalidArgumentError);
}

}  // namespace
}  // namespace cohort::data

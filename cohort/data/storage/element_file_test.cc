#include "cohort/data/storage/element_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/core/files/simulated_file_system.h"
#include "cohort/core/files/temporary_files.h"

namespace cohort::internal {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::SizeIs;

TEST(ElementFileWriter, AnUnfinishedFileIsRemovedWhereverItFails) {
  SimulatedFileSystem files;
  const auto write = [&] {
    ElementFileWriter writer(files, "a");
    writer.append(StringTensor::scalar("x"));
    writer.finish({});
  };
  for (int64_t call = 1;; ++call) {
    files.set_faults({.fail_at = files.calls() + call});
    try {
      write();
      break;
    } catch (const Error&) {
    }
    if (files.file_paths() == std::vector<std::string>{"/a"}) break;  // the directory's sync failed
    EXPECT_THAT(files.file_paths(), IsEmpty()) << call;
  }
  EXPECT_THAT(files.file_paths(), ElementsAre("/a"));
}

// Also where machines share the directory, on which processes and files may have the same numbers.
TEST(ElementFileWriter, UnfinishedFilesHaveRandomNames) {
  SimulatedFileSystem files;
  const ElementFileWriter first(files, "a"), second(files, "a");
  const auto paths = files.file_paths();
  EXPECT_THAT(paths, SizeIs(2));
  EXPECT_THAT(paths, Each(MatchesRegex("/\\.cohort-unfinished-.*-a\\.[0-9a-f]+")));
  EXPECT_NE(paths.front().substr(paths.front().rfind('.')),
            paths.back().substr(paths.back().rfind('.')));
}

TEST(ElementFileWriter, RemovesWhatOneThatWasKilledLeft) {
  SimulatedFileSystem files;
  std::string path = base_name(unlocked_temporary_path("", "a"));
  path.replace(path.rfind('-') - 1, 1, path[path.rfind('-') - 1] == '0' ? "1" : "0");
  files.create(path);  // of an earlier process of this one's number
  files.create(".cohort-unfinished-0.1.1-of-another-host");
  ElementFileWriter(files, "a").finish({});
  EXPECT_THAT(files.file_paths(), ElementsAre("/.cohort-unfinished-0.1.1-of-another-host", "/a"));
}

}  // namespace
}  // namespace cohort::internal

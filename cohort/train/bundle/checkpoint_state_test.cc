#include "cohort/train/bundle/checkpoint_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cohort/core/error.h"
#include "cohort/core/files/simulated_file_system.h"
#include "cohort/core/files/temporary_files.h"
#include "cohort/train/saving/checkpoint_numbers.h"

namespace cohort::internal {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

CheckpointState small_state() {
  return {.model_checkpoint_path = "ckpt-2",
          .all_model_checkpoint_paths = {"ckpt-1", "ckpt-2"},
          .all_model_checkpoint_timestamps = {1795224887.8186274, 1795224889.5},
          .last_preserved_timestamp = 1795224887.805856};
}

// As TensorFlow 2.15's CheckpointManager wrote it.
constexpr std::string_view kTensorFlowState =
    "model_checkpoint_path: \"ckpt-4\"\n"
    "all_model_checkpoint_paths: \"ckpt-3\"\n"
    "all_model_checkpoint_paths: \"ckpt-4\"\n"
    "all_model_checkpoint_timestamps: 1795224887.8186274\n"
    "all_model_checkpoint_timestamps: 1795224887.8230767\n"
    "last_preserved_timestamp: 1795224887.805856\n";

CheckpointState parse(std::string_view text) { return parse_checkpoint_state(text, "dir/state"); }

// Everything the error says; empty: there was none.
std::string error_of(std::string_view text) {
  try {
    parse(text);
    return "";
  } catch (const DataLossError& error) {
    return error.what();
  }
}

TEST(FormatCheckpointStateTest, BeginsWithAChecksumThatIsACommentToOthers) {
  EXPECT_EQ(format_checkpoint_state(small_state()),
            "# crc32c: 0x80082ff1\n"
            "model_checkpoint_path: \"ckpt-2\"\n"
            "all_model_checkpoint_paths: \"ckpt-1\"\n"
            "all_model_checkpoint_paths: \"ckpt-2\"\n"
            "all_model_checkpoint_timestamps: 1795224887.8186274\n"
            "all_model_checkpoint_timestamps: 1795224889.5\n"
            "last_preserved_timestamp: 1795224887.805856\n");
}

TEST(FormatCheckpointStateTest, ListsTheLatest) {
  const CheckpointState state = parse(
      format_checkpoint_state({.model_checkpoint_path = "b", .all_model_checkpoint_paths = {"a"}}));
  EXPECT_THAT(state.all_model_checkpoint_paths, ElementsAre("a", "b"));
}

TEST(FormatCheckpointStateTest, AnyPathAndAnyNumberComesBack) {
  std::string all_bytes;
  for (int byte = 1; byte < 256; ++byte) all_bytes += static_cast<char>(byte);
  for (double number : {1.0 / 3, -1e300, 5e-324, 1795224887.8186274, 0.0}) {
    const CheckpointState state{.model_checkpoint_path = all_bytes + "1",
                                .all_model_checkpoint_paths = {all_bytes + "1", "2 3"},
                                .all_model_checkpoint_timestamps = {number, 7},
                                .last_preserved_timestamp = number};
    EXPECT_EQ(parse(format_checkpoint_state(state)), state) << number;
  }
}

TEST(FormatCheckpointStateTest, RefusesWhatCouldNotBeReadBack) {
  const auto refused = [](const CheckpointState& state, const std::string& text) {
    try {
      format_checkpoint_state(state);
      ADD_FAILURE() << "no error; expected: " << text;
    } catch (const InvalidArgumentError& error) {
      EXPECT_THAT(error.what(), HasSubstr(text));
    }
  };
  refused({}, "path ''");
  refused({.model_checkpoint_path = std::string("a\0b", 3)}, "'a\\x00b'");
  refused({.model_checkpoint_path = "a", .all_model_checkpoint_paths = {""}}, "path ''");
  refused({.model_checkpoint_path = "a", .all_model_checkpoint_timestamps = {1, 2}},
          "2 timestamps for 1 checkpoints");
  refused({.model_checkpoint_path = "a", .last_preserved_timestamp = std::nan("")}, "nan");
  refused({.model_checkpoint_path = "a",
           .all_model_checkpoint_timestamps = {std::numeric_limits<double>::infinity()}},
          "inf");
  refused({.model_checkpoint_path = std::string(kMostStateBytes, 'x')}, "bytes, more than");
  refused({.model_checkpoint_path = "a",
           .all_model_checkpoint_paths = std::vector<std::string>(kMostStatePaths + 1, "a")},
          "cannot list 100001 checkpoints");
}

TEST(ParseCheckpointStateTest, ReadsWhatTensorFlowWrites) {
  const CheckpointState state = parse(kTensorFlowState);
  EXPECT_EQ(state.model_checkpoint_path, "ckpt-4");
  EXPECT_THAT(state.all_model_checkpoint_paths, ElementsAre("ckpt-3", "ckpt-4"));
  EXPECT_THAT(state.all_model_checkpoint_timestamps,
              ElementsAre(1795224887.8186274, 1795224887.8230767));
  EXPECT_EQ(state.last_preserved_timestamp, 1795224887.805856);
}

TEST(ParseCheckpointStateTest, ReadsAnyFormOfTheText) {
  const CheckpointState state = parse(
      "\t model_checkpoint_path :'a' \"\\142\\x63\\X64\"\n  '\\n\\t\\'\\\"\\\\\\?' ; # a comment\n"
      "all_model_checkpoint_paths: ['x', \"y\"\n,'z'],\r\n"
      "all_model_checkpoint_timestamps: [-1, 2.5e3f, .5, 1E2],"
      "all_model_checkpoint_timestamps: []\n"
      "unknown: 7 other: [WORD, -inf, 0x1F, 'text'] last_preserved_timestamp:1#end");
  EXPECT_EQ(state.model_checkpoint_path, "abcd\n\t'\"\\?");
  EXPECT_THAT(state.all_model_checkpoint_paths,
              ElementsAre("x", "y", "z", state.model_checkpoint_path));
  EXPECT_THAT(state.all_model_checkpoint_timestamps, ElementsAre(-1, 2500, 0.5, 100));
  EXPECT_EQ(state.last_preserved_timestamp, 1);
}

TEST(ParseCheckpointStateTest, NamesTheFileAndTheLineOfWhatIsMalformed) {
  const std::string good = "model_checkpoint_path: 'a'\n";
  const std::pair<std::string, std::string> cases[] = {
      {"", "line 1: the file is empty"},
      {"\n\n", "line 2: there is no model_checkpoint_path"},
      {"# TensorFlow writes no comment\n" + good, "line 1: the line is '# TensorFlow writes"},
      {"model_checkpoint_path 'a'", "line 1: ':' was expected"},
      {"model_checkpoint_path: a", "line 1: model_checkpoint_path is 'a', which is no path"},
      {"model_checkpoint_path: ''", "which is no path"},
      {"model_checkpoint_path: 'a\\000'", "which is no path"},
      {"model_checkpoint_path: 'a", "a string does not end, but the file ends"},
      {"model_checkpoint_path: 'a\n'", "a string does not end"},
      {"model_checkpoint_path: 'a\\", "a string does not end"},
      {"model_checkpoint_path: '\\q'", "there is no escape '\\\\q'"},
      {"model_checkpoint_path: '\\x'", "an escape stands for no byte"},
      {"model_checkpoint_path: '\\777'", "an escape stands for no byte"},
      {"model_checkpoint_path:", "a value is missing"},
      {"model_checkpoint_path: [", "a value is missing"},
      {"model_checkpoint_path: ['a'", "',' or ']' was expected"},
      {"model_checkpoint_path: ['a' 'b' 3]", "',' or ']' was expected"},
      {"model_checkpoint_path { }", "':' was expected"},
      {good + "unknown: { a: 1 }", "line 2: a value was expected at '{ a: 1 }'"},
      {good + good, "line 2: model_checkpoint_path is there twice"},
      {good + "last_preserved_timestamp: 0 last_preserved_timestamp: 0", "is there twice"},
      {good + "last_preserved_timestamp: 1.2.3", "'1.2.3'; it must be a finite number"},
      {good + "last_preserved_timestamp: '1'", "it must be a finite number"},
      {good + "last_preserved_timestamp: -inf", "it must be a finite number"},
      {good + "last_preserved_timestamp: 1e999", "it must be a finite number"},
      {good + "all_model_checkpoint_timestamps: [1, 2]", "2 timestamps for 1 checkpoints"},
      {good + "all_model_checkpoint_paths: 'b' all_model_checkpoint_timestamps: 1",
       "1 timestamps for 2 checkpoints (the latest counts, listed or not)"},
      {good + "\x1b[2J", "line 2: a field's name was expected at '\\x1b[2J'"},
      {good + ",,", "a field's name was expected"},
      {" crc32c: 0x1234\n" + good, "the checksum line lost its '#'"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_THAT(error_of(text), AllOf(StartsWith("'dir/state', line "), HasSubstr(expected)))
        << text;
  }
}

TEST(ParseCheckpointStateTest, BoundsWhatItReads) {
  std::string many = "model_checkpoint_path: 'a' all_model_checkpoint_paths: ['a'";
  for (size_t i = 1; i < kMostStatePaths; ++i) many += ",'a'";
  EXPECT_EQ(parse(many + "]").all_model_checkpoint_paths.size(), kMostStatePaths);
  EXPECT_THAT(error_of(many + ",'a']"), HasSubstr("more than 100000 all_model_checkpoint_paths"));
  EXPECT_THAT(error_of(std::string(kMostStateBytes + 1, ' ')), HasSubstr("16777217 bytes"));
}

TEST(ParseCheckpointStateTest, DetectsEveryChangedByte) {
  const std::string good = format_checkpoint_state(small_state());
  ASSERT_EQ(error_of(good), "");
  for (size_t at = 0; at < good.size(); ++at) {
    std::string text = good;
    for (int change = 1; change < 256; ++change) {
      text[at] = static_cast<char>(good[at] ^ change);
      ASSERT_NE(error_of(text), "") << "byte " << at << " changed: " << text;
    }
  }
}

TEST(ParseCheckpointStateTest, DetectsEveryTruncation) {
  const std::string good = format_checkpoint_state(small_state());
  for (size_t size = 0; size < good.size(); ++size) {
    ASSERT_NE(error_of(good.substr(0, size)), "") << "cut off after " << size << " bytes";
  }
  EXPECT_NE(error_of(good + " "), "");
}

TEST(ResolveCheckpointPathTest, StaysWithinTheDirectory) {
  const auto resolve = [](const std::string& directory, const std::string& path) {
    return resolve_checkpoint_path(directory, path, "file");
  };
  EXPECT_EQ(resolve("dir", "ckpt-1"), "dir/ckpt-1");
  EXPECT_EQ(resolve(".", "./ckpt-1"), "./ckpt-1");
  EXPECT_EQ(resolve("/dir", "/dir//ckpt-1"), "/dir/ckpt-1");
  EXPECT_EQ(resolve("/moved", "/dir/ckpt-1"), "/moved/ckpt-1");
  EXPECT_EQ(resolve("dir", "/anywhere/dir/ckpt-1"), "dir/ckpt-1");
  EXPECT_EQ(resolve("/dir", "/dir/../etc/passwd"), "/dir/passwd");
  EXPECT_EQ(resolve("/dir", "/directory/ckpt-1"), "/dir/ckpt-1");
  for (const char* path : {"../ckpt-1", "sub/ckpt-1", "/dir/sub/ckpt-1", "a/../../ckpt-1", "a/../b",
                           "..", "/..", "/a/..", "/", "."}) {
    EXPECT_THROW(resolve("/dir", path), DataLossError) << path;
  }
}

TEST(CheckpointStateFileTest, NamesCheckpointsRelativeToItsDirectory) {
  SimulatedFileSystem files;
  files.make_directories("dir");
  CheckpointState state{.model_checkpoint_path = "dir/ckpt-2",
                        .all_model_checkpoint_paths = {"./dir//ckpt-1", "dir/ckpt-2"}};
  write_checkpoint_state(files, "dir", state);
  EXPECT_THAT(files.content("dir/checkpoint"), HasSubstr("\nmodel_checkpoint_path: \"ckpt-2\"\n"));
  EXPECT_THAT(files.file_paths(), ElementsAre("/dir/checkpoint"));
  state.all_model_checkpoint_paths[0] = "dir/ckpt-1";
  EXPECT_EQ(read_checkpoint_state(files, "dir"), state);
  state.all_model_checkpoint_paths[0] = "dir/sub/ckpt-1";
  EXPECT_THROW(write_checkpoint_state(files, "dir", state), InvalidArgumentError);
}

TEST(CheckpointStateFileTest, ThereMayBeNone) {
  SimulatedFileSystem files;
  EXPECT_EQ(read_checkpoint_state(files, "dir"), std::nullopt);
  files.make_directories("dir");
  EXPECT_EQ(read_checkpoint_state(files, "dir"), std::nullopt);
}

TEST(CheckpointStateFileTest, MayHaveAnotherName) {
  SimulatedFileSystem files;
  write_checkpoint_state(files, ".", {.model_checkpoint_path = "a"}, {.name = "best"});
  EXPECT_EQ(read_checkpoint_state(files, "."), std::nullopt);
  EXPECT_EQ(read_checkpoint_state(files, ".", {.name = "best"})->model_checkpoint_path, "./a");
}

TEST(CheckpointStateFileTest, DamageNamesTheFile) {
  SimulatedFileSystem files;
  files.make_directories("dir");
  files.set_content("dir/checkpoint", "damaged");
  try {
    read_checkpoint_state(files, "dir");
    FAIL() << "no error";
  } catch (const DataLossError& error) {
    EXPECT_THAT(error.what(), StartsWith("'dir/checkpoint', line 1: "));
  }
  files.set_content("dir/checkpoint", std::string(kMostStateBytes + 1, ' '));
  EXPECT_THROW(read_checkpoint_state(files, "dir"), DataLossError);
}

TEST(CheckpointStateFileTest, FindsTheCheckpointsOfADirectoryThatWasMoved) {
  SimulatedFileSystem files;
  files.make_directories("new");
  files.set_content("new/checkpoint",
                    "model_checkpoint_path: '/old/ckpt-2'\n"
                    "all_model_checkpoint_paths: ['/old/ckpt-1', '/old/ckpt-2']\n");
  EXPECT_THROW(read_checkpoint_state(files, "new"), DataLossError) << "ckpt-2 is not there either";
  files.set_content("new/ckpt-2.index", "");
  const auto state = read_checkpoint_state(files, "new");
  EXPECT_EQ(state->model_checkpoint_path, "new/ckpt-2");
  EXPECT_THAT(state->all_model_checkpoint_paths, ElementsAre("new/ckpt-1", "new/ckpt-2"));
}

TEST(CheckpointStateFileTest, LeadsOutsideOnlyIfThatIsAllowed) {
  SimulatedFileSystem files;
  files.make_directories("dir");
  const CheckpointState outside{.model_checkpoint_path = "/other/ckpt-1",
                                .all_model_checkpoint_paths = {"/other/ckpt-1"}};
  EXPECT_THROW(write_checkpoint_state(files, "dir", outside), InvalidArgumentError);
  EXPECT_THROW(write_checkpoint_state(files, "dir", {.model_checkpoint_path = "dir/../a"}),
               InvalidArgumentError);
  write_checkpoint_state(files, "dir", outside, {.allow_outside = true});
  EXPECT_EQ(read_checkpoint_state(files, "dir", {.allow_outside = true}), outside);
  EXPECT_THROW(read_checkpoint_state(files, "dir"), DataLossError);
  files.set_content("dir/checkpoint", "model_checkpoint_path: '../other/ckpt-1'");
  EXPECT_THROW(read_checkpoint_state(files, "dir", {.allow_outside = true}), DataLossError);
}

TEST(CheckpointStateFileTest, AnEndlessListLosesItsOldest) {
  SimulatedFileSystem files;
  CheckpointState state{.model_checkpoint_path = "new", .all_model_checkpoint_paths = {"old"}};
  state.all_model_checkpoint_paths.resize(kMostStatePaths, "middle");
  state.all_model_checkpoint_paths.push_back("new");
  write_checkpoint_state(files, ".", state);
  const auto read = read_checkpoint_state(files, ".");
  EXPECT_EQ(read->all_model_checkpoint_paths.size(), kMostStatePaths);
  EXPECT_EQ(read->all_model_checkpoint_paths.front(), "./middle");
  EXPECT_EQ(read->all_model_checkpoint_paths.back(), "./new");
}

// The state of before or the new one, whatever happens at whichever call.
void expect_one_of_two(SimulatedFileSystem& files, int64_t call) {
  const auto state = read_checkpoint_state(files, "/");
  ASSERT_TRUE(state.has_value()) << call;
  EXPECT_TRUE(state->model_checkpoint_path == "/ckpt-1" ||
              state->model_checkpoint_path == "/ckpt-2")
      << call;
}

TEST(CheckpointStateFileTest, AnErrorAtAnyCallLeavesAWholeStateAndNothingElse) {
  for (int64_t call = 1;; ++call) {
    SimulatedFileSystem files;
    write_checkpoint_state(files, "/", {.model_checkpoint_path = "/ckpt-1"});
    const int64_t before = files.calls();
    files.set_faults({.fail_at = before + call, .error_number = ENOSPC});
    bool failed = false;
    try {
      write_checkpoint_state(files, "/", {.model_checkpoint_path = "/ckpt-2"});
    } catch (const ResourceExhaustedError&) {
      failed = true;
    }
    EXPECT_EQ(failed, files.calls() - before >= call);
    files.set_faults({});
    expect_one_of_two(files, call);
    EXPECT_THAT(files.file_paths(), ElementsAre("/checkpoint")) << call;
    if (!failed) break;
  }
}

TEST(CheckpointStateFileTest, AKillOrAPowerCutAtAnyCallLeavesAWholeState) {
  bool killed = true;
  for (int64_t call = 1; killed; ++call) {
    SimulatedFileSystem files;
    write_checkpoint_state(files, "/", {.model_checkpoint_path = "/ckpt-1"});
    files.set_faults({.kill_at = files.calls() + call});
    killed = false;
    try {
      write_checkpoint_state(files, "/", {.model_checkpoint_path = "/ckpt-2"});
    } catch (const SimulatedKill&) {
      killed = true;
    }
    expect_one_of_two(*files.after_kill(), call);
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const PowerCut cut{.content = Unsynced::kMixed, .entries = Unsynced::kMixed, .seed = seed};
      expect_one_of_two(*files.after_power_cut(cut), call);
    }
  }
}

TEST(HighestCheckpoint, IsNoTemporaryFile) {
  SimulatedFileSystem files;
  files.make_directories("dir");
  files.create(temporary_path("dir", "ckpt-7.index"));
  EXPECT_EQ(highest_checkpoint(files, "dir"), "");
  files.create("dir/ckpt-2.index");
  EXPECT_EQ(highest_checkpoint(files, "dir"), "dir/ckpt-2");
}

}  // namespace
}  // namespace cohort::internal

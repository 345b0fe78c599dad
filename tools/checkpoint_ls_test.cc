#include "cohort/core/error.h"
#include "cohort/train/bundle/checkpoint_state.h"
#include "tools/checkpoint_commands.h"
#include "tools/testing_checkpoints.h"

namespace cohort::tools {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

struct CheckpointLs : CheckpointCommandTest {
  std::string ls(const LsOptions& options, int exit_code = kExitOk) {
    EXPECT_EQ(list_checkpoints(files, options, out), exit_code);
    return out.str();
  }
};

TEST_F(CheckpointLs, ListsTheTensorsOfACheckpoint) {
  write_checkpoint(files, "dir/ckpt-1");
  const std::string text = ls({.path = "dir/ckpt-1"});
  EXPECT_THAT(text, HasSubstr("model/kernel                  float32  [2, 3]  24 bytes\n"));
  EXPECT_THAT(text,
              HasSubstr("model/table                   float32  [3, 2]  24 bytes   2 parts\n"));
  EXPECT_THAT(text, HasSubstr("step                          int64    []      8 bytes\n"));
  EXPECT_THAT(text, HasSubstr("words                         string   [2]"));
  EXPECT_THAT(text, HasSubstr("\n5 tensors, "));
  EXPECT_THAT(text, Not(HasSubstr(".ATTRIBUTES")));
}

TEST_F(CheckpointLs, TakesTheNameOfTheIndexToo) {
  write_checkpoint(files, "dir/ckpt-1");
  EXPECT_THAT(ls({.path = "dir/ckpt-1.index"}), HasSubstr("model/kernel"));
}

TEST_F(CheckpointLs, RawKeys) {
  write_checkpoint(files, "dir/ckpt-1");
  EXPECT_THAT(ls({.path = "dir/ckpt-1", .raw_keys = true}),
              HasSubstr("model/kernel/.ATTRIBUTES/VARIABLE_VALUE"));
}

TEST_F(CheckpointLs, ReadableNamesThatMeanTwoTensorsAreNotUsed) {
  {
    internal::BundleWriter bundle(files, "dir/ckpt");
    bundle.add("a", {internal::BundleType::kInt8, {1}}, "1");
    bundle.add(value_key("a"), {internal::BundleType::kInt8, {1}}, "2");
    bundle.finish();
  }
  EXPECT_THAT(ls({.path = "dir/ckpt"}), HasSubstr("a/.ATTRIBUTES/VARIABLE_VALUE"));
}

TEST_F(CheckpointLs, HostileKeysAreEscaped) {
  {
    internal::BundleWriter bundle(files, "dir/ckpt");
    bundle.add("\x1b[31mred\xff", {internal::BundleType::kInt8, {1}}, "1");
    bundle.finish();
  }
  EXPECT_THAT(ls({.path = "dir/ckpt"}), HasSubstr("\\x1b[31mred\\xff"));
  out.str("");
  const std::string json = ls({.path = "dir/ckpt", .json = true});
  EXPECT_THAT(json, HasSubstr(R"("\u001b[31mred)"));
  for (const char c : json) EXPECT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f));
}

TEST_F(CheckpointLs, TensorsAsJson) {
  write_checkpoint(files, "dir/ckpt-1");
  const std::string text = ls({.path = "dir/ckpt-1", .json = true});
  EXPECT_THAT(text, HasSubstr(R"("name": "model/table")"));
  EXPECT_THAT(text, HasSubstr(R"("key": "model/table/.ATTRIBUTES/VARIABLE_VALUE")"));
  EXPECT_THAT(text, HasSubstr(R"("parts": 2)"));
}

TEST_F(CheckpointLs, ListsTheCheckpointsOfADirectory) {
  for (const char* prefix : {"dir/ckpt-10", "dir/ckpt-9"}) write_checkpoint(files, prefix);
  internal::write_checkpoint_state(
      files, "dir",
      {.model_checkpoint_path = "dir/ckpt-10",
       .all_model_checkpoint_paths = {"dir/ckpt-8", "dir/ckpt-9", "dir/ckpt-10"},
       .all_model_checkpoint_timestamps = {}});
  const std::string text = ls({.path = "dir"});
  EXPECT_THAT(text, ContainsRegex("ckpt-9 +5 tensors +[0-9]+ bytes  -\n"
                                  "ckpt-10 +5 tensors +[0-9]+ bytes  -  latest\n"));
  EXPECT_THAT(text, HasSubstr("gone, although the state file lists it: 'ckpt-8'\n"));
  out.str("");
  const std::string json = ls({.path = "dir", .json = true});
  EXPECT_THAT(json, HasSubstr(R"("prefix": "dir/ckpt-10",
      "latest": true)"));
  EXPECT_THAT(json, HasSubstr("\"gone\": [\n    \"dir/ckpt-8\""));
}

TEST_F(CheckpointLs, DamageIsListedAndIsTheExitCode) {
  for (const char* prefix : {"dir/ckpt-1", "dir/ckpt-2"}) write_checkpoint(files, prefix);
  damage("dir/ckpt-1.index", 3);
  const std::string text = ls({.path = "dir"}, kExitBadData);
  EXPECT_THAT(text, ContainsRegex("ckpt-1 +damaged: 'dir/ckpt-1.index'"));
  EXPECT_THAT(text, ContainsRegex("ckpt-2 +5 tensors"));
  EXPECT_THROW(list_checkpoints(files, {.path = "dir/ckpt-1"}, out), DataLossError);
}

TEST_F(CheckpointLs, ADamagedStateFile) {
  write_checkpoint(files, "dir/ckpt-1");
  files.set_content("dir/checkpoint", "model_checkpoint_path: \"ck");
  const std::string text = ls({.path = "dir"}, kExitBadData);
  EXPECT_THAT(text, HasSubstr("ckpt-1"));
  EXPECT_THAT(text, HasSubstr("the state file is damaged: "));
}

TEST_F(CheckpointLs, NothingThere) {
  EXPECT_THROW(ls({.path = "dir"}), NotFoundError);
  EXPECT_THROW(ls({.path = "none"}), NotFoundError);
}

}  // namespace
}  // namespace cohort::tools

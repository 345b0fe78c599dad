#include "cohort/core/error.h"
#include "cohort/train/safetensors/safetensors_file.h"
#include "tools/checkpoint_commands.h"
#include "tools/testing_checkpoints.h"

namespace cohort::tools {
namespace {

using internal::SafetensorsReader;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

struct CheckpointExport : CheckpointCommandTest {
  CheckpointExport() { write_checkpoint(files, "dir/ckpt-1"); }

  SafetensorsReader exported(const std::vector<std::string>& globs = {}) {
    const ExportOptions options = {.path = "dir/ckpt-1", .output = "m.safetensors", .globs = globs};
    EXPECT_EQ(export_checkpoint(files, options, out), kExitOk);
    return {files.open("m.safetensors"), "m.safetensors"};
  }
  static std::vector<float> values(const SafetensorsReader& file, const std::string& name) {
    std::vector<float> result(6);
    file.read(file.header().tensors.at(name), result.data());
    return result;
  }
  static std::vector<std::string> names(const SafetensorsReader& file) {
    std::vector<std::string> result;
    for (const auto& [name, entry] : file.header().tensors) result.push_back(name);
    return result;
  }
};

TEST_F(CheckpointExport, WritesNumbersByReadableNames) {
  const SafetensorsReader file = exported();
  EXPECT_THAT(names(file), ElementsAre("model/kernel", "model/table", "step"));
  EXPECT_THAT(file.header().metadata, ElementsAre(Pair("format", "pt")));
  EXPECT_THAT(file.header().tensors.at("model/table").shape, ElementsAre(3, 2));
  EXPECT_THAT(values(file, "model/kernel"), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(values(file, "model/table"), ElementsAre(10, 11, 12, 13, 14, 15));
  EXPECT_THAT(out.str(), HasSubstr("left out 'words': string"));
  EXPECT_THAT(out.str(), HasSubstr("wrote 'm.safetensors': 3 tensors, 56 bytes\n"));
}

TEST_F(CheckpointExport, OnlyWhatIsAskedFor) {
  EXPECT_THAT(names(exported({"model/*"})), ElementsAre("model/kernel", "model/table"));
  EXPECT_THAT(names(exported({"*kernel", "step"})), ElementsAre("model/kernel", "step"));
  EXPECT_EQ(out.str().find("left out"), std::string::npos);
}

TEST_F(CheckpointExport, NothingToExport) {
  const ExportOptions options = {.path = "dir/ckpt-1", .output = "m", .globs = {"none*"}};
  EXPECT_THROW(export_checkpoint(files, options, out), NotFoundError);
  EXPECT_FALSE(files.exists("m"));
}

TEST_F(CheckpointExport, DamageLeavesTheOldFile) {
  files.set_content("m.safetensors", "old");
  damage("dir/ckpt-1.data-00000-of-00001", 0);
  const ExportOptions options = {.path = "dir/ckpt-1", .output = "m.safetensors", .globs = {}};
  EXPECT_THROW(export_checkpoint(files, options, out), DataLossError);
  EXPECT_EQ(files.content("m.safetensors"), "old");
  EXPECT_THAT(files.list("."), UnorderedElementsAre("dir", "m.safetensors"));
}

}  // namespace
}  // namespace cohort::tools

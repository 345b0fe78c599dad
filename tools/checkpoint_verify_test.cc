#include "cohort/core/error.h"
#include "tools/checkpoint_commands.h"
#include "tools/testing_checkpoints.h"

namespace cohort::tools {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

struct CheckpointVerify : CheckpointCommandTest {
  CheckpointVerify() {
    for (const char* prefix : {"dir/ckpt-1", "dir/ckpt-2"}) write_checkpoint(files, prefix);
  }

  std::string verify(const std::string& path, int exit_code) {
    EXPECT_EQ(verify_checkpoints(files, {.path = path}, out), exit_code) << out.str();
    return out.str();
  }
};

TEST_F(CheckpointVerify, WholeCheckpoints) {
  EXPECT_THAT(verify("dir/ckpt-1", kExitOk),
              ContainsRegex("^OK 'dir/ckpt-1': 5 tensors, .* bytes\n$"));
  out.str("");
  EXPECT_THAT(verify("dir", kExitOk), ContainsRegex("OK 'dir/ckpt-1'.*\nOK 'dir/ckpt-2'"));
}

TEST_F(CheckpointVerify, ReportsEveryDamageAndGoesOn) {
  const std::string data = "dir/ckpt-1.data-00000-of-00001";
  damage(data, 0);   // the kernel
  damage(data, 47);  // the table's second part
  const std::string text = verify("dir", kExitBadData);
  EXPECT_THAT(text, HasSubstr("DAMAGED 'dir/ckpt-1': 2 problems\n"));
  EXPECT_THAT(text,
              HasSubstr("  '" + data +
                        "', bytes 0 to 24: tensor 'model/kernel/.ATTRIBUTES/VARIABLE_VALUE'"));
  EXPECT_THAT(text, HasSubstr("  '" + data +
                              "', bytes 40 to 48: tensor "
                              "'model/table/.ATTRIBUTES/VARIABLE_VALUE'"));
  EXPECT_THAT(text, HasSubstr("OK 'dir/ckpt-2'"));
}

TEST_F(CheckpointVerify, EveryFlippedBitIsFound) {
  for (const char* name : {"dir/ckpt-1.data-00000-of-00001", "dir/ckpt-1.index"}) {
    const size_t size = files.content(name).size();
    for (size_t byte = 0; byte < size; ++byte) {
      damage(name, byte);
      EXPECT_THAT(verify("dir/ckpt-1", kExitBadData), HasSubstr("dir/ckpt-1.")) << byte;
      damage(name, byte);
      out.str("");
    }
  }
}

TEST_F(CheckpointVerify, MissingFiles) {
  files.remove("dir/ckpt-1.data-00000-of-00001");
  EXPECT_THAT(verify("dir", kExitBadData), HasSubstr("DAMAGED 'dir/ckpt-1': 1 problem\n"));
}

TEST_F(CheckpointVerify, AGraphWhoseValuesAreMissing) {
  {
    internal::BundleWriter bundle(files, "dir/part");
    const std::string graph = graph_bytes();
    const std::vector<std::string_view> graphs = {graph};
    bundle.add_strings(internal::kObjectGraphKey, {}, graphs);
    bundle.finish();
  }
  EXPECT_THAT(verify("dir/part", kExitBadData),
              HasSubstr("refers to tensor 'step/.ATTRIBUTES/VARIABLE_VALUE', which is missing"));
}

TEST_F(CheckpointVerify, NothingToVerify) {
  files.make_directories("empty");
  EXPECT_THROW(verify_checkpoints(files, {.path = "empty"}, out), NotFoundError);
  EXPECT_THROW(verify_checkpoints(files, {.path = "none"}, out), NotFoundError);
}

}  // namespace
}  // namespace cohort::tools

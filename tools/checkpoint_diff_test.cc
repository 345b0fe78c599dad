#include <cmath>
#include <limits>

#include "cohort/core/error.h"
#include "tools/checkpoint_commands.h"
#include "tools/testing_checkpoints.h"

namespace cohort::tools {
namespace {

using internal::BundleType;
using testing::HasSubstr;

struct CheckpointDiff : CheckpointCommandTest {
  std::string diff(int exit_code, double tolerance = 0) {
    out.str("");
    EXPECT_EQ(diff_checkpoints(files, {.a = "dir/a", .b = "dir/b", .tolerance = tolerance}, out),
              exit_code)
        << out.str();
    return out.str();
  }

  template <class T>
  void write(const std::string& prefix, BundleType type, const std::vector<T>& values) {
    internal::BundleWriter bundle(files, prefix);
    bundle.add("w", {type, {static_cast<int64_t>(values.size())}}, bytes_of(values));
    bundle.finish();
  }
};

TEST_F(CheckpointDiff, EqualCheckpoints) {
  write_checkpoint(files, "dir/a", {.kernel = {0, 1, 2, 3, std::nanf("1"), 5}});
  write_checkpoint(files, "dir/b", {.kernel = {-0.f, 1, 2, 3, -std::nanf("2"), 5}});
  EXPECT_EQ(diff(kExitOk), "4 tensors equal, 0 different\n");
}

TEST_F(CheckpointDiff, OtherValues) {
  write_checkpoint(files, "dir/a");
  write_checkpoint(files, "dir/b", {.kernel = {0, 1, 2.5, 3, 4, 4}, .step = {9}});
  const std::string text = diff(kExitDifferent);
  EXPECT_THAT(text, HasSubstr("other values: model/kernel  2 of 6 elements, by 1 at most, "
                              "relatively 0.2\n"));
  EXPECT_THAT(text, HasSubstr("other values: step  1 of 1 element, by 2 at most"));
  EXPECT_THAT(text, HasSubstr("\n2 tensors equal, 2 different\n"));
}

TEST_F(CheckpointDiff, ToleratesWhatItIsToldTo) {
  write<float>("dir/a", BundleType::kFloat32, {1, 2});
  write<float>("dir/b", BundleType::kFloat32, {1.25, 2.5});
  EXPECT_THAT(diff(kExitDifferent, 0.25), HasSubstr("1 of 2 elements"));
  EXPECT_EQ(diff(kExitOk, 0.5), "1 tensor equal, 0 different\n");
}

TEST_F(CheckpointDiff, NumbersThatHaveNoDistance) {
  const float infinity = std::numeric_limits<float>::infinity();
  write<float>("dir/a", BundleType::kFloat32, {infinity, infinity, 0});
  write<float>("dir/b", BundleType::kFloat32, {infinity, -infinity, std::nanf("")});
  EXPECT_THAT(diff(kExitDifferent, 1e300),
              HasSubstr("2 of 3 elements, by inf at most, relatively inf"));
}

TEST_F(CheckpointDiff, IntegersAreComparedExactly) {
  write<int64_t>("dir/a", BundleType::kInt64, {INT64_MAX, INT64_MAX});
  write<int64_t>("dir/b", BundleType::kInt64, {INT64_MAX - 1, INT64_MIN});
  EXPECT_THAT(diff(kExitDifferent, 1), HasSubstr("1 of 2 elements, by 1.84467e+19 at most"));
}

TEST_F(CheckpointDiff, SixteenBitComplexAndBool) {
  write<uint16_t>("dir/a", BundleType::kFloat16, {0x3c00});
  write<uint16_t>("dir/b", BundleType::kFloat16, {0x4000});
  EXPECT_THAT(diff(kExitDifferent), HasSubstr("by 1 at most, relatively 0.5"));
  write<float>("dir/a", BundleType::kComplex64, {});
  write<float>("dir/b", BundleType::kComplex64, {});
  EXPECT_EQ(diff(kExitOk), "1 tensor equal, 0 different\n");
  write<uint8_t>("dir/a", BundleType::kBool, {0, 1});
  write<uint8_t>("dir/b", BundleType::kBool, {1, 1});
  EXPECT_THAT(diff(kExitDifferent), HasSubstr("1 of 2 elements"));
}

TEST_F(CheckpointDiff, OtherTypesAndTensors) {
  write<float>("dir/a", BundleType::kFloat32, {1});
  write<double>("dir/b", BundleType::kFloat64, {1});
  EXPECT_EQ(diff(kExitDifferent),
            "other type: w  float32 [1], float64 [1]\n0 tensors equal, 1 different\n");
  write_checkpoint(files, "dir/b");
  const std::string text = diff(kExitDifferent);
  EXPECT_THAT(text, HasSubstr("only in the first: w  float32 [1]\n"));
  EXPECT_THAT(text, HasSubstr("only in the second: step  int64 []\n"));
}

TEST_F(CheckpointDiff, DamageAndWhatIsNotThere) {
  write_checkpoint(files, "dir/a");
  EXPECT_THROW(diff(kExitOk), NotFoundError);
  write_checkpoint(files, "dir/b");
  damage("dir/b.data-00000-of-00001", 0);
  EXPECT_THROW(diff(kExitOk), DataLossError);
}

}  // namespace
}  // namespace cohort::tools

#include "cohort/collective/communication_options.h"

#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"

namespace cohort::distribute::experimental {
namespace {

using internal::expect_error;
using std::chrono::milliseconds;
using enum CommunicationImplementation;

TEST(CommunicationOptions, NamesCountWhateverTheirCase) {
  EXPECT_EQ(communication_implementation("ring"), RING);
  EXPECT_EQ(communication_implementation("Nccl"), NCCL);
  for (const auto value : {AUTO, RING, NCCL}) {
    EXPECT_EQ(communication_implementation(communication_implementation_name(value)), value);
  }
  expect_error<InvalidArgumentError>([] { communication_implementation("MPI"); },
                                     "no communication implementation 'MPI'; there are AUTO, RING");
  expect_error<InvalidArgumentError>([] { communication_implementation(""); }, "''");
}

TEST(CommunicationOptions, NegativeFieldsAreRefused) {
  CommunicationOptions().check();
  CommunicationOptions{.bytes_per_pack = 1, .timeout = milliseconds(1)}.check();
  expect_error<InvalidArgumentError>([] { CommunicationOptions{.bytes_per_pack = -1}.check(); },
                                     "bytes_per_pack is -1");
  expect_error<InvalidArgumentError>(
      [] { CommunicationOptions{.timeout = milliseconds(-5)}.check(); }, "timeout is -5 ms");
  expect_error<InvalidArgumentError>(
      [] {
        CommunicationOptions{.implementation = static_cast<CommunicationImplementation>(9)}.check();
      },
      "number 9");
}

TEST(CommunicationOptions, ACallsFieldWinsOnlyIfItIsNotAtItsDefault) {
  const CommunicationOptions own{
      .bytes_per_pack = 100, .timeout = milliseconds(7), .implementation = RING};
  const auto expect = [](const CommunicationOptions& options, int64_t bytes, int timeout,
                         CommunicationImplementation implementation) {
    EXPECT_EQ(options.bytes_per_pack, bytes);
    EXPECT_EQ(options.timeout, milliseconds(timeout));
    EXPECT_EQ(options.implementation, implementation);
  };
  expect(own.merged_with({}), 100, 7, RING);
  expect(own.merged_with({.bytes_per_pack = 5}), 5, 7, RING);
  expect(own.merged_with({.timeout = milliseconds(9)}), 100, 9, RING);
  expect(own.merged_with({.implementation = NCCL}), 100, 7, NCCL);
  expect(CommunicationOptions().merged_with(own), 100, 7, RING);
  EXPECT_FALSE(own.merged_with({}).trusted_network);
  EXPECT_TRUE(own.merged_with({.trusted_network = true}).trusted_network);
  EXPECT_TRUE(CommunicationOptions{.trusted_network = true}.merged_with(own).trusted_network);
}

TEST(CommunicationOptions, TheOriginalsDeprecatedNameIsTheSame) {
  EXPECT_EQ(CollectiveHints{.bytes_per_pack = 3}.bytes_per_pack, 3);
}

}  // namespace
}  // namespace cohort::distribute::experimental

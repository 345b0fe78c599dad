#include "cohort/distribute/step/print.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <sstream>
#include <thread>

#include "cohort/core/structure/ragged_tensor.h"
#include "cohort/core/structure/sparse_tensor.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/ops/make_tensor.h"

namespace cohort::distribute {
namespace {

template <class... Values>
std::string as_printed(const Values&... values) {
  std::ostringstream out;
  print({.output_stream = &out}, values...);
  return out.str();
}

TEST(Print, TensorsAsTensorFlowPrintsThem) {
  EXPECT_EQ(as_printed(constant({1, 2})), "[1 2]\n");
  EXPECT_EQ(as_printed(constant({{1, 2}, {3, 4}})), "[[1 2]\n [3 4]]\n");
  EXPECT_EQ(as_printed(zeros({2, 1, 1})), "[[[0]]\n\n [[0]]]\n");
  EXPECT_EQ(as_printed(range(10)), "[0 1 2 ... 7 8 9]\n");
  EXPECT_EQ(as_printed(range(6)), "[0 1 2 3 4 5]\n");
  EXPECT_EQ(as_printed(zeros({0})), "[]\n");
  EXPECT_EQ(as_printed(constant({1., 0.1, 1. / 3})), "[1 0.1 0.333333343]\n");
  EXPECT_EQ(as_printed(constant({true, false})), "[1 0]\n");
  EXPECT_EQ(as_printed(constant({"a", "b"})), "[\"a\" \"b\"]\n");
}

TEST(Print, SeveralValues) {
  EXPECT_EQ(as_printed("loss:", constant(0.5), 3, 1.0, true), "loss: 0.5 3 1.0 True\n");
  EXPECT_EQ(as_printed(tuple(constant(1), constant({2}))), "(1, [2])\n");
  EXPECT_EQ(as_printed(dict({{"x", constant(1)}})), "{'x': 1}\n");
  EXPECT_EQ(as_printed(std::vector<Tensor>{constant({1}), constant({2})}), "([1], [2])\n");
  EXPECT_EQ(as_printed(std::vector<std::string>{"a", "b"}), "[\"a\" \"b\"]\n");
  EXPECT_EQ(as_printed(PerReplica<Tensor>{constant({1}), constant({2})}),
            "PerReplica:{\n  0: [1],\n  1: [2]\n}\n");
  std::ostringstream out;
  print({.output_stream = &out, .end = "!", .sep = "-", .summarize = 1}, 1, range(3));
  EXPECT_EQ(out.str(), "1-[0 ... 2]!");
  print({.output_stream = &out, .summarize = -1}, range(8));
  EXPECT_THAT(out.str(), ::testing::EndsWith("[0 1 2 3 4 5 6 7]\n"));
}

TEST(Print, RaggedAndSparseTensorsAsTensorFlowPrintsThem) {
  const RaggedTensor ragged = RaggedTensor::from_row_lengths(range(2), {2, 0});
  EXPECT_EQ(as_printed(ragged), "[[0, 1], []]\n");
  EXPECT_EQ(as_printed(dict({{"ids", ragged}})), "{'ids': [[0, 1], []]}\n");
  EXPECT_EQ(as_printed(RaggedTensor::from_row_lengths(range(8), {8})),
            "[[0, 1, 2, ..., 5, 6, 7]]\n");
  EXPECT_EQ(as_printed(RaggedTensor::from_row_lengths(constant({0.5, 1.}), {1, 1})),
            "[[0.500000], [1.000000]]\n");
  EXPECT_EQ(as_printed(RaggedTensor::from_row_lengths(StringTensor({"a", "b"}), {1, 1})),
            "[['a'], ['b']]\n");
  EXPECT_EQ(as_printed(RaggedTensor::from_row_lengths(range(4).reshape({2, 2}), {2})),
            "[[[0, 1], [2, 3]]]\n");
  const std::string sparse = "'SparseTensor(indices=[[0 0]\n [0 1]], values=[0 1], shape=[2 2])'\n";
  EXPECT_EQ(as_printed(sparse_structure(ragged.to_sparse())), sparse);
  EXPECT_EQ(as_printed(ragged.to_sparse()), sparse);
  EXPECT_EQ(as_printed(dict({{"$row", range(2)}})), "[0 1]\n") << "a row of a ragged batch";
}

TEST(Print, InAStepInReplicaOrder) {
  const MirroredStrategy strategy = mirrored(3);
  std::ostringstream out;
  std::promise<void> last_printed;
  strategy.run([&](ReplicaContext& replica) {
    const int id = replica.replica_id_in_sync_group();
    if (id == 0) last_printed.get_future().wait();  // the order in time is the reverse
    print({.output_stream = &out}, "first of", id);
    print({.output_stream = &out}, "second of", id);
    if (id == 2) last_printed.set_value();
  });
  EXPECT_EQ(out.str(),
            "first of 0\nsecond of 0\nfirst of 1\nsecond of 1\nfirst of 2\nsecond of 2\n");
}

TEST(Print, MergeCallSeparatesWhatIsPrintedBeforeAndAfter) {
  const MirroredStrategy strategy = mirrored(2);
  std::ostringstream out;
  strategy.run([&](ReplicaContext& replica) {
    print({.output_stream = &out}, "before", replica.replica_id_in_sync_group());
    replica.merge_call([&](Strategy&) { print({.output_stream = &out}, "between"); });
    print({.output_stream = &out}, "after", replica.replica_id_in_sync_group());
  });
  EXPECT_EQ(out.str(), "before 0\nbefore 1\nbetween\nafter 0\nafter 1\n");
}

TEST(Print, OfAFailedStepIsNotLost) {
  const MirroredStrategy strategy = mirrored(2);
  std::ostringstream out;
  EXPECT_THROW(strategy.run([&](ReplicaContext& replica) {
    if (replica.replica_id_in_sync_group() == 0) return;
    print({.output_stream = &out}, "the last words of", 1);
    throw InvalidArgumentError("enough");
  }),
               InvalidArgumentError);
  EXPECT_EQ(out.str(), "the last words of 1\n");
}

TEST(Print, OfAReplicaThatWasGivenUpIsWrittenAtOnce) {
  const MirroredStrategy strategy = mirrored(2);
  std::promise<void> given_up, printed;
  auto out = std::make_unique<std::ostringstream>();
  EXPECT_THROW(strategy.run(RunOptions{.timeout = std::chrono::milliseconds(20)},
                            [&](ReplicaContext& replica) {
                              if (replica.replica_id_in_sync_group() == 0) return;
                              given_up.get_future().wait();
                              print({.output_stream = out.get()}, "late");
                              printed.set_value();
                            }),
               DeadlineExceededError);
  given_up.set_value();
  printed.get_future().wait();
  EXPECT_EQ(out->str(), "late\n");
  out.reset();  // no later step writes to it
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (bool returned = false; !returned;) {
    try {
      strategy.run([] {});
      returned = true;
    } catch (const FailedPreconditionError&) {  // the replica is about to return
      ASSERT_LT(std::chrono::steady_clock::now(), deadline);
      std::this_thread::yield();
    }
  }
}

TEST(Print, GoesToStandardError) {
  ::testing::internal::CaptureStderr();
  print("x =", constant(1));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "x = 1\n");
}

}  // namespace
}  // namespace cohort::distribute

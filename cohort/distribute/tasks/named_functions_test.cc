// Servers of one process, real sockets between them.
#include "cohort/distribute/tasks/named_functions.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/cluster/launch/free_ports.h"
#include "cohort/core/program/task.h"
#include "cohort/distribute/strategies/one_device_strategy.h"
#include "cohort/distribute/tasks/structure_message.h"

namespace cohort::distribute {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

struct NamedFunctionsTest : ::testing::Test {
  NamedFunctionsTest() {
    for (Server* server : {&zero, &one}) server->coordination().wait_for_start();
  }

  Server make(int worker) const {
    return Server(spec, {.job_name = "worker",
                         .task_index = worker,
                         .start_timeout = 20s,
                         .stop_on_signals = false});
  }

  const internal::FreePorts ports = internal::pick_free_ports(2);
  const train::ClusterSpec spec{
      {{"worker",
        {"127.0.0.1:" + std::to_string(ports[0]), "127.0.0.1:" + std::to_string(ports[1])}}}};
  Server zero = make(0);
  Server one = make(1);
  const TaskId worker1{"worker", 1};
  NamedFunctions functions;
};

TEST_F(NamedFunctionsTest, TakeAndReturnWhatStepsDo) {
  const NamedFunction scale =
      functions.add("scale", [](const Tensor& x, int64_t factor) { return x * factor; });
  functions.serve(one);
  const NamedFunction name = functions.add("name", [](const std::string& greeting) {
    return greeting + " from " + internal::Task::current().to_string();
  });
  const NamedFunction nothing = functions.add("nothing", [](const Structure&) {});
  const Tensor x = at::arange(6).reshape({2, 3});
  const Structure scaled = scale.call(zero, worker1, tuple(x, 3), {.timeout = 20s});
  EXPECT_TRUE(at::equal(scaled.tensor(), x * 3));
  scale.call(zero, worker1, tuple(x, 3), {.timeout = std::chrono::milliseconds::max()});
  EXPECT_TRUE(at::equal(scale(tuple(x, 2)).tensor(), x * 2));
  const Structure greeting =
      name.call(zero, worker1, tuple(StringTensor(std::vector<std::string>{"hello"}, {})));
  EXPECT_THAT(internal::str(greeting), HasSubstr("hello from /job:worker/task:1"));
  EXPECT_EQ(internal::str(nothing.call(one, worker1, dict({{"a", tuple(x, x)}}))), "()");
}

TEST_F(NamedFunctionsTest, ConjugatesComeAsTheyAre) {
  const NamedFunction conjugate =
      functions.add("conjugate", [](const Tensor& x) { return x.conj(); });
  functions.serve(one);
  const Tensor x = at::complex(at::full({2}, 1.0f), at::full({2}, 2.0f));
  const Structure once = conjugate.call(zero, worker1, tuple(x), {.timeout = 20s});
  EXPECT_TRUE(at::equal(once.tensor(), x.conj().resolve_conj()));
  const Structure twice = conjugate.call(zero, worker1, tuple(x.conj()), {.timeout = 20s});
  EXPECT_TRUE(at::equal(twice.tensor(), x));
}

TEST_F(NamedFunctionsTest, ErrorsComeWithTheirClassAndTask) {
  const NamedFunction fails = functions.add(
      "fails", [](const Tensor&) -> Tensor { throw DataLossError("shard 7 is torn"); });
  const NamedFunction pair =
      functions.add("pair", [](const Tensor& x, const Tensor&) { return x; });
  functions.serve(one);
  try {
    fails.call(zero, worker1, tuple(1.0));
    ADD_FAILURE() << "no error";
  } catch (const DataLossError& error) {
    EXPECT_STREQ(error.what(), "shard 7 is torn");
    EXPECT_EQ(error.task(), "/job:worker/task:1");
  }
  EXPECT_THROW(pair.call(zero, worker1, tuple(1.0)), InvalidArgumentError);
  // Task 0 serves none.
  EXPECT_THROW(pair.call(one, {"worker", 0}, tuple(1.0, 2.0)), NotFoundError);
  NamedFunctions others;
  const NamedFunction unknown = others.add("unknown", [](const Tensor& x) { return x; });
  try {
    unknown.call(zero, worker1, tuple(1.0));
    ADD_FAILURE() << "no error";
  } catch (const NotFoundError& error) {
    EXPECT_THAT(error.what(), HasSubstr("serves no function 'unknown'; it serves: 'fails' 'pair'"));
  }
}

TEST_F(NamedFunctionsTest, ErrorsOfLibtorchAreShortAndTyped) {
  const NamedFunction undefined = functions.add("undefined", [] { return Tensor(); });
  const NamedFunction shapes =
      functions.add("shapes", [] { return at::full({2}, 1.) + at::full({3}, 1.); });
  functions.serve(one);
  for (const NamedFunction& function : {undefined, shapes}) {
    EXPECT_THAT([&] { function.call(zero, worker1, tuple(), {.timeout = 20s}); },
                ::testing::ThrowsMessage<InvalidArgumentError>(::testing::AllOf(
                    HasSubstr(function.name()), ::testing::Not(HasSubstr("frame")))));
  }
}

TEST_F(NamedFunctionsTest, OfAStrategyRunItsSteps) {
  const OneDeviceStrategy strategy("CPU:0");
  const NamedFunction step = strategy.function("step", [&](const Tensor& x) {
    return strategy.reduce(ReduceOp::SUM,
                           strategy.run([](const Tensor& mine) { return mine * 2; }, x));
  });
  strategy.serve(one);
  EXPECT_EQ(step.call(zero, worker1, tuple(4.0)).tensor().item<double>(), 8);
}

TEST_F(NamedFunctionsTest, NamesAreCheckedAndUnique) {
  functions.add("f", [](const Tensor& x) { return x; });
  EXPECT_THROW(functions.add("f", [](const Tensor& x) { return x; }), AlreadyExistsError);
  EXPECT_THROW(functions.add("", [](const Tensor& x) { return x; }), InvalidArgumentError);
  EXPECT_THROW(functions.add("\xff", [](const Tensor& x) { return x; }), InvalidArgumentError);
  functions.serve(one);
  EXPECT_THROW(functions.serve(one), AlreadyExistsError);
}

TEST(StructureMessage, GoesThereAndBack) {
  const Structure sent = dict({{"numbers", tuple(at::arange(3), at::full({2, 0}, 1.5), true)},
                               {"text", StringTensor({"a", "", "\n"}, {3})},
                               {"empty", tuple()}});
  const Structure received = internal::to_structure(internal::to_message(sent), "a test");
  EXPECT_EQ(sent.first_difference(received), std::nullopt);
  EXPECT_EQ(internal::str(sent), internal::str(received));
}

TEST(StructureMessage, RefusesWhatDoesNotFit) {
  internal::rpc::Message message = internal::to_message(tuple(at::arange(3), 1));
  message.bulk.pop_back();
  EXPECT_THROW(internal::to_structure(message, "a test"), InvalidArgumentError);
  message = internal::to_message(tuple(at::arange(3)));
  message.bulk[0].size -= 1;
  EXPECT_THROW(internal::to_structure(message, "a test"), InvalidArgumentError);
  message = internal::to_message(Structure(at::arange(3)));
  message.bulk.push_back(message.bulk[0]);
  EXPECT_THROW(internal::to_structure(message, "a test"), InvalidArgumentError);
  message.control = "\x1b";
  EXPECT_THROW(internal::to_structure(message, "a test"), DataLossError);
  EXPECT_THROW(internal::to_message(Structure(at::arange(3).to_sparse())), UnimplementedError);
}

}  // namespace
}  // namespace cohort::distribute

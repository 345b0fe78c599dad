// What users do wrong with fit, under every strategy: each mistake is an error of its class that
// says what was wrong, in every task, within seconds; or training goes on, and says so.
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <cohort/cohort.h>
#include <cohort/core/testing_file_size_limit.h>
#include <cohort/testing/multi_process_main.h>
#include <cohort/testing/multi_process_runner.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cohort {
namespace {

namespace callbacks = keras::callbacks;
namespace layers = keras::layers;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::MultiProcessRunner;
using testing::TaskId;

constexpr int64_t kRows = 16;
constexpr int64_t kBatch = 4;

struct Classifier {
  Classifier()
      : model({layers::Dense(512, {.activation = "relu", .name = "hidden"}), layers::Dense(3)}),
        x(at::ones({kRows, 5})),
        y(at::zeros({kRows}, int64)) {
    compile();
  }
  void compile(const keras::MetricList& metrics = {"accuracy"}) const {
    model.compile({.optimizer = keras::optimizers::SGD(0.01),
                   .loss = keras::losses::SparseCategoricalCrossentropy({.from_logits = true}),
                   .metrics = metrics});
  }
  std::string fit(const std::vector<callbacks::CallbackArgument>& list = {}, int epochs = 1) const {
    const keras::History history = model.fit(x, y,
                                             {.batch_size = kBatch,
                                              .epochs = epochs,
                                              .verbose = 0,
                                              .callbacks = list,
                                              .shuffle = false});
    return internal::str("epochs ", history.epoch.size());
  }

  keras::Sequential model;
  Tensor x;
  Tensor y;
};

// Each returns what it comes to where nothing is thrown. `directory` is the test's.
using Mistake = std::function<std::string(const std::string& directory)>;

const std::map<std::string, Mistake>& mistakes() {
  static const std::map<std::string, Mistake> all = {
      {"shape",
       [](const std::string&) {
         Classifier one;
         one.fit();
         one.x = at::ones({kRows, 6});
         return one.fit();
       }},
      {"label",  // in a row that one replica sees
       [](const std::string&) {
         Classifier one;
         one.y[7] = 3;
         return one.fit();
       }},
      {"metric",
       [](const std::string&) {
         const Classifier one;
         one.compile({"acuracy"});
         return one.fit();
       }},
      {"loss",
       [](const std::string&) {
         const Classifier one;
         one.model.compile({.optimizer = "sgd", .loss = "mean_square_error"});
         return one.fit();
       }},
      {"optimizer",
       [](const std::string&) {
         const Classifier one;
         one.model.compile({.optimizer = "adm", .loss = "mse"});
         return one.fit();
       }},
      {"rank",
       [](const std::string&) {
         Classifier one;
         one.compile({"mse"});
         return one.fit();
       }},
      {"empty",
       [](const std::string&) {
         const Classifier one;
         one.model.fit(data::Dataset::from_tensor_slices(tuple(one.x, one.y)).take(0).batch(2),
                       {.verbose = 0});
         return std::string("nothing was thrown");
       }},
      {"labels",
       [](const std::string&) {
         const Classifier one;
         one.model.fit(data::Dataset::from_tensor_slices(tuple(one.x, one.y)).batch(2), one.y,
                       {.verbose = 0});
         return std::string("nothing was thrown");
       }},
      {"batch",
       [](const std::string&) {
         const Classifier one;
         one.model.train_on_batch(one.x, one.y.slice(0, 0, 3));
         return std::string("nothing was thrown");
       }},
      {"endless",
       [](const std::string&) {
         const Classifier one;
         one.model.fit(data::Dataset::from_tensor_slices(tuple(one.x, one.y)).batch(2).repeat(),
                       {.verbose = 0});
         return std::string("nothing was thrown");
       }},
      {"early",
       [](const std::string&) {
         const Classifier one;
         const keras::History history =
             one.model.fit(data::Dataset::from_tensor_slices(tuple(one.x, one.y)).batch(kBatch),
                           {.epochs = 3, .verbose = 0, .steps_per_epoch = 3});
         return internal::str("epochs ", history.epoch.size());
       }},
      {"nan",
       [](const std::string&) {
         Classifier one;
         one.x[5] = std::numeric_limits<float>::quiet_NaN();
         return one.fit({callbacks::TerminateOnNaN()}, 3);
       }},
      {"callback",
       [](const std::string&) {
         return Classifier().fit({callbacks::LambdaCallback(
             {.on_train_batch_end = [](int64_t batch, const keras::Logs&) {
               if (batch == 1) throw DataLossError("record 7 is damaged");
             }})});
       }},
      {"chiefs_callback",  // which one task alone calls
       [](const std::string&) {
         const Classifier one;
         const auto strategy = distribute::get_strategy();
         return one.fit(
             {callbacks::LambdaCallback({.on_epoch_end =
                                             [&](int64_t, keras::Logs&) {
                                               if (strategy.extended().should_save_summary())
                                                 throw DataLossError("record 7 is damaged");
                                             }})},
             2);
       }},
      {"disk",
       [](const std::string& directory) {
         std::optional<internal::FileSizeLimit> full;
         callbacks::LambdaCallback fills(
             {.on_epoch_begin =
                  [&](int64_t epoch) {
                    full.reset();
                    if (epoch == 1) full.emplace(16000);
                  },
              .on_train_end = [&](const keras::Logs&) { full.reset(); }});
         const Classifier one;
         return one.fit({fills, callbacks::ModelCheckpoint(
                                    {.filepath = directory + "/{epoch}", .asynchronous = false})},
                        3);
       }},
      {"second",  // run in one directory
       [](const std::string& directory) {
         Classifier().fit({callbacks::ModelCheckpoint(directory + "/model")});
         return Classifier().fit({callbacks::ModelCheckpoint(directory + "/model")});
       }},
  };
  return all;
}

// Class and text of what it ends with.
std::string outcome_of(const std::string& mistake, const std::string& directory) {
  try {
    return mistakes().at(mistake)(directory);
  } catch (const Error& error) {
    return internal::str(code_name(error.code()), ": ", error.what());
  }
}

distribute::ServerOptions quick() {
  return {.keepalive_time = seconds(1),
          .keepalive_timeout = seconds(1),
          .start_timeout = seconds(40),
          .heartbeat_interval = milliseconds(500),
          .heartbeat_timeout = seconds(2)};
}

// arguments: the mistake, the strategy, a directory.
std::string run_task(const std::vector<std::string>& arguments) {
  const distribute::Strategy strategy = [&]() -> distribute::Strategy {
    if (arguments.at(1) == "workers") {
      return distribute::MultiWorkerMirroredStrategy({.server_options = quick()});
    }
    const distribute::cluster_resolver::TFConfigClusterResolver resolver;
    return distribute::ParameterServerStrategy(resolver,
                                               {.timeout = seconds(20), .server_options = quick()});
  }();
  const auto scope = strategy.scope();
  return outcome_of(arguments.at(0), arguments.at(2));
}

// ---- The tests.

struct Case {
  const char* mistake;
  std::vector<const char*> said;  // by every task
  friend void PrintTo(const Case& one, std::ostream* out) { *out << one.mistake; }
};

struct FitMistakes : ::testing::TestWithParam<Case> {
  FitMistakes() {
    directory = ::testing::TempDir() + "fit_mistakes_test.XXXXXX";
    if (::mkdtemp(directory.data()) == nullptr) throw UnknownError("no temporary directory");
  }
  ~FitMistakes() override { std::filesystem::remove_all(directory); }

  std::string place(const std::string& strategy) const {
    const std::string path = directory + "/" + strategy;
    std::filesystem::create_directories(path);
    return path;
  }
  void expect_said(const std::string& task, const std::string& outcome) const {
    for (const char* words : GetParam().said) EXPECT_THAT(outcome, HasSubstr(words)) << task;
  }
  void expect_here(const std::string& name, const distribute::Strategy& strategy) const {
    const auto scope = strategy.scope();
    expect_said(name, outcome_of(GetParam().mistake, place(name)));
  }
  void expect_in_tasks(const std::string& name, const std::vector<testing::JobSize>& jobs) const {
    MultiProcessRunner runner({.jobs = jobs,
                               .function = "run_task",
                               .arguments = {GetParam().mistake, name, place(name)},
                               .deadline = seconds(40)});
    runner.start();
    for (const testing::TaskOutcome& one : runner.wait_all()) {
      expect_said(internal::str(name, " ", one.task),
                  one.code == Code::kOk ? one.value : "the task failed: " + one.error);
    }
  }

  std::string directory;
};

std::string name_of(const ::testing::TestParamInfo<Case>& one) { return one.param.mistake; }

TEST_P(FitMistakes, AreSaidByOneProcess) {
  expect_here("one_device", distribute::OneDeviceStrategy("CPU:0"));
  expect_here("mirrored", distribute::MirroredStrategy());
}
TEST_P(FitMistakes, AreSaidByEachOfTwoWorkers) { expect_in_tasks("workers", {{"worker", 2}}); }
TEST_P(FitMistakes, AreSaidByEachTaskOfParameterServers) {
  const std::string mistake = GetParam().mistake;
  expect_in_tasks("servers", {{"chief", 1}, {"worker", 1}, {"ps", 1}});
}

// Of these the tasks of a cluster would end before they come to each other, but for what they do
// about it.
INSTANTIATE_TEST_SUITE_P(
    BeforeTheFirstStep, FitMistakes,
    ::testing::Values(
        Case{"metric", {"INVALID_ARGUMENT", "'acuracy'", "the nearest is 'accuracy'"}},
        Case{"loss",
             {"INVALID_ARGUMENT", "'mean_square_error'", "the nearest is 'mean_squared_error'"}},
        Case{"optimizer", {"INVALID_ARGUMENT", "'adm'", "the nearest is 'adam'"}},
        Case{"labels", {"INVALID_ARGUMENT", "y stands beside data that has labels of its own"}},
        Case{"batch", {"INVALID_ARGUMENT", "x has 16, y has 3"}},
        Case{"endless", {"INVALID_ARGUMENT", "the data never ends: give steps_per_epoch"}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    InSteps, FitMistakes,
    ::testing::Values(
        Case{"shape", {"INVALID_ARGUMENT", "'hidden'", "whose last dimension is 5", ",6]"}},
        Case{"label", {"INVALID_ARGUMENT", "label 3 at index", "[0, 3)"}},
        Case{"rank", {"INVALID_ARGUMENT", "mean_squared_error", ",3]"}},
        Case{"empty", {"INVALID_ARGUMENT", "the data has no batches"}}, Case{"early", {"epochs 2"}},
        Case{"nan", {"epochs 1"}},
        Case{"callback", {"DATA_LOSS", "'LambdaCallback', on_train_batch_end", "record 7"}},
        Case{"disk", {"epochs 3"}}, Case{"second", {"epochs 1"}}),
    name_of);

// One task alone throws: the others' error does not wait for it, and says what it was.
TEST(FitMistakesOfOneTask, EndTheOtherToo) {
  for (const char* strategy : {"workers", "servers"}) {
    const std::string first = strategy == std::string("workers") ? "worker" : "chief";
    MultiProcessRunner runner(
        {.jobs = first == "worker"
                     ? std::vector<testing::JobSize>{{"worker", 2}}
                     : std::vector<testing::JobSize>{{"chief", 1}, {"worker", 1}, {"ps", 1}},
         .function = "run_task",
         .arguments = {"chiefs_callback", strategy, ""},
         .deadline = seconds(40)});
    runner.start();
    for (const auto& [task, outcome] : runner.join()) {
      EXPECT_THAT(outcome, AllOf(HasSubstr("DATA_LOSS"), HasSubstr("record 7"))) << task;
    }
  }
}

int run_tests(int argc, char** argv) {
  config::set_logical_device_configuration("CPU", 2);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace cohort

int main(int argc, char** argv) {
  return cohort::testing::multi_process_main(argc, argv, {{"run_task", cohort::run_task}},
                                             cohort::run_tests);
}

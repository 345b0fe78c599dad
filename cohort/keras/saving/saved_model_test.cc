#include "cohort/keras/saving/saved_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "cohort/core/files/simulated_file_system.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/keras/training/testing_fit.h"

namespace cohort::keras {
namespace {

using internal::load_model;
using internal::save_model;
using internal::SimulatedFileSystem;
using internal::SimulatedKill;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What a model says of six images, after so many epochs of training.
struct Trained {
  explicit Trained(int64_t epochs, const CompileOptions& options = class_options()) {
    model.compile(options);
    model.fit(image_batches(12, 6), {.epochs = epochs, .verbose = 0});
  }
  const Sequential model = small_classifier();
};

std::vector<double> outputs(const ModelHandle& model) {
  return elements(model(make_images(6, float32).images));
}

TEST(SavedModel, GoesOnAsIfItHadNeverBeenSaved) {
  SimulatedFileSystem files;
  const Trained trained(2);
  save_model(trained.model, "run/model", {}, files);
  const ModelHandle again = load_model("run/model", {}, files);
  EXPECT_EQ(outputs(again), outputs(trained.model));
  EXPECT_EQ(again.optimizer().iterations().value().item<int64_t>(), 4);
  const History expected = trained.model.fit(image_batches(12, 6), {.epochs = 2, .verbose = 0});
  const History found = again.fit(image_batches(12, 6), {.epochs = 2, .verbose = 0});
  EXPECT_EQ(found["loss"], expected["loss"]);
  EXPECT_EQ(found["accuracy"], expected["accuracy"]);
  EXPECT_EQ(all_weights(again), all_weights(trained.model));
}

TEST(SavedModel, IsMadeUnderThePresentStrategy) {
  SimulatedFileSystem files;
  const Trained trained(1);
  save_model(trained.model, "model", {}, files);
  const distribute::MirroredStrategy strategy = distribute::mirrored(2);
  const auto scope = strategy.scope();
  const ModelHandle again = load_model("model", {}, files);
  EXPECT_EQ(again.variables()[0].components().values().size(), 2);
  EXPECT_EQ(outputs(again), outputs(trained.model));
}

// Everything that compile may be told by name or object.
TEST(SavedModel, KeepsWhatCompileSaid) {
  SimulatedFileSystem files;
  const SymbolicTensor x = Input({3});
  const Functional model(x,
                         {layers::Dense(1, {.name = "a"})(x), layers::Dense(2, {.name = "b"})(x)});
  model.compile({.optimizer = optimizers::SGD(
                     {.learning_rate = optim::ExponentialDecay(
                          {.initial_learning_rate = 0.1, .decay_steps = 2, .decay_rate = 0.5}),
                      .momentum = 0.9,
                      .clipnorm = 2}),
                 .loss = {losses::Huber({.delta = 0.5}), "mse"},
                 .metrics = {{"a", {"mae", metrics::RootMeanSquaredError()}},
                             {"b",
                              {metrics::AUC({.num_thresholds = 20}),
                               metrics::AUC({.thresholds = {0, 0.25, 1}, .name = "of_all"})}}},
                 .loss_weights = {0.25, 2.0},
                 .weighted_metrics = {"mse"},
                 .steps_per_execution = 3});
  save_model(model, "model", {}, files);
  const ModelHandle again = load_model("model", {}, files);
  save_model(again, "again", {}, files);
  EXPECT_EQ(files.content("/again/model.json"), files.content("/model/model.json"));
  EXPECT_THAT(files.content("/model/model.json"),
              AllOf(HasSubstr("ExponentialDecay"), HasSubstr("\"delta\":0.5"),
                    HasSubstr("\"num_thresholds\":20"), HasSubstr("\"steps_per_execution\":3")));
}

TEST(SavedModel, EveryLossMetricAndOptimizerIsMadeAgain) {
  SimulatedFileSystem files;
  const auto keeps = [&](const CompileOptions& options) {
    const Sequential model({Input({2}), layers::Dense(2)});
    model.compile(options);
    save_model(model, "model", {}, files);
    save_model(load_model("model", {}, files), "again", {}, files);
    const auto without_checkpoint = [&](const std::string& file) {
      return std::regex_replace(files.content(file), std::regex(R"("checkpoint":"[^"]*")"), "");
    };
    const std::string first = without_checkpoint("/model/model.json");
    EXPECT_THAT(first, HasSubstr("compile_config"));
    EXPECT_EQ(without_checkpoint("/again/model.json"), first);
  };
  for (const char* name : {"adadelta", "adagrad", "adam", "adamw", "adamax", "ftrl", "lion",
                           "nadam", "rmsprop", "sgd"}) {
    keeps({.optimizer = name, .loss = "mse"});
  }
  for (const char* name :
       {"bce", "categorical_crossentropy", "categorical_hinge", "cosine_similarity", "hinge",
        "huber", "kld", "log_cosh", "mae", "mape", "mse", "msle", "poisson",
        "sparse_categorical_crossentropy", "squared_hinge"}) {
    keeps({.loss = name, .metrics = {"accuracy"}});
  }
  keeps({.loss = "mse",
         .metrics = {metrics::Accuracy(), metrics::BinaryAccuracy({.threshold = 0.25}),
                     metrics::TopKCategoricalAccuracy({.k = 2}),
                     metrics::Precision({.thresholds = {0.25}, .class_id = 1}),
                     metrics::Recall({.top_k = 1}), metrics::FalsePositives(),
                     metrics::AUC({.curve = metrics::Curve::PR, .num_labels = 2}),
                     metrics::CosineSimilarity(),
                     metrics::BinaryCrossentropy({.from_logits = true})}});
  keeps({.loss = "mse",
         .metrics = {metrics::BinaryIoU({.target_class_ids = {1}, .threshold = 0.25}),
                     metrics::IoU({.num_classes = 3, .target_class_ids = {0, 2}}),
                     metrics::MeanIoU({.num_classes = 3, .ignore_class = -1, .axis = 1}),
                     metrics::OneHotIoU({.num_classes = 2, .target_class_ids = {1}}),
                     metrics::OneHotMeanIoU({.num_classes = 2, .sparse_y_pred = true}),
                     metrics::MeanRelativeError(numbers({1, 0.5}, {1, 2})),
                     metrics::PrecisionAtRecall(0.5, {.num_thresholds = 20, .class_id = 1}),
                     metrics::RecallAtPrecision(0.25), metrics::SensitivityAtSpecificity(0.5),
                     metrics::SpecificityAtSensitivity(0.75)}});
}

// As Keras 2.15's get_config has them, tests/interop too.
TEST(SavedModel, MetricsAreWrittenAsKerasWritesThem) {
  const auto config_of = [](const metrics::Metric& metric) {
    const auto serialized = metric.serialize();
    return serialized->get_string("class_name") + serialized->get_config("config").json();
  };
  EXPECT_EQ(config_of(metrics::MeanIoU({.num_classes = 3})),
            R"(MeanIoU{"axis":-1,"dtype":"float32","ignore_class":null,"name":"mean_io_u",)"
            R"("num_classes":3,"sparse_y_pred":true,"sparse_y_true":true})");
  EXPECT_EQ(config_of(metrics::BinaryIoU()),
            R"(BinaryIoU{"dtype":"float32","name":"binary_io_u","target_class_ids":[0,1],)"
            R"("threshold":0.5})");
  EXPECT_EQ(config_of(metrics::RecallAtPrecision(0.25)),
            R"(RecallAtPrecision{"dtype":"float32","name":"recall_at_precision",)"
            R"("num_thresholds":200,"precision":0.25})");
  EXPECT_EQ(config_of(metrics::MeanRelativeError(numbers({1, 3}))),
            R"(MeanRelativeError{"dtype":"float32","name":"mean_relative_error",)"
            R"("normalizer":[1.0,3.0]})");
  EXPECT_EQ(config_of(metrics::MeanTensor({2, 3})),
            R"(MeanTensor{"dtype":"float32","name":"mean_tensor","shape":[2,3]})");
}

TEST(SavedModel, ReadsANormalizerAsKerasPacksIt) {
  SimulatedFileSystem files;
  const Sequential model({Input({2}), layers::Dense(2)});
  model.compile({.loss = "mse", .metrics = {metrics::MeanRelativeError(numbers({1, 3}))}});
  save_model(model, "model", {}, files);
  std::string text = files.content("/model/model.json");
  const std::string ours = R"("normalizer":[1.0,3.0])";
  const std::string packed =
      R"("normalizer":{"class_name":"__numpy__","config":{"dtype":"float32","value":[1.0,3.0]}})";
  ASSERT_NE(text.find(ours), text.npos);
  files.set_content("/model/model.json", text.replace(text.find(ours), ours.size(), packed));
  save_model(load_model("model", {}, files), "again", {}, files);
  EXPECT_THAT(files.content("/again/model.json"), HasSubstr(ours));
}

TEST(SavedModel, WithALossOfTheProgramIsNotCompiled) {
  SimulatedFileSystem files;
  const Sequential model({Input({2}), layers::Dense(1)});
  model.compile({.loss = [](const Tensor& y, const Tensor& p) { return (y - p).abs().mean(-1); }});
  ::testing::internal::CaptureStderr();
  save_model(model, "model", {}, files);
  const ModelHandle again = load_model("model", {}, files);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("a function of the program"), HasSubstr("is not compiled")));
  EXPECT_THROW(again.optimizer(), FailedPreconditionError);
}

TEST(SavedModel, TheOptimizerOfOneThatIsNotCompiledWaitsForCompile) {
  SimulatedFileSystem files;
  const auto options = [] {
    CompileOptions own = class_options();
    own.loss = [](const Tensor& y, const Tensor& p) { return class_loss()(y, p); };
    return own;
  };
  const Trained trained(2, options());
  save_model(trained.model, "model", {}, files);
  const ModelHandle again = load_model("model", {}, files);
  again.compile(options());
  EXPECT_EQ(again.optimizer().iterations().value().item<int64_t>(), 4);
  // Saved again before, it still has them.
  save_model(load_model("model", {}, files), "again", {}, files);
  const ModelHandle later = load_model("again", {}, files);
  later.compile(options());
  EXPECT_EQ(later.optimizer().iterations().value().item<int64_t>(), 4);
  const ModelHandle fresh = load_model("model", {.compile = false}, files);
  fresh.compile(options());
  EXPECT_EQ(fresh.optimizer().iterations().value().item<int64_t>(), 0);
}

TEST(SavedModel, ReplacesTheOneBeforeAndLeavesNothingOfIt) {
  SimulatedFileSystem files;
  save_model(Trained(1).model, "model", {}, files);
  const Trained second(2);
  save_model(second.model, "model", {}, files);
  EXPECT_EQ(outputs(load_model("model", {}, files)), outputs(second.model));
  std::vector<std::string> kept;
  for (const std::string& path : files.file_paths()) {
    if (path.find("/.") == path.npos) kept.push_back(path);
  }
  EXPECT_THAT(kept, ElementsAre("/model/model.json", "/model/variables-2.data-00000-of-00001",
                                "/model/variables-2.index"));
  EXPECT_THAT(thrown<AlreadyExistsError>(
                  [&] { save_model(second.model, "model", {.overwrite = false}, files); }),
              HasSubstr("'model'"));
}

// At every call of a load another save replaces the model.
TEST(SavedModel, IsTheOneBeforeOrTheNewOneWheneverItIsReplaced) {
  const Trained first(1);
  const Trained second(2);
  const std::vector<double> before = outputs(first.model);
  const std::vector<double> after = outputs(second.model);
  bool saw_before = false;
  bool was_replaced = true;
  for (int64_t call = 1; was_replaced; ++call) {
    SimulatedFileSystem files;
    save_model(first.model, "model", {}, files);
    int64_t calls = 0;
    was_replaced = false;
    files.set_hook([&](const std::string&) {
      if (++calls != call) return;
      was_replaced = true;
      save_model(second.model, "model", {}, files);
    });
    const std::vector<double> loaded = outputs(load_model("model", {}, files));
    EXPECT_TRUE(loaded == before || loaded == after) << "replaced at call " << call;
    saw_before = saw_before || (was_replaced && loaded == before);
  }
  EXPECT_TRUE(saw_before);
}

TEST(SavedModel, OneThatIsReplacedAgainAndAgainIsGivenUp) {
  SimulatedFileSystem files;
  const Trained model(1);
  save_model(model.model, "model", {}, files);
  int saves = 0;
  bool saving = false;
  files.set_hook([&](const std::string& call) {
    if (saving || !call.starts_with("opening 'model/variables-")) return;
    saving = true;
    save_model(model.model, "model", {}, files);
    saving = false;
    ++saves;
  });
  EXPECT_THAT(thrown<NotFoundError>([&] { load_model("model", {}, files); }),
              HasSubstr("variables-"));
  EXPECT_LT(saves, 20);
}

// A kill, or a power cut, at every call of a save that replaces another.
TEST(SavedModel, IsTheOneBeforeOrTheNewOneWheneverItIsKilled) {
  const Trained first(1);
  const Trained second(2);
  const std::vector<double> before = outputs(first.model);
  const std::vector<double> after = outputs(second.model);
  bool saw_before = false;
  for (int64_t call = 1;; ++call) {
    SimulatedFileSystem files;
    save_model(first.model, "model", {}, files);
    files.set_faults({.kill_at = files.calls() + call});
    bool killed = false;
    try {
      save_model(second.model, "model", {}, files);
    } catch (const SimulatedKill&) {
      killed = true;
    }
    for (const auto& found : {files.after_kill(), files.after_power_cut()}) {
      const std::vector<double> loaded = outputs(load_model("model", {}, *found));
      EXPECT_TRUE(loaded == before || loaded == after) << "killed at " << call;
      saw_before = saw_before || loaded == before;
      // And a later save finds its way.
      save_model(second.model, "model", {}, *found);
      EXPECT_EQ(outputs(load_model("model", {}, *found)), after);
    }
    if (!killed) break;
  }
  EXPECT_TRUE(saw_before);
}

// What ModelCheckpoint does: the next values are copied while a thread still writes.
TEST(SavedModel, SavedByAThreadIsTheOneBeforeOrTheNewOneWheneverItIsKilled) {
  const Trained first(1);
  const Trained second(2);
  const std::vector<double> before = outputs(first.model);
  const std::vector<double> after = outputs(second.model);
  bool saw_before = false, saw_after = false;
  for (int64_t call = 1; !saw_after; ++call) {
    SimulatedFileSystem files;
    save_model(first.model, "model", {}, files);
    // The process goes on as far as it does: what counts is the disk after so many calls.
    std::unique_ptr<SimulatedFileSystem> found;
    int64_t left = call;
    files.set_hook([&](const std::string&) {
      if (left-- == 0) found = files.after_kill();
    });
    internal::ModelSaver saver(second.model, {.asynchronous = true}, files);
    saver.save("model");
    saver.wait();
    files.set_hook({});
    if (found == nullptr) found = files.after_kill();
    const std::vector<double> loaded = outputs(load_model("model", {}, *found));
    EXPECT_TRUE(loaded == before || loaded == after) << "killed at " << call;
    saw_before = saw_before || loaded == before;
    saw_after = saw_after || loaded == after;
  }
  EXPECT_TRUE(saw_before);
}

TEST(SavedModel, AFullDiskLeavesTheOneBefore) {
  SimulatedFileSystem files;
  const Trained first(1);
  save_model(first.model, "model", {}, files);
  files.set_capacity(1);
  EXPECT_THROW(save_model(Trained(2).model, "model", {}, files), ResourceExhaustedError);
  EXPECT_EQ(outputs(load_model("model", {}, files)), outputs(first.model));
}

TEST(SavedModel, DamagedFilesAreNamed) {
  SimulatedFileSystem files;
  save_model(Trained(1).model, "model", {}, files);
  const std::string good = files.content("/model/model.json");
  const auto damaged = [&](const std::string& text) {
    files.set_content("/model/model.json", text);
    return thrown<DataLossError>([&] { load_model("model", {}, files); });
  };
  EXPECT_THAT(damaged(good.substr(0, good.size() / 2)), HasSubstr("model/model.json"));
  EXPECT_THAT(damaged("{}"), HasSubstr("'cohort' is missing"));
  EXPECT_THAT(damaged(R"({"cohort": {"checkpoint": "../variables-1"}})"), HasSubstr("../"));
  files.set_content("/model/model.json", good);
  const std::string data = "/model/variables-1.data-00000-of-00001";
  std::string bytes = files.content(data);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  files.set_content(data, bytes);
  EXPECT_THAT(thrown<DataLossError>([&] { load_model("model", {}, files); }),
              HasSubstr("variables-1"));
}

TEST(SavedModel, WhereThereIsNoneTheErrorSaysWhatWouldBe) {
  SimulatedFileSystem files;
  EXPECT_THAT(thrown<NotFoundError>([&] { load_model("nowhere", {}, files); }),
              AllOf(HasSubstr("'nowhere'"), HasSubstr("model.json")));
  files.make_directories("model");
  files.set_content("model/model.json", "{}");
  EXPECT_THAT(thrown<NotFoundError>([&] { load_model("model/model.json", {}, files); }),
              HasSubstr("'model': pass that directory"));
}

}  // namespace
}  // namespace cohort::keras

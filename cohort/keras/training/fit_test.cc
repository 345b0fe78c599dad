// What fit does besides steps: hooks, executions, weights of classes, steps of one's own.
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <type_traits>
#include <utility>

#include "cohort/keras/base/zip.h"
#include "cohort/keras/training/testing_fit.h"

namespace cohort::keras {
namespace {

using callbacks::Callback;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Recorder : public Callback {
 public:
  void on_train_begin() override { said.push_back("begin"); }
  void on_train_end(const Logs&) override { said.push_back("end"); }
  void on_epoch_begin(int64_t epoch) override { say("epoch", epoch); }
  void on_epoch_end(int64_t epoch, Logs&) override { say("epoch end", epoch); }
  void on_train_batch_begin(int64_t batch) override { say("batch", batch); }
  void on_train_batch_end(int64_t batch, const Logs&) override { say("batch end", batch); }
  void on_test_begin() override { said.push_back("test"); }
  void on_test_end(const Logs&) override { said.push_back("test end"); }

  std::vector<std::string> said;

 private:
  void say(const char* what, int64_t number) { said.push_back(internal::str(what, " ", number)); }
};

TEST(Fit, CallsTheHooksInTheirOrder) {
  const Sequential model = small_classifier();
  model.compile(class_options());
  Recorder recorder;
  model.fit(image_batches(12, 6), {.epochs = 3,
                                   .verbose = 0,
                                   .callbacks = {recorder},
                                   .validation_data = image_batches(6, 6),
                                   .initial_epoch = 2});
  EXPECT_THAT(recorder.said, ElementsAre("begin", "epoch 2", "batch 0", "batch end 0", "batch 1",
                                         "batch end 1", "test", "test end", "epoch end 2", "end"));
}

// In a range-based for the history is gone when the loop begins.
TEST(Fit, GivesTheNumbersOfAHistoryThatIsGone) {
  static_assert(std::is_same_v<decltype(std::declval<History>()["loss"]), std::vector<double>>);
  const Sequential model({layers::Dense(1, {.kernel_initializer = "zeros"})});
  model.compile({.optimizer = optimizers::SGD({.learning_rate = 0.}), .loss = "mse"});
  std::vector<double> losses;
  const Tensor x = at::ones({4, 1});
  for (const double loss : model.fit(x, x * 2, {.epochs = 3, .verbose = 0})["loss"]) {
    losses.push_back(loss);
  }
  EXPECT_THAT(losses, ElementsAre(4, 4, 4));
}

// The numbers that the batch hooks of training, testing or prediction get.
class BatchNumbers : public Callback {
 public:
  void on_train_batch_begin(int64_t batch) override { begins.push_back(batch); }
  void on_train_batch_end(int64_t batch, const Logs&) override { ends.push_back(batch); }
  void on_test_batch_begin(int64_t batch) override { begins.push_back(batch); }
  void on_test_batch_end(int64_t batch, const Logs&) override { ends.push_back(batch); }
  void on_predict_batch_begin(int64_t batch) override { begins.push_back(batch); }
  void on_predict_batch_end(int64_t batch) override { ends.push_back(batch); }
  std::vector<int64_t> begins, ends;
};

TEST(StepsPerExecution, GroupsTheHooksOfFitEvaluateAndPredict) {
  const auto expect = [](int64_t batches, int64_t at_once, const std::vector<int64_t>& begins,
                         const std::vector<int64_t>& ends) {
    const Sequential model({Input({1}), layers::Dense(1)});
    model.compile({.optimizer = "sgd", .loss = "mse", .steps_per_execution = at_once});
    const Tensor x = at::ones({batches, 1}), y = at::ones({batches, 1});
    BatchNumbers fit, evaluate, predict;
    model.fit(x, y, {.batch_size = 1, .verbose = 0, .callbacks = {fit}});
    model.evaluate(x, y, {.batch_size = 1, .verbose = 0, .callbacks = {evaluate}});
    const Tensor predicted =
        model.predict(x, {.batch_size = 1, .verbose = 0, .callbacks = {predict}});
    EXPECT_EQ(predicted.size(0), batches);
    for (const BatchNumbers* numbers : {&fit, &evaluate, &predict}) {
      EXPECT_EQ(numbers->begins, begins);
      EXPECT_EQ(numbers->ends, ends);
    }
    BatchNumbers some;
    model.predict(x, {.batch_size = 1, .verbose = 0, .steps = 12, .callbacks = {some}});
    EXPECT_EQ(some.ends.back(), 11);
  };
  expect(50, 10, {0, 10, 20, 30, 40}, {9, 19, 29, 39, 49});
  expect(50, 20, {0, 20, 40}, {19, 39, 49});
  expect(25, 500, {0}, {24});
}

TEST(Fit, CallsHooksOnceAnExecution) {
  const auto batches_of = [](int64_t steps, int64_t at_once) {
    const Sequential model = small_classifier();
    CompileOptions options = class_options();
    options.steps_per_execution = at_once;
    model.compile(options);
    Recorder recorder;
    model.fit(image_batches(2, 1).repeat(),
              {.verbose = 0, .callbacks = {recorder}, .steps_per_epoch = steps});
    EXPECT_EQ(model.optimizer().iterations().value().item<int64_t>(), steps);
    std::vector<std::string> ends;
    for (const std::string& one : recorder.said) {
      if (one.starts_with("batch end")) ends.push_back(one);
    }
    return ends;
  };
  EXPECT_THAT(batches_of(20, 10), ElementsAre("batch end 9", "batch end 19"));
  EXPECT_THAT(batches_of(25, 10), ElementsAre("batch end 9", "batch end 19", "batch end 24"));
  EXPECT_THAT(batches_of(4, 10), ElementsAre("batch end 3"));
}

class Stopper : public Callback {
  void on_train_batch_end(int64_t batch, const Logs& logs) override {
    EXPECT_GT(logs["loss"], 0);
    if (batch == 1) model().set_stop_training(true);
  }
};

TEST(Fit, StopsWhereACallbackSays) {
  const Sequential model = small_classifier();
  model.compile(class_options());
  const History history =
      model.fit(image_batches(12, 2), {.epochs = 5, .verbose = 0, .callbacks = {Stopper()}});
  EXPECT_EQ(model.optimizer().iterations().value().item<int64_t>(), 2);
  EXPECT_THAT(history.epoch, ElementsAre(0));
}

// Validation is of the weights, as in Keras; the averages come when all epochs are over.
TEST(Fit, EndsWithTheMovingAverages) {
  const auto weights_of = [](bool use_ema) {
    const Sequential model({layers::Dense(1, {.use_bias = false, .kernel_initializer = "zeros"})});
    model.compile({.optimizer = optimizers::SGD(
                       {.learning_rate = 0.25, .use_ema = use_ema, .ema_momentum = 0.5}),
                   .loss = "mse"});
    const Tensor one = numbers({1}).reshape({1, 1});
    std::vector<double> seen;
    model.fit(
        one, one,
        {.epochs = 2,
         .verbose = 0,
         .callbacks = {callbacks::LambdaCallback(
             {.on_epoch_end = [&](int64_t, Logs&) { seen.push_back(all_weights(model)[0]); },
              .on_train_end = [&](const Logs&) { seen.push_back(all_weights(model)[0]); }})}});
    return seen;
  };
  EXPECT_THAT(weights_of(false), ElementsAre(0.5, 0.75, 0.75));
  EXPECT_THAT(weights_of(true), ElementsAre(0.5, 0.75, (0 * 0.5 + 0.5 * 0.5) * 0.5 + 0.75 * 0.5));
}

class Thrower : public Callback {
  void on_epoch_end(int64_t, Logs&) override { throw UnavailableError("the phone is busy"); }
};

TEST(Fit, NamesTheCallbackThatThrows) {
  const Sequential model = small_classifier();
  model.compile(class_options());
  EXPECT_THAT(thrown<UnavailableError>([&] {
                model.fit(image_batches(12, 6), {.verbose = 0, .callbacks = {Thrower()}});
              }),
              ::testing::AllOf(HasSubstr("'Thrower', on_epoch_end"), HasSubstr("busy")));
  model.fit(image_batches(12, 6), {.verbose = 0});  // and can train again
}

// Throws in one hook, in the second epoch where there are several, and again where it hears of
// that.
class ThrowsIn : public Callback {
 public:
  ThrowsIn(std::string hook, std::function<void()> thrower)
      : hook_(std::move(hook)), thrower_(std::move(thrower)) {}
  void on_train_begin() override { come_to("on_train_begin"); }
  void on_train_end(const Logs&) override { come_to("on_train_end"); }
  void on_epoch_begin(int64_t epoch) override {
    if (epoch == 1) come_to("on_epoch_begin");
  }
  void on_epoch_end(int64_t, Logs&) override { come_to("on_epoch_end"); }
  void on_train_batch_begin(int64_t batch) override {
    if (batch == 1) come_to("on_train_batch_begin");
  }
  void on_train_batch_end(int64_t batch, const Logs&) override {
    if (batch == 1) come_to("on_train_batch_end");
  }
  void on_test_begin() override { come_to("on_test_begin"); }
  void on_test_end(const Logs&) override { come_to("on_test_end"); }
  void on_test_batch_begin(int64_t) override { come_to("on_test_batch_begin"); }
  void on_test_batch_end(int64_t, const Logs&) override { come_to("on_test_batch_end"); }
  void on_train_error() override {
    ++errors;
    thrower_();
  }

  int errors = 0;

 private:
  void come_to(const std::string& hook) const {
    if (hook == hook_) thrower_();
  }

  const std::string hook_;
  const std::function<void()> thrower_;
};

TEST(Fit, EndsInGoodOrderWhateverAHookThrows) {
  const Sequential model = small_classifier();
  model.compile(class_options());
  const auto fit = [&](Callback* callback) {
    std::vector<callbacks::CallbackArgument> list;
    if (callback != nullptr) list.emplace_back(*callback);
    return model.fit(
        image_batches(12, 6),
        {.epochs = 2, .verbose = 0, .callbacks = list, .validation_data = image_batches(6, 6)});
  };
  const std::vector<std::function<void()>> throwers = {
      [] { throw 7; }, [] { throw std::runtime_error("of the program"); },
      [] { throw OutOfRangeError("of the library"); }};
  ::testing::internal::CaptureStderr();
  for (const char* hook : {"on_train_begin", "on_train_end", "on_epoch_begin", "on_epoch_end",
                           "on_train_batch_begin", "on_train_batch_end", "on_test_begin",
                           "on_test_end", "on_test_batch_begin", "on_test_batch_end"}) {
    for (const auto& thrower : throwers) {
      ThrowsIn callback(hook, thrower);
      EXPECT_ANY_THROW(fit(&callback)) << hook;
      EXPECT_EQ(callback.errors, 1) << hook;
      EXPECT_EQ(fit(nullptr)["val_loss"].size(), 2u) << hook;
    }
  }
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("on_train_error: an exception without a text"),
                    HasSubstr("on_train_error: of the program")));
}

// Its own stop is not that of the fit around it, nor the other way round.
TEST(Fit, WithinACallbackStopsByItself) {
  for (const bool outer_stops : {false, true}) {
    const Sequential model = small_classifier();
    model.compile(class_options());
    callbacks::LambdaCallback within({.on_epoch_end = [&](int64_t, Logs&) {
      model.set_stop_training(outer_stops);
      const History inner =
          model.fit(image_batches(12, 2), {.epochs = 5, .verbose = 0, .callbacks = {Stopper()}});
      EXPECT_THAT(inner.epoch, ElementsAre(0));
    }});
    const History outer =
        model.fit(image_batches(12, 6), {.epochs = 2, .verbose = 0, .callbacks = {within}});
    EXPECT_EQ(outer.epoch.size(), outer_stops ? 1u : 2u);
    EXPECT_EQ(model.stop_training(), outer_stops);
  }
}

TEST(Fit, AnErrorInAStepEndsIt) {
  const Sequential model = small_classifier();
  model.compile(class_options());
  const LabelledImages data = make_images(8, float32);
  EXPECT_THAT(thrown<InvalidArgumentError>(
                  [&] { model.fit(data.images, data.labels + 7, {.verbose = 0}); }),
              HasSubstr("label"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { model.fit(data.images, {.verbose = 0}); }),
              HasSubstr("no labels"));
}

TEST(Fit, WeighsClasses) {
  const LabelledImages data = make_images(13, float32);
  const Tensor weights = data.labels.eq(1).to(float32) * 2 + 1;  // class 1: 3
  const auto trained = [&](const FitOptions& options) {
    const Sequential model = small_classifier();
    model.compile(class_options());
    model.fit(data.images, data.labels, options);
    return all_weights(model);
  };
  const auto by_class = trained({.verbose = 0, .shuffle = false, .class_weight = {{1, 3.0}}});
  EXPECT_EQ(by_class, trained({.verbose = 0, .shuffle = false, .sample_weight = weights}));
  EXPECT_NE(by_class, trained({.verbose = 0, .shuffle = false}));
  // Numbers of classes may be of any size, and nothing is made for those between them.
  EXPECT_EQ(by_class, trained({.verbose = 0,
                               .shuffle = false,
                               .class_weight = {{1, 3.0}, {int64_t{1} << 62, 0.5}}}));
}

TEST(Fit, WeighsClassesAndExamplesTogether) {
  const LabelledImages data = make_images(12, float32);
  const Tensor of_examples = data.labels + 1;  // whole numbers
  const Tensor of_classes = data.labels.eq(1).to(float32) * -0.5 + 1;
  const auto trained = [&](const FitOptions& options) {
    const Sequential model = small_classifier();
    model.compile(class_options());
    model.fit(data.images, data.labels, options);
    return all_weights(model);
  };
  const auto expected =
      trained({.verbose = 0, .shuffle = false, .sample_weight = of_examples * of_classes});
  for (const Tensor& given : {of_examples, of_examples.unsqueeze(1), of_examples.to(float64)}) {
    EXPECT_EQ(
        expected,
        trained(
            {.verbose = 0, .shuffle = false, .class_weight = {{1, 0.5}}, .sample_weight = given}));
  }
  const auto refused = [&](const Structure& given) {
    return thrown<InvalidArgumentError>([&] {
      trained({.verbose = 0, .class_weight = {{1, 0.5}}, .sample_weight = given});
    });
  };
  EXPECT_THAT(refused(at::ones({12, 3})), AllOf(HasSubstr("sample_weight"), HasSubstr("[12,3]")));
  EXPECT_THAT(refused(tuple(of_examples, of_examples)), HasSubstr("one tensor of sample weights"));
}

// TensorFlow's testRegularizerLoss: of x + v and a penalty of v, by whatever number of replicas,
// the gradient is 2.
TEST(Fit, APenaltyCountsOnceForAllReplicas) {
  class AddOne : public layers::Layer {
    void build(const std::vector<Shape>&) override {
      v_ = add_weight("v", {},
                      {.initializer = "ones", .regularizer = [](const Tensor& v) { return v; }});
    }
    Tensor call(const Tensor& x, const CallOptions&) override { return x + v_.value(); }
    Variable v_;
  };
  for (const int replicas : {1, 2}) {
    const auto strategy = distribute::mirrored(replicas);
    const auto scope = strategy.scope();
    const Sequential model({std::make_shared<AddOne>()});
    model.compile({.optimizer = optimizers::SGD({.learning_rate = 1}),
                   .loss = [](const Tensor&, const Tensor& y_pred) { return y_pred.mean(); }});
    const Tensor ones = numbers({1, 1}, {2, 1});
    model.fit(ones, ones, {.batch_size = 2, .verbose = 0});
    EXPECT_THAT(all_weights(model), ::testing::ElementsAre(-1)) << replicas;
  }
}

TEST(Fit, EvaluatesTheWeightsOfTheEndOfEachEpoch) {
  const Sequential model = small_classifier();
  model.compile(class_options());
  const History history = model.fit(
      image_batches(12, 6), {.epochs = 2, .verbose = 0, .validation_data = image_batches(13, 13)});
  EXPECT_EQ(history["val_loss"].back(),
            model.evaluate(image_batches(13, 13), {.verbose = 0})["loss"]);
}

// A step of one's own: the loss is the squared mean, reported by a metric and by the sum.
class OwnSteps : public Model {
 public:
  OwnSteps() { track("dense", dense_); }
  Tensor call(const Tensor& x, const CallOptions&) override { return dense_(x); }
  std::vector<metrics::Metric> metrics() const override { return {error_}; }

 protected:
  Structure train_step(const Structure& data) override {
    const Batch batch = unpack_x_y_sample_weight(data);
    GradientTape tape;
    const Tensor difference = (*this)(batch.x.tensor(), {.training = true}) - batch.y.tensor();
    const Tensor loss = difference.square().mean() / 2;
    optimizer().apply_gradients(
        zip(tape.gradient(loss, trainable_variables()), trainable_variables()));
    error_.update_state(difference.abs());
    return dict({{"rows", static_cast<double>(difference.size(0))}});
  }

 private:
  layers::LayerHandle dense_ = layers::Dense(1);
  metrics::Mean error_{{.name = "error"}};
};

TEST(Fit, RunsStepsOfOnesOwn) {
  const auto strategy = distribute::mirrored(2);
  const auto scope = strategy.scope();
  const ModelHandle model = std::make_shared<OwnSteps>();
  model.compile({.optimizer = optimizers::SGD({.learning_rate = 0.1})});
  const Tensor x = numbers({1, 2, 3, 4}, {4, 1});
  const History history = model.fit(x, x * 2, {.batch_size = 4, .epochs = 30, .verbose = 0});
  EXPECT_LT(history["error"].back(), history["error"].front());
  EXPECT_EQ(history["rows"].back(), 4);  // 2 on each replica
}

class ReturnsOne : public Model {
 public:
  Structure train_step(const Structure&) override { return dict({{"one", at::ones({})}}); }
  Structure test_step(const Structure&) override { return dict({{"one", at::ones({})}}); }
};

class ReturnsNamed : public Model {
 public:
  ReturnsNamed(std::string name, Tensor value) : name_(std::move(name)), value_(std::move(value)) {}
  Structure train_step(const Structure&) override { return dict({{name_, value_}}); }

 private:
  std::string name_;
  Tensor value_;
};

class ReturnsRows : public Model {
 public:
  Structure train_step(const Structure&) override { return dict({{"rows", at::ones({3})}}); }
};

// As in Keras: what no step has computed is not reported as 0.
TEST(Fit, ReportsNoLossOfStepsThatComputeNone) {
  const ModelHandle model = std::make_shared<OwnSteps>();
  model.compile({.optimizer = optimizers::SGD({.learning_rate = 0.1})});
  const Tensor x = numbers({1, 2, 3, 4}, {4, 1});
  EXPECT_FALSE(model.fit(x, x * 2, {.verbose = 0}).contains("loss"));
  const ModelHandle own = std::make_shared<ReturnsOne>();
  own.compile({});
  const History history = own.fit(x, x, {.verbose = 0, .validation_data = Data(x, x)});
  EXPECT_EQ(history.history, (std::vector<std::pair<std::string, std::vector<double>>>{
                                 {"one", {1}}, {"val_one", {1}}}));
  EXPECT_FALSE(own.train_on_batch(x, x).contains("loss"));
}

TEST(Fit, ReportsNoMetricThatStepsDoNotUpdate) {
  for (const int replicas : {1, 2}) {
    const auto strategy = distribute::mirrored(replicas);
    const auto scope = strategy.scope();
    EXPECT_THAT(names_when_trained_by_loss_alone(),
                ElementsAre("loss", "val_loss", "val_error", "val_hits"));
  }
  const ModelHandle model = std::make_shared<TrainsByLossAlone>();
  model.compile({.optimizer = "sgd", .loss = "mse", .metrics = {"mae"}});
  const Tensor x = at::ones({4, 1});
  EXPECT_TRUE(model.test_on_batch(x, x).contains("mae"));
  EXPECT_FALSE(model.train_on_batch(x, x).contains("mae"));
  EXPECT_TRUE(model.train_on_batch(x, x).contains("loss"));
}

TEST(Fit, NamesAMetricWhoseResultIsNoScalar) {
  const Sequential model({layers::Dense(1, {.activation = "sigmoid"})});
  const MetricList metrics = {metrics::FalseNegatives({.thresholds = {0.3, 0.7}})};
  for (const CompileOptions& options :
       {CompileOptions{.loss = "mse", .metrics = metrics},
        CompileOptions{.loss = {"mse", "mse"}, .weighted_metrics = metrics}}) {
    EXPECT_THAT([&] { model.compile(options); },
                ::testing::ThrowsMessage<InvalidArgumentError>(
                    AllOf(HasSubstr("metric 'false_negatives'"), HasSubstr("float32 [2]"))));
  }
}

TEST(Fit, NamesALogThatIsNoScalar) {
  const ModelHandle model = std::make_shared<ReturnsRows>();
  model.compile({});
  EXPECT_THAT(
      [&] {
        model.fit(at::ones({4, 1}), at::ones({4, 1}), {.verbose = 0});
      },
      ::testing::ThrowsMessage<InvalidArgumentError>(
          AllOf(HasSubstr("float32 [3] under 'rows'"), HasSubstr("scalars"))));
}

TEST(Fit, NamesALogThatNobodyCanReport) {
  const auto strategy = distribute::mirrored(2);
  const auto scope = strategy.scope();
  const auto fit = [](const char* name, const Tensor& value) {
    const ModelHandle model = std::make_shared<ReturnsNamed>(name, value);
    model.compile({});
    model.fit(at::ones({4, 1}), at::ones({4, 1}), {.verbose = 0});
  };
  EXPECT_THAT([&] { fit("is_odd", at::ones({}, at::kBool)); },
              ::testing::ThrowsMessage<InvalidArgumentError>(
                  AllOf(HasSubstr("bools"), HasSubstr("is_odd"))));
  EXPECT_THAT([&] { fit("val_a", at::ones({})); },
              ::testing::ThrowsMessage<InvalidArgumentError>(HasSubstr("'val_a'")));
}

}  // namespace
}  // namespace cohort::keras

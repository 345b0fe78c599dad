// What compile takes.
//
//   model.compile({.optimizer = keras::optimizers::Adam({.learning_rate = 1e-3}),
//                  .loss = keras::losses::SparseCategoricalCrossentropy({.from_logits = true}),
//                  .metrics = {"accuracy"}});
//   model.compile({.optimizer = "sgd", .loss = "mse"});
//   model.compile({.loss = torch::nn::CrossEntropyLoss()});      // libtorch's
#pragma once

#include <concepts>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/keras/losses/loss.h"
#include "cohort/keras/metrics/metric.h"
#include "cohort/keras/model/per_output.h"
#include "cohort/keras/optimizers/optimizer.h"

namespace cohort {
namespace internal {

// A libtorch module of two tensors, such as its losses, or what holds one.
template <class T>
concept TorchLoss = requires(T& holder, const Tensor& tensor) {
  holder->named_parameters();
  { holder->forward(tensor, tensor) } -> std::convertible_to<Tensor>;
};

template <class Fn>
concept LossFunction = std::is_invocable_r_v<Tensor, Fn&, const Tensor&, const Tensor&>;

// Losses, metrics and optimizers by name.
template <class T>
inline constexpr bool kIsName = std::convertible_to<const T&, std::string>;

// What the losses of the replicas are to each other: the sum that libtorch's loss makes of a
// replica's rows is a part of the batch's; its mean stands for all.
template <TorchLoss T>
keras::losses::Reduction reduction_of(const T& holder) {
  if constexpr (requires { get_enum_name(holder->options.reduction()); }) {  // of torch::enumtype
    if (get_enum_name(holder->options.reduction()) == "kSum") return keras::losses::Reduction::SUM;
  }
  return keras::losses::Reduction::AUTO;
}

}  // namespace internal

namespace keras {

// Names are looked up by compile, which refuses an unknown one with the nearest known one, so that
// it does so in every task alike.

// A name ("adam", "rmsprop", "sgd"), or an object.
class COHORT_API OptimizerArgument {
 public:
  OptimizerArgument(const char* name) : name_(name) {}
  OptimizerArgument(std::string name) : name_(std::move(name)) {}
  OptimizerArgument(const optimizers::Optimizer& optimizer) : object_(optimizer) {}
  // Does not compile, and says what to give instead.
  template <class T>
  requires(!internal::kIsName<T> && !std::derived_from<T, optimizers::Optimizer>)
      OptimizerArgument(const T&) {
    static_assert(internal::kIsName<T>,
                  "compile's .optimizer is a name (\"adam\") or an object, as "
                  "keras::optimizers::Adam({.learning_rate = 1e-3})");
  }

  // One of a name is made anew by each call. Errors: InvalidArgument (an unknown name).
  optimizers::Optimizer make() const;

 private:
  std::string name_;
  std::optional<optimizers::Optimizer> object_;
};

// A name ("mse", "sparse_categorical_crossentropy", ...), an object, a function of labels and
// predictions, or a loss module of libtorch, which is called as module(predictions, labels). A
// function may return a loss for each example, or their mean as a scalar.
// Errors: InvalidArgument (a module with parameters of its own, which nothing would train).
class COHORT_API LossArgument {
 public:
  LossArgument(const char* name) : name_(name) {}
  LossArgument(std::string name) : name_(std::move(name)) {}
  LossArgument(losses::Loss loss) : loss_(std::move(loss)) {}
  template <class Fn>
  requires(internal::LossFunction<Fn> && !std::derived_from<Fn, losses::Loss> &&
           !internal::TorchLoss<Fn>) LossArgument(Fn fn)
      : loss_(losses::Loss::Function(std::move(fn))) {}
  template <internal::TorchLoss Module>
  LossArgument(Module module)
      : loss_(losses::Loss(
            [module](const Tensor& y_true, const Tensor& y_pred) mutable {
              return Tensor(module->forward(y_pred, y_true));
            },
            {.reduction = internal::reduction_of(module)})) {
    for (const auto& item : module->named_parameters()) {
      if (item.value().requires_grad()) refuse_parameter(item.key());
    }
  }

  // Does not compile, and says what to give instead.
  template <class T>
  requires(!internal::kIsName<T> && !internal::LossFunction<T> && !internal::TorchLoss<T> &&
           !std::derived_from<T, losses::Loss>) LossArgument(const T&) {
    static_assert(
        internal::kIsName<T>,
        "a loss of compile is a name (\"mse\"), an object of keras::losses, a function of "
        "labels and predictions that returns a Tensor, or a loss module of libtorch; of "
        "several outputs there is a list of losses, or {{\"output\", loss}, ...}");
  }

  // Errors: InvalidArgument (an unknown name).
  losses::Loss loss() const;

 private:
  [[noreturn]] static void refuse_parameter(const std::string& name);

  std::string name_;
  std::optional<losses::Loss> loss_;  // none: that of the name
};

// A metric that takes labels and predictions.
template <class M>
concept MetricOfPredictions = std::derived_from<M, metrics::Metric> &&
    requires(const M& metric, const Tensor& tensor) {
  metric.update_state(tensor, tensor, tensor);
};
template <class Fn>
concept MetricFunction = internal::LossFunction<Fn> && !std::derived_from<Fn, metrics::Metric>;

// A name ("accuracy", "mse", ...), an object, or a function of labels and predictions, whose mean
// is reported under a name: {"error", function}. The shapes decide whether "accuracy" is that of
// classes or of yes and no.
class COHORT_API MetricArgument {
 public:
  using Function = losses::Loss::Function;
  // Takes what Metric::update_state takes: labels, predictions, weights (undefined: 1).
  using Update = std::function<void(const Tensor&, const Tensor&, const Tensor&)>;
  struct Made {
    metrics::Metric metric;
    Update update;
  };

  MetricArgument(const char* name) : name_(name) {}
  MetricArgument(std::string name) : name_(std::move(name)) {}
  template <MetricOfPredictions M>
  MetricArgument(const M& metric)
      : name_(metric.name()),
        object_(made_of(metric)),
        another_([metric] { return made_of(internal::MetricCopies::another(metric)); }) {}
  template <MetricFunction Fn>
  MetricArgument(std::string name, Fn fn) : name_(std::move(name)), fn_(std::move(fn)) {}
  // Does not compile, and says what to give instead.
  template <class T>
  requires(!internal::kIsName<T> && !MetricOfPredictions<T>) MetricArgument(const T&) {
    static_assert(!MetricFunction<T>,
                  "a function needs a name for the logs: .metrics = {{\"my_error\", function}}");
    static_assert(
        MetricFunction<T> || MetricOfPredictions<T>,
        "a metric of compile is a name (\"accuracy\"), an object of keras::metrics that is "
        "updated with labels and predictions (as Mean and Sum are not), or "
        "{\"name\", function of labels and predictions}");
  }

  const std::string& name() const { return name_; }
  bool is_object() const { return object_.has_value(); }
  bool is_function() const { return static_cast<bool>(fn_); }
  // The object, or a new metric. Errors: InvalidArgument (an unknown name).
  Made make() const;
  // The same, but for an object a new metric that was made as it was: each of several outputs has
  // its own.
  Made make_another() const;
  // Errors: as make, which it leaves undone; InvalidArgument (its result is no scalar).
  void check() const;

 private:
  template <class M>
  static Made made_of(const M& metric) {
    return {metric, [metric](const Tensor& y_true, const Tensor& y_pred, const Tensor& weight) {
              metric.update_state(y_true, y_pred, weight);
            }};
  }

  std::string name_;
  Function fn_;
  std::optional<Made> object_;
  std::function<Made()> another_;  // of an object
};

//   model.compile({.metrics = "accuracy"});
//   model.compile({.metrics = {{"price", {"mae", metrics::AUC()}}, {"kind", "accuracy"}}});
//
// The metrics of every output, or those of each by its name; a single one needs no list. An object
// among the metrics of every output is updated itself if there is one output; of several, each gets
// a metric that is made as it was, as in Keras.
class COHORT_API MetricList {
 public:
  using List = std::vector<MetricArgument>;
  using Named = std::vector<std::pair<std::string, List>>;
  template <class T>
  static constexpr bool kIsOne =
      internal::kIsName<T> || MetricOfPredictions<T> || std::same_as<T, MetricArgument>;

  // An output, and its metrics.
  struct OfOutput {
    OfOutput(std::string output, List metrics) : named(std::move(output), std::move(metrics)) {}
    template <class One>
    requires kIsOne<One> OfOutput(std::string output, const One& one)
        : named(std::move(output), List{MetricArgument(one)}) {}

    std::pair<std::string, List> named;
  };

  MetricList() = default;
  template <class One>
  requires(!std::same_as<One, List>) MetricList(const One& one) : list_{MetricArgument(one)} {}
  MetricList(std::initializer_list<MetricArgument> list) : list_(list) {}
  MetricList(List list) : list_(std::move(list)) {}
  MetricList(std::initializer_list<OfOutput> outputs) {
    for (const OfOutput& output : outputs) named_.push_back(output.named);
  }

  static MetricList by_name(Named named) {
    MetricList all;
    all.named_ = std::move(named);
    return all;
  }

  const List& list() const { return list_; }
  const Named& named() const { return named_; }

 private:
  List list_;
  Named named_;
};

struct CompileOptions {
  OptimizerArgument optimizer = "rmsprop";
  // None: only the penalties that layers add.
  PerOutput<LossArgument> loss = {};
  // Metrics that ignore sample weights.
  MetricList metrics = {};
  // Factors of the outputs' losses in their sum; missing: 1.
  PerOutput<double> loss_weights = {};
  // Metrics that use sample weights.
  MetricList weighted_metrics = {};
  // After so many steps callbacks are called, once for all of them; at most an epoch's.
  int64_t steps_per_execution = 1;
  // Whether each step runs as it is. Otherwise steps of one replica on one GPU are recorded and
  // replayed (distribute::StepGraphs), so that the code of layers, losses and of train_step runs in
  // the first steps only.
  bool run_eagerly = false;
};

}  // namespace keras
}  // namespace cohort

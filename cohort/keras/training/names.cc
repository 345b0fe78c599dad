#include "cohort/keras/training/names.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/keras/losses/crossentropy.h"
#include "cohort/keras/losses/mean_squared_error.h"
#include "cohort/keras/metrics/accuracy.h"
#include "cohort/keras/metrics/mean.h"
#include "cohort/keras/metrics/metric_state.h"
#include "cohort/keras/optimizers/optimizers.h"

namespace cohort::internal {
namespace {

namespace losses = keras::losses;
namespace metrics = keras::metrics;
namespace optimizers = keras::optimizers;
using Made = keras::MetricArgument::Made;

template <class Result>
struct NamedMaker {
  std::string_view name;
  Result (*make)();
};

constexpr NamedMaker<optimizers::Optimizer> kOptimizers[] = {
    {"adam", []() -> optimizers::Optimizer { return optimizers::Adam(); }},
    {"rmsprop", []() -> optimizers::Optimizer { return optimizers::RMSprop(); }},
    {"sgd", []() -> optimizers::Optimizer { return optimizers::SGD(); }},
};

losses::Loss binary_loss() { return losses::BinaryCrossentropy(); }
losses::Loss sparse_loss() { return losses::SparseCategoricalCrossentropy(); }
losses::Loss squared_loss() { return losses::MeanSquaredError(); }

constexpr NamedMaker<losses::Loss> kLosses[] = {
    {"mse", squared_loss},
    {"mean_squared_error", squared_loss},
    {"binary_crossentropy", binary_loss},
    {"sparse_categorical_crossentropy", sparse_loss},
};

// As Keras chooses: yes or no for one number an example, classes by number or by ones.
Tensor accuracy_by_shape(const Tensor& y_true, const Tensor& y_pred) {
  const int64_t last = y_pred.dim() == 0 ? 1 : y_pred.size(-1);
  if (last == 1) {
    const Tensor matches = (y_pred > 0.5).to(y_pred.scalar_type()) == y_true.reshape_as(y_pred);
    return matches.reshape({y_pred.dim() == 0 ? 1 : y_pred.size(0), -1}).to(float64).mean(-1);
  }
  if (y_true.dim() == y_pred.dim() && y_true.size(-1) == last) {
    return y_true.argmax(-1) == y_pred.argmax(-1);
  }
  return y_pred.argmax(-1) == sparse_labels(y_true, y_pred, "accuracy");
}

template <class Metric>
Made made(Metric metric) {
  return {metric, [metric](const Tensor& y_true, const Tensor& y_pred, const Tensor& weight) {
            metric.update_state(y_true, y_pred, weight);
          }};
}

Made function_of_loss(const std::string& name, losses::Loss (*make)()) {
  const losses::Loss loss = make().with_reduction(losses::Reduction::NONE);
  return metric_of_function(
      name, [loss](const Tensor& y_true, const Tensor& y_pred) { return loss(y_true, y_pred); });
}

struct NamedMetric {
  std::string_view name;
  Made (*make)(const std::string& name);
};

Made accuracy(const std::string& name) { return metric_of_function(name, accuracy_by_shape); }

constexpr NamedMetric kMetrics[] = {
    {"accuracy", accuracy},
    {"acc", accuracy},
    {"binary_accuracy",
     [](const std::string& name) { return made(metrics::BinaryAccuracy({.name = name})); }},
    {"sparse_categorical_accuracy",
     [](const std::string& name) {
       return made(metrics::SparseCategoricalAccuracy({.name = name}));
     }},
    {"mse", [](const std::string& name) { return function_of_loss(name, squared_loss); }},
    {"mean_squared_error",
     [](const std::string& name) { return function_of_loss(name, squared_loss); }},
    {"binary_crossentropy",
     [](const std::string& name) { return function_of_loss(name, binary_loss); }},
    {"sparse_categorical_crossentropy",
     [](const std::string& name) { return function_of_loss(name, sparse_loss); }},
};

// The number of letters to insert, remove or replace.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, replaced}));
    }
  }
  return row[b.size()];
}

template <class Table>
const auto& find_named(const Table& table, std::string_view name, const char* what) {
  std::vector<std::string_view> known;
  for (const auto& candidate : table) {
    if (candidate.name == name) return candidate;
    known.push_back(candidate.name);
  }
  throw InvalidArgumentError(
      str("no ", what, " is called ", quoted(name), nearest_name_hint(name, known)));
}

// Keras takes "Adam" and "adam" alike.
std::string lowered(std::string_view name) {
  std::string text(name);
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

class FunctionMean final : public metrics::Metric {
 public:
  FunctionMean(const std::string& name, keras::MetricArgument::Function fn)
      : Metric(make_mean_state(name)), fn_(std::move(fn)) {}
  void update_state(const Tensor& y_true, const Tensor& y_pred, const Tensor& weight) const {
    add_to_mean(state(), fn_(y_true.detach(), y_pred.detach()), weight);
  }

 private:
  keras::MetricArgument::Function fn_;
};

}  // namespace

std::string nearest_name_hint(std::string_view name, const std::vector<std::string_view>& known) {
  std::string list;
  std::string_view nearest;
  size_t least = std::max<size_t>(2, name.size() / 2);
  for (const std::string_view candidate : known) {
    list += str(list.empty() ? "" : ", ", candidate);
    const size_t distance = edit_distance(name, candidate);
    if (distance >= least) continue;
    least = distance;
    nearest = candidate;
  }
  return str(
      nearest.empty() ? "; there are: " : str("; did you mean ", quoted(nearest), "? There are: "),
      list);
}

keras::optimizers::Optimizer optimizer_of_name(std::string_view name) {
  return find_named(kOptimizers, lowered(name), "optimizer").make();
}

keras::losses::Loss loss_of_name(std::string_view name) {
  return find_named(kLosses, name, "loss").make();
}

keras::MetricArgument::Made metric_of_name(const std::string& name) {
  return find_named(kMetrics, name, "metric").make(name);
}

void check_metric_name(std::string_view name) { find_named(kMetrics, name, "metric"); }

keras::MetricArgument::Made metric_of_function(const std::string& name,
                                               keras::MetricArgument::Function fn) {
  return made(FunctionMean(name, std::move(fn)));
}

}  // namespace cohort::internal

namespace cohort::keras {

optimizers::Optimizer OptimizerArgument::make() const {
  return object_ ? *object_ : internal::optimizer_of_name(name_);
}

LossArgument::LossArgument(const char* name) : loss_(internal::loss_of_name(name)) {}

MetricArgument::MetricArgument(const char* name) : name_(name) {
  internal::check_metric_name(name);
}

MetricArgument::Made MetricArgument::make() const {
  if (object_) return *object_;
  return fn_ ? internal::metric_of_function(name_, fn_) : internal::metric_of_name(name_);
}

}  // namespace cohort::keras

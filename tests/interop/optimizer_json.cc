#include "optimizer_json.h"

#include <cohort/core/error.h>

#include <map>
#include <optional>
#include <set>
#include <vector>

namespace cohort::interop {
namespace {

using namespace keras::optimizers;

// Reads members of an options struct; every key of the JSON must be read.
class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {}

  template <class T>
  Reader& operator()(const char* key, T& member) {
    known_.insert(key);
    if (json_.contains(key)) assign(json_.at(key), member);
    return *this;
  }
  void finish() const {
    for (const auto& [key, value] : json_.items()) {
      if (known_.count(key) == 0) throw InvalidArgumentError("the probe reads no option " + key);
    }
  }

 private:
  template <class T>
  void assign(const Json& value, T& member) {
    member = value.get<T>();
  }
  template <class T>
  void assign(const Json& value, std::optional<T>& member) {
    if (!value.is_null()) member = value.get<T>();
  }
  void assign(const Json& value, LearningRate& member) { member = make_learning_rate(value); }

  const Json& json_;
  std::set<std::string> known_ = {"schedule"};
};

template <class T, class Options, class Fields>
Optimizer make(const Json& json, const Fields& fields) {
  Options options;
  Reader read(json);
  fields(read, options);
  read("learning_rate", options.learning_rate)("clipnorm", options.clipnorm)(
      "clipvalue", options.clipvalue)("global_clipnorm", options.global_clipnorm)(
      "weight_decay", options.weight_decay)("use_ema", options.use_ema)(
      "ema_momentum", options.ema_momentum)("ema_overwrite_frequency",
                                            options.ema_overwrite_frequency)
      .finish();
  return T(options);
}

Optimizer make_adafactor(const Json& json) {
  return make<Adafactor, AdafactorOptions>(json, [](Reader& read, AdafactorOptions& o) {
    read("beta_2_decay", o.beta_2_decay)("epsilon_1", o.epsilon_1)("epsilon_2", o.epsilon_2)(
        "clip_threshold", o.clip_threshold)("relative_step", o.relative_step);
  });
}

template <class T, class Options>
Optimizer make_adam(const Json& json) {
  return make<T, Options>(json, [](Reader& read, Options& o) {
    read("beta_1", o.beta_1)("beta_2", o.beta_2);
    if constexpr (requires { o.epsilon; }) read("epsilon", o.epsilon);
    if constexpr (requires { o.amsgrad; }) read("amsgrad", o.amsgrad);
  });
}

template <class T, class Options, class Fields>
LearningRate make_schedule(const Json& json, const Fields& fields) {
  Options options;
  Reader read(json);
  read("initial_learning_rate", options.initial_learning_rate);
  fields(read, options);
  read.finish();
  return T(options);
}

}  // namespace

LearningRate make_learning_rate(const Json& json) {
  if (json.is_number()) return json.get<double>();
  const std::string name = json.at("schedule");
  if (name == "ExponentialDecay") {
    return make_schedule<optim::ExponentialDecay, optim::ExponentialDecayOptions>(
        json, [](Reader& read, auto& o) {
          read("decay_steps", o.decay_steps)("decay_rate", o.decay_rate)("staircase", o.staircase);
        });
  }
  if (name == "InverseTimeDecay") {
    return make_schedule<optim::InverseTimeDecay, optim::InverseTimeDecayOptions>(
        json, [](Reader& read, auto& o) {
          read("decay_steps", o.decay_steps)("decay_rate", o.decay_rate)("staircase", o.staircase);
        });
  }
  if (name == "PolynomialDecay") {
    return make_schedule<optim::PolynomialDecay, optim::PolynomialDecayOptions>(
        json, [](Reader& read, auto& o) {
          read("decay_steps", o.decay_steps)("end_learning_rate", o.end_learning_rate)(
              "power", o.power)("cycle", o.cycle);
        });
  }
  if (name == "CosineDecay") {
    return make_schedule<optim::CosineDecay, optim::CosineDecayOptions>(
        json, [](Reader& read, auto& o) {
          read("decay_steps", o.decay_steps)("alpha", o.alpha)("warmup_target", o.warmup_target)(
              "warmup_steps", o.warmup_steps);
        });
  }
  if (name == "CosineDecayRestarts") {
    return make_schedule<optim::CosineDecayRestarts, optim::CosineDecayRestartsOptions>(
        json, [](Reader& read, auto& o) {
          read("first_decay_steps", o.first_decay_steps)("t_mul", o.t_mul)("m_mul", o.m_mul)(
              "alpha", o.alpha);
        });
  }
  if (name == "PiecewiseConstantDecay") {
    return optim::PiecewiseConstantDecay(json.at("boundaries").get<std::vector<int64_t>>(),
                                         json.at("values").get<std::vector<double>>());
  }
  throw InvalidArgumentError("no schedule '" + name + "'");
}

Optimizer make_optimizer(const std::string& name, const Json& json) {
  if (name == "Adam") return make_adam<Adam, AdamOptions>(json);
  if (name == "AdamW") return make_adam<AdamW, AdamWOptions>(json);
  if (name == "Nadam") return make_adam<Nadam, NadamOptions>(json);
  if (name == "Lion") return make_adam<Lion, LionOptions>(json);
  if (name == "Adamax") return make_adam<Adamax, AdamaxOptions>(json);
  if (name == "SGD") {
    return make<SGD, SGDOptions>(json, [](Reader& read, SGDOptions& o) {
      read("momentum", o.momentum)("nesterov", o.nesterov);
    });
  }
  if (name == "RMSprop") {
    return make<RMSprop, RMSpropOptions>(json, [](Reader& read, RMSpropOptions& o) {
      read("rho", o.rho)("momentum", o.momentum)("epsilon", o.epsilon)("centered", o.centered);
    });
  }
  if (name == "Adafactor") return make_adafactor(json);
  if (name == "Adagrad") {
    return make<Adagrad, AdagradOptions>(json, [](Reader& read, AdagradOptions& o) {
      read("initial_accumulator_value", o.initial_accumulator_value)("epsilon", o.epsilon);
    });
  }
  if (name == "Adadelta") {
    return make<Adadelta, AdadeltaOptions>(
        json, [](Reader& read, AdadeltaOptions& o) { read("rho", o.rho)("epsilon", o.epsilon); });
  }
  if (name == "Ftrl") {
    return make<Ftrl, FtrlOptions>(json, [](Reader& read, FtrlOptions& o) {
      read("learning_rate_power", o.learning_rate_power)("initial_accumulator_value",
                                                         o.initial_accumulator_value)(
          "l1_regularization_strength", o.l1_regularization_strength)("l2_regularization_strength",
                                                                      o.l2_regularization_strength)(
          "l2_shrinkage_regularization_strength", o.l2_shrinkage_regularization_strength)("beta",
                                                                                          o.beta);
    });
  }
  throw InvalidArgumentError("no optimizer '" + name + "'");
}

}  // namespace cohort::interop

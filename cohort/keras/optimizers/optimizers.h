// The optimizers, with the formulas and defaults of Keras 2.15.
//
//   optimizers::Adam adam({.learning_rate = 1e-3, .global_clipnorm = 1});
//   optimizers::SGD sgd({.learning_rate = optim::ExponentialDecay({...}), .momentum = 0.9});
//   optimizers::Optimizer rmsprop = optimizers::get("rmsprop");
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cohort/core/export.h"
#include "cohort/keras/optimizers/optimizer.h"
#include "cohort/optim/decays.h"

namespace cohort::keras::optimizers {

// A number or a schedule: Adam(1e-3) is Adam({.learning_rate = 1e-3}). What Keras takes next may
// follow: SGD(0.1, 0.9) has a momentum of 0.9.
template <class T>
concept LearningRateLike = std::convertible_to<const T&, LearningRate>;

struct SGDOptions {
  LearningRate learning_rate = 0.01;
  double momentum = 0;    // in [0, 1]
  bool nesterov = false;  // look ahead along the momentum
  // See CommonOptions.
  double clipnorm = 0;
  double clipvalue = 0;
  double global_clipnorm = 0;
  std::optional<double> weight_decay = std::nullopt;
  bool use_ema = false;
  double ema_momentum = 0.99;
  int64_t ema_overwrite_frequency = 0;
  int64_t gradient_accumulation_steps = 1;
  NotFinite not_finite = NotFinite::ALLOW;
  std::string name = "SGD";
};
// See optim/sgd.h. Errors: InvalidArgument (names the option and its value); of the others, too.
class COHORT_API SGD : public Optimizer {
 public:
  explicit SGD(const SGDOptions& options = {});
  template <LearningRateLike Rate>
  explicit SGD(const Rate& learning_rate, double momentum = 0)
      : SGD(SGDOptions{.learning_rate = learning_rate, .momentum = momentum}) {}
};

struct AdamOptions {
  LearningRate learning_rate = 0.001;
  double beta_1 = 0.9;    // decay of the gradient's mean, in [0, 1)
  double beta_2 = 0.999;  // decay of its square's mean, in [0, 1)
  double epsilon = 1e-7;  // added to the root
  bool amsgrad = false;   // divide by the largest second moment so far
  // See CommonOptions.
  double clipnorm = 0;
  double clipvalue = 0;
  double global_clipnorm = 0;
  std::optional<double> weight_decay = std::nullopt;
  bool use_ema = false;
  double ema_momentum = 0.99;
  int64_t ema_overwrite_frequency = 0;
  int64_t gradient_accumulation_steps = 1;
  NotFinite not_finite = NotFinite::ALLOW;
  std::string name = "Adam";
};
// See optim/adam.h.
class COHORT_API Adam : public Optimizer {
 public:
  explicit Adam(const AdamOptions& options = {});
  template <LearningRateLike Rate>
  explicit Adam(const Rate& learning_rate, double beta_1 = 0.9, double beta_2 = 0.999)
      : Adam(AdamOptions{.learning_rate = learning_rate, .beta_1 = beta_1, .beta_2 = beta_2}) {}
};

struct AdamWOptions {
  LearningRate learning_rate = 0.001;
  double beta_1 = 0.9;    // decay of the gradient's mean, in [0, 1)
  double beta_2 = 0.999;  // decay of its square's mean, in [0, 1)
  double epsilon = 1e-7;  // added to the root
  bool amsgrad = false;   // divide by the largest second moment so far
  // See CommonOptions.
  double clipnorm = 0;
  double clipvalue = 0;
  double global_clipnorm = 0;
  std::optional<double> weight_decay = 0.004;
  bool use_ema = false;
  double ema_momentum = 0.99;
  int64_t ema_overwrite_frequency = 0;
  int64_t gradient_accumulation_steps = 1;
  NotFinite not_finite = NotFinite::ALLOW;
  std::string name = "AdamW";
};
// Adam with decaying weights (Loshchilov and Hutter, 2017).
class COHORT_API AdamW : public Optimizer {
 public:
  explicit AdamW(const AdamWOptions& options = {});
  template <LearningRateLike Rate>
  explicit AdamW(const Rate& learning_rate) : AdamW(AdamWOptions{.learning_rate = learning_rate}) {}
};

struct RMSpropOptions {
  LearningRate learning_rate = 0.001;
  double rho = 0.9;       // decay of the squared gradient's mean, in [0, 1]
  double momentum = 0;    // in [0, 1]
  double epsilon = 1e-7;  // added under the root
  bool centered = false;  // divide by the variance instead of the second moment
  // See CommonOptions.
  double clipnorm = 0;
  double clipvalue = 0;
  double global_clipnorm = 0;
  std::optional<double> weight_decay = std::nullopt;
  bool use_ema = false;
  double ema_momentum = 0.99;
  int64_t ema_overwrite_frequency = 100;  // Keras's; without effect if use_ema is false
  int64_t gradient_accumulation_steps = 1;
  NotFinite not_finite = NotFinite::ALLOW;
  std::string name = "RMSprop";
};
// See optim/rmsprop.h.
class COHORT_API RMSprop : public Optimizer {
 public:
  explicit RMSprop(const RMSpropOptions& options = {});
  template <LearningRateLike Rate>
  explicit RMSprop(const Rate& learning_rate, double rho = 0.9, double momentum = 0)
      : RMSprop(RMSpropOptions{.learning_rate = learning_rate, .rho = rho, .momentum = momentum}) {}
};

struct AdagradOptions {
  LearningRate learning_rate = 0.001;
  double initial_accumulator_value = 0.1;
  double epsilon = 1e-7;  // added under the root
  // See CommonOptions.
  double clipnorm = 0;
  double clipvalue = 0;
  double global_clipnorm = 0;
  std::optional<double> weight_decay = std::nullopt;
  bool use_ema = false;
  double ema_momentum = 0.99;
  int64_t ema_overwrite_frequency = 0;
  int64_t gradient_accumulation_steps = 1;
  NotFinite not_finite = NotFinite::ALLOW;
  std::string name = "Adagrad";
};
// See optim/adagrad.h.
class COHORT_API Adagrad : public Optimizer {
 public:
  explicit Adagrad(const AdagradOptions& options = {});
  template <LearningRateLike Rate>
  explicit Adagrad(const Rate& learning_rate)
      : Adagrad(AdagradOptions{.learning_rate = learning_rate}) {}
};

struct AdadeltaOptions {
  LearningRate learning_rate = 0.001;
  double rho = 0.95;      // decay of both means, in [0, 1]
  double epsilon = 1e-7;  // added under the roots
  // See CommonOptions.
  double clipnorm = 0;
  double clipvalue = 0;
  double global_clipnorm = 0;
  std::optional<double> weight_decay = std::nullopt;
  bool use_ema = false;
  double ema_momentum = 0.99;
  int64_t ema_overwrite_frequency = 0;
  int64_t gradient_accumulation_steps = 1;
  NotFinite not_finite = NotFinite::ALLOW;
  std::string name = "Adadelta";
};
// See optim/adadelta.h.
class COHORT_API Adadelta : public Optimizer {
 public:
  explicit Adadelta(const AdadeltaOptions& options = {});
  template <LearningRateLike Rate>
  explicit Adadelta(const Rate& learning_rate)
      : Adadelta(AdadeltaOptions{.learning_rate = learning_rate}) {}
};

struct AdafactorOptions {
  LearningRate learning_rate = 0.001;
  double beta_2_decay = -0.8;  // the second moment's decay at step t is 1 - t^beta_2_decay
  double epsilon_1 = 1e-30;    // added to the squared gradient
  double epsilon_2 = 1e-3;     // a step is a share of the variable's size, and of this at least
  double clip_threshold = 1;   // the most that a step's direction has as its root mean square
  // Keras's: a constant learning rate is 1 / sqrt(t) at most. It changes nothing, for the formula
  // takes no other rate in any case.
  bool relative_step = true;
  // See CommonOptions.
  double clipnorm = 0;
  double clipvalue = 0;
  double global_clipnorm = 0;
  std::optional<double> weight_decay = std::nullopt;
  bool use_ema = false;
  double ema_momentum = 0.99;
  int64_t ema_overwrite_frequency = 0;
  int64_t gradient_accumulation_steps = 1;
  NotFinite not_finite = NotFinite::ALLOW;
  std::string name = "Adafactor";
};
// See optim/adafactor.h. Means over a whole variable are part of its formula, so that it updates no
// variable whose parts lie on several ps tasks.
class COHORT_API Adafactor : public Optimizer {
 public:
  explicit Adafactor(const AdafactorOptions& options = {});
  template <LearningRateLike Rate>
  explicit Adafactor(const Rate& learning_rate)
      : Adafactor(AdafactorOptions{.learning_rate = learning_rate}) {}
};

struct AdamaxOptions {
  LearningRate learning_rate = 0.001;
  double beta_1 = 0.9;    // decay of the gradient's mean, in [0, 1)
  double beta_2 = 0.999;  // decay of its largest size, in [0, 1)
  double epsilon = 1e-7;  // added to that size
  // See CommonOptions.
  double clipnorm = 0;
  double clipvalue = 0;
  double global_clipnorm = 0;
  std::optional<double> weight_decay = std::nullopt;
  bool use_ema = false;
  double ema_momentum = 0.99;
  int64_t ema_overwrite_frequency = 0;
  int64_t gradient_accumulation_steps = 1;
  NotFinite not_finite = NotFinite::ALLOW;
  std::string name = "Adamax";
};
// See optim/adamax.h.
class COHORT_API Adamax : public Optimizer {
 public:
  explicit Adamax(const AdamaxOptions& options = {});
  template <LearningRateLike Rate>
  explicit Adamax(const Rate& learning_rate, double beta_1 = 0.9, double beta_2 = 0.999)
      : Adamax(AdamaxOptions{.learning_rate = learning_rate, .beta_1 = beta_1, .beta_2 = beta_2}) {}
};

struct NadamOptions {
  LearningRate learning_rate = 0.001;
  double beta_1 = 0.9;    // decay of the gradient's mean, in [0, 1)
  double beta_2 = 0.999;  // decay of its square's mean, in [0, 1)
  double epsilon = 1e-7;  // added to the root
  // See CommonOptions.
  double clipnorm = 0;
  double clipvalue = 0;
  double global_clipnorm = 0;
  std::optional<double> weight_decay = std::nullopt;
  bool use_ema = false;
  double ema_momentum = 0.99;
  int64_t ema_overwrite_frequency = 0;
  int64_t gradient_accumulation_steps = 1;
  NotFinite not_finite = NotFinite::ALLOW;
  std::string name = "Nadam";
};
// See optim/nadam.h.
class COHORT_API Nadam : public Optimizer {
 public:
  explicit Nadam(const NadamOptions& options = {});
  template <LearningRateLike Rate>
  explicit Nadam(const Rate& learning_rate, double beta_1 = 0.9, double beta_2 = 0.999)
      : Nadam(NadamOptions{.learning_rate = learning_rate, .beta_1 = beta_1, .beta_2 = beta_2}) {}
};

struct LionOptions {
  LearningRate learning_rate = 0.001;
  double beta_1 = 0.9;   // the momentum's share of the step, in (0, 1]
  double beta_2 = 0.99;  // decay of the momentum, in [0, 1)
  // See CommonOptions.
  double clipnorm = 0;
  double clipvalue = 0;
  double global_clipnorm = 0;
  std::optional<double> weight_decay = std::nullopt;
  bool use_ema = false;
  double ema_momentum = 0.99;
  int64_t ema_overwrite_frequency = 0;
  int64_t gradient_accumulation_steps = 1;
  NotFinite not_finite = NotFinite::ALLOW;
  std::string name = "Lion";
};
// See optim/lion.h.
class COHORT_API Lion : public Optimizer {
 public:
  explicit Lion(const LionOptions& options = {});
  template <LearningRateLike Rate>
  explicit Lion(const Rate& learning_rate, double beta_1 = 0.9, double beta_2 = 0.99)
      : Lion(LionOptions{.learning_rate = learning_rate, .beta_1 = beta_1, .beta_2 = beta_2}) {}
};

struct FtrlOptions {
  LearningRate learning_rate = 0.001;
  double learning_rate_power = -0.5;
  double initial_accumulator_value = 0.1;
  double l1_regularization_strength = 0;
  double l2_regularization_strength = 0;
  double l2_shrinkage_regularization_strength = 0;
  double beta = 0;
  // See CommonOptions.
  double clipnorm = 0;
  double clipvalue = 0;
  double global_clipnorm = 0;
  std::optional<double> weight_decay = std::nullopt;
  bool use_ema = false;
  double ema_momentum = 0.99;
  int64_t ema_overwrite_frequency = 0;
  int64_t gradient_accumulation_steps = 1;
  NotFinite not_finite = NotFinite::ALLOW;
  std::string name = "Ftrl";
};
// See optim/ftrl.h.
class COHORT_API Ftrl : public Optimizer {
 public:
  explicit Ftrl(const FtrlOptions& options = {});
  template <LearningRateLike Rate>
  explicit Ftrl(const Rate& learning_rate) : Ftrl(FtrlOptions{.learning_rate = learning_rate}) {}
};

// A new optimizer with the defaults of the class that Keras knows under `name`, in any case:
// "Adam", "adam".
// Errors: InvalidArgument (no such optimizer; names the nearest).
COHORT_API Optimizer get(std::string_view name);

// Keras's place for them.
namespace schedules {
using optim::CosineDecay;
using optim::CosineDecayRestarts;
using optim::ExponentialDecay;
using optim::InverseTimeDecay;
using optim::LearningRateSchedule;
using optim::PiecewiseConstantDecay;
using optim::PolynomialDecay;
}  // namespace schedules

}  // namespace cohort::keras::optimizers

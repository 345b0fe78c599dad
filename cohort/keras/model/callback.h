// What a program adds to fit, evaluate and predict: functions that are called as they go.
//
//   class Announce : public keras::callbacks::Callback {
//     void on_epoch_end(int64_t epoch, keras::Logs& logs) override {
//       std::cout << epoch << ": " << logs["loss"] << '\n';
//     }
//   };
//   model.fit(dataset, {.callbacks = {Announce(), keras::callbacks::TerminateOnNaN()}});
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/keras/model/log_read.h"
#include "cohort/keras/model/logs.h"

namespace cohort::internal {
struct LogUse;
}

namespace cohort::keras {

class Model;
class ModelHandle;

namespace callbacks {

struct CallbackParams {
  int64_t epochs = 1;
  // The steps of an epoch, or of evaluate or predict; below 0: unknown.
  int64_t steps = -1;
  int verbose = 0;
  // Whether this is fit with validation data, of which some epochs may make no use
  // (validation_freq).
  bool validates = false;
};

// Each task of a cluster has callbacks of its own, which see the same numbers (where a coordinator
// hands out the steps, it alone has some); what writes files does so in one of them (is_chief()),
// but for TensorBoard's traces, of which each task has its own. A batch's logs are those of the
// epoch so far, and are computed when somebody looks at them: see Logs. With steps_per_execution
// the hooks of batches are called once an execution, with its last batch.
// Thread safety: called by the thread that trains, between steps.
// Errors of all hooks but on_train_error end fit, with the callback's name.
class COHORT_API Callback {
 public:
  Callback() = default;
  virtual ~Callback() = default;

  // For errors; the class's, if not overridden.
  virtual std::string name() const;

  virtual void on_train_begin() {}
  // `logs` are those of the last epoch.
  virtual void on_train_end(const Logs& logs);
  // Ctrl-C has ended fit, after a step; in place of on_train_end.
  virtual void on_train_interrupted() {}
  // fit ends with an exception, that of Ctrl-C, too: to let go of what is held as long as fit runs.
  // What it throws is logged.
  virtual void on_train_error() {}
  virtual void on_epoch_begin(int64_t epoch);
  // Numbers that are set in `logs` go to the callbacks after this one, and to the history.
  virtual void on_epoch_end(int64_t epoch, Logs& logs);
  virtual void on_train_batch_begin(int64_t batch);
  virtual void on_train_batch_end(int64_t batch, const Logs& logs);

  // The hooks of evaluate, and of validation within fit.
  virtual void on_test_begin() {}
  virtual void on_test_end(const Logs& logs);
  virtual void on_test_batch_begin(int64_t batch);
  virtual void on_test_batch_end(int64_t batch, const Logs& logs);

  virtual void on_predict_begin() {}
  virtual void on_predict_end() {}
  virtual void on_predict_batch_begin(int64_t batch);
  virtual void on_predict_batch_end(int64_t batch);

  // The one that is trained. Errors: FailedPrecondition (outside of fit, evaluate and predict).
  ModelHandle model() const;
  const CallbackParams& params() const { return params_; }
  // Whether this task is the one that writes for all.
  bool is_chief() const;

  void set_model(std::shared_ptr<Model> model) { model_ = std::move(model); }
  void set_params(const CallbackParams& params) { params_ = params; }

 private:
  friend class CallbackList;
  friend struct internal::LogUse;

  // Numbers that it takes from the logs, those that decide whether it takes the others first.
  virtual std::vector<internal::LogRead> log_reads() const { return {}; }
  // Numbers that it adds to an epoch's logs; nullopt: it is not known which.
  virtual std::optional<std::vector<std::string>> log_additions() const { return std::nullopt; }

  std::shared_ptr<Model> model_;
  CallbackParams params_;
};

// A callback in a list: an object of which the list keeps a copy if it is temporary, else uses it
// where it is, so that its state can be read afterwards; or a shared pointer to one.
class COHORT_API CallbackArgument {
 public:
  template <class T>
  requires std::derived_from<std::remove_cvref_t<T>, Callback> CallbackArgument(T&& callback) {
    using Own = std::remove_cvref_t<T>;
    static_assert(!std::is_const_v<std::remove_reference_t<T>>,
                  "a callback changes while it is used: declare it without const");
    if constexpr (std::is_lvalue_reference_v<T>) {
      callback_ = std::shared_ptr<Callback>(std::shared_ptr<Callback>(), &callback);
    } else {
      callback_ = std::make_shared<Own>(std::forward<T>(callback));
    }
  }
  template <std::derived_from<Callback> T>
  CallbackArgument(std::shared_ptr<T> callback) : callback_(std::move(callback)) {}

  const std::shared_ptr<Callback>& pointer() const { return callback_; }

 private:
  std::shared_ptr<Callback> callback_;
};

// The callbacks of a call; a single one needs no list.
class CallbackArguments : public std::vector<CallbackArgument> {
 public:
  using Base = std::vector<CallbackArgument>;
  CallbackArguments() = default;
  CallbackArguments(std::initializer_list<CallbackArgument> list) : Base(list) {}
  CallbackArguments(Base list) : Base(std::move(list)) {}
  template <class T>
  requires(std::convertible_to<T&&, CallbackArgument> &&
           !std::derived_from<std::remove_cvref_t<T>, Base>) CallbackArguments(T&& callback)
      : Base{CallbackArgument(std::forward<T>(callback))} {}
};

}  // namespace callbacks
}  // namespace cohort::keras

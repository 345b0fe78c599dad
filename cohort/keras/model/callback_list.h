// The callbacks of one call of fit, evaluate or predict, together.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/keras/model/callback.h"
#include "cohort/keras/model/model.h"

namespace cohort::keras::callbacks {

// Calls the hooks of several callbacks, in their order: for training loops of one's own. In its
// hooks a callback has this list's model and params, also where a call within another hook has used
// it with others.
// Thread safety: none.
class COHORT_API CallbackList {
 public:
  // Errors: InvalidArgument (a null pointer).
  explicit CallbackList(const std::vector<CallbackArgument>& callbacks = {});

  void append(std::shared_ptr<Callback> callback) { callbacks_.push_back(std::move(callback)); }
  void set_model(const ModelHandle& model);
  void set_params(const CallbackParams& params);
  const std::vector<std::shared_ptr<Callback>>& callbacks() const { return callbacks_; }

  void on_train_begin();
  void on_train_end(const Logs& logs);
  void on_train_interrupted();
  void on_train_error() noexcept;
  void on_epoch_begin(int64_t epoch);
  void on_epoch_end(int64_t epoch, Logs& logs);
  void on_train_batch_begin(int64_t batch);
  void on_train_batch_end(int64_t batch, const Logs& logs);
  void on_test_begin();
  void on_test_end(const Logs& logs);
  void on_test_batch_begin(int64_t batch);
  void on_test_batch_end(int64_t batch, const Logs& logs);
  void on_predict_begin();
  void on_predict_end();
  void on_predict_batch_begin(int64_t batch);
  void on_predict_batch_end(int64_t batch);

 private:
  template <class Hook>
  void each(const char* what, Hook&& hook);
  void attach(Callback& callback) const;

  std::vector<std::shared_ptr<Callback>> callbacks_;
  std::shared_ptr<Model> model_;
  std::optional<CallbackParams> params_;
};

}  // namespace cohort::keras::callbacks

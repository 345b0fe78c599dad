#include "cohort/keras/model/callback_list.h"

#include "cohort/core/error_context.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/program/interrupt.h"
#include "cohort/core/text.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/keras/layers/base/layer_state.h"

namespace cohort::keras::callbacks {

using internal::str;

// A callback has the model that its list has given it.
ModelHandle Callback::model() const {
  if (model_ == nullptr) {
    throw FailedPreconditionError(str("callback '", name(),
                                      "' asked for its model outside of fit, evaluate and "
                                      "predict; a loop of your own calls set_model first"));
  }
  return ModelHandle(model_);
}

bool Callback::is_chief() const {
  return model_ == nullptr || internal::strategy_of(*model_)->should_save_summary();
}

CallbackList::CallbackList(const std::vector<CallbackArgument>& callbacks) {
  for (const CallbackArgument& callback : callbacks) {
    if (callback.pointer() == nullptr) {
      throw InvalidArgumentError(str("callback ", callbacks_.size(), " is a null pointer"));
    }
    callbacks_.push_back(callback.pointer());
  }
}

void CallbackList::set_model(const ModelHandle& model) {
  model_ = std::static_pointer_cast<Model>(model.pointer());
  for (const auto& callback : callbacks_) attach(*callback);
}

void CallbackList::set_params(const CallbackParams& params) {
  params_ = params;
  for (const auto& callback : callbacks_) attach(*callback);
}

void CallbackList::attach(Callback& callback) const {
  if (model_ != nullptr && callback.model_ != model_) callback.set_model(model_);
  if (params_) callback.set_params(*params_);
}

template <class Hook>
void CallbackList::each(const char* what, Hook&& hook) {
  for (const auto& callback : callbacks_) {
    attach(*callback);
    try {
      hook(*callback);
    } catch (const InterruptedError&) {
      throw;
    } catch (...) {
      internal::rethrow_with_context(str("callback '", callback->name(), "', ", what));
    }
  }
}

void CallbackList::on_train_begin() {
  each("on_train_begin", [](Callback& callback) { callback.on_train_begin(); });
}
void CallbackList::on_train_end(const Logs& logs) {
  each("on_train_end", [&](Callback& callback) { callback.on_train_end(logs); });
}
void CallbackList::on_train_interrupted() {
  each("on_train_interrupted", [](Callback& callback) { callback.on_train_interrupted(); });
}
void CallbackList::on_train_error() noexcept {
  for (const auto& callback : callbacks_) {
    attach(*callback);
    try {
      callback->on_train_error();
    } catch (const std::exception&) {
      internal::log_warning("callback '", callback->name(), "', on_train_error: ",
                            internal::record_error(std::current_exception()).message);
    } catch (...) {
      internal::log_warning("callback '", callback->name(),
                            "', on_train_error: an exception without a text");
    }
  }
}
void CallbackList::on_epoch_begin(int64_t epoch) {
  each("on_epoch_begin", [&](Callback& callback) { callback.on_epoch_begin(epoch); });
}
void CallbackList::on_epoch_end(int64_t epoch, Logs& logs) {
  each("on_epoch_end", [&](Callback& callback) { callback.on_epoch_end(epoch, logs); });
}
void CallbackList::on_train_batch_begin(int64_t batch) {
  each("on_train_batch_begin", [&](Callback& callback) { callback.on_train_batch_begin(batch); });
}
void CallbackList::on_train_batch_end(int64_t batch, const Logs& logs) {
  each("on_train_batch_end", [&](Callback& callback) { callback.on_train_batch_end(batch, logs); });
}
void CallbackList::on_test_begin() {
  each("on_test_begin", [](Callback& callback) { callback.on_test_begin(); });
}
void CallbackList::on_test_end(const Logs& logs) {
  each("on_test_end", [&](Callback& callback) { callback.on_test_end(logs); });
}
void CallbackList::on_test_batch_begin(int64_t batch) {
  each("on_test_batch_begin", [&](Callback& callback) { callback.on_test_batch_begin(batch); });
}
void CallbackList::on_test_batch_end(int64_t batch, const Logs& logs) {
  each("on_test_batch_end", [&](Callback& callback) { callback.on_test_batch_end(batch, logs); });
}
void CallbackList::on_predict_begin() {
  each("on_predict_begin", [](Callback& callback) { callback.on_predict_begin(); });
}
void CallbackList::on_predict_end() {
  each("on_predict_end", [](Callback& callback) { callback.on_predict_end(); });
}
void CallbackList::on_predict_batch_begin(int64_t batch) {
  each("on_predict_batch_begin",
       [&](Callback& callback) { callback.on_predict_batch_begin(batch); });
}
void CallbackList::on_predict_batch_end(int64_t batch) {
  each("on_predict_batch_end", [&](Callback& callback) { callback.on_predict_batch_end(batch); });
}

}  // namespace cohort::keras::callbacks

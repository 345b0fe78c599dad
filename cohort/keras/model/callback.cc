#include "cohort/keras/model/callback.h"

#include <typeinfo>

#include "cohort/keras/layers/base/layer_state.h"

namespace cohort::keras::callbacks {

std::string Callback::name() const { return internal::unqualified_type_name(typeid(*this)); }

void Callback::on_train_end(const Logs&) {}
void Callback::on_epoch_begin(int64_t) {}
void Callback::on_epoch_end(int64_t, Logs&) {}
void Callback::on_train_batch_begin(int64_t) {}
void Callback::on_train_batch_end(int64_t, const Logs&) {}
void Callback::on_test_end(const Logs&) {}
void Callback::on_test_batch_begin(int64_t) {}
void Callback::on_test_batch_end(int64_t, const Logs&) {}
void Callback::on_predict_batch_begin(int64_t) {}
void Callback::on_predict_batch_end(int64_t) {}

}  // namespace cohort::keras::callbacks

#include "cohort/keras/callbacks/tensor_board.h"

#include "cohort/core/files/file_system.h"
#include "cohort/core/text.h"
#include "cohort/keras/model.h"
#include "cohort/train/summary/summary.h"

namespace cohort::keras::callbacks {

using internal::str;

UpdateFreq::UpdateFreq(const char* word) {
  const std::string_view text(word);
  if (text != "epoch" && text != "batch") {
    throw InvalidArgumentError(str("TensorBoard: update_freq is ", internal::quoted(text),
                                   "; it is \"epoch\", \"batch\" or a number of steps"));
  }
  steps_ = text == "batch" ? 1 : 0;
}

TensorBoard::TensorBoard(TensorBoardOptions options) : options_(std::move(options)) {}

int64_t TensorBoard::step() const {
  return model().optimizer().iterations().value().item<int64_t>();
}

void TensorBoard::on_train_begin() {
  train_ = is_chief() ? summary::create_file_writer(internal::join_path(options_.log_dir, "train"))
                      : summary::create_noop_writer();
  validation_.reset();
  next_update_ = 0;
  if (!options_.write_graph || !model().built()) return;
  const auto scope = train_->as_default();
  summary::text("model", "```\n" + model().summary() + "```", {.step = 0});
}

void TensorBoard::on_epoch_begin(int64_t) {
  epoch_start_ = Clock::now();
  epoch_first_step_ = options_.write_steps_per_second ? step() : 0;
}

void TensorBoard::on_train_batch_end(int64_t, const Logs& logs) {
  const int64_t every = options_.update_freq.steps();
  if (every == 0) return;
  const int64_t now = step();
  if (now < next_update_) return;
  next_update_ = now + every;
  const auto scope = train_->as_default();
  for (const auto& [name, value] : logs) summary::scalar("batch_" + name, value, {.step = now});
}

void TensorBoard::on_epoch_end(int64_t epoch, Logs& logs) {
  constexpr std::string_view kValidation = "val_";
  {
    const auto scope = train_->as_default();
    for (const auto& [name, value] : logs) {
      if (!name.starts_with(kValidation)) summary::scalar("epoch_" + name, value, {.step = epoch});
    }
    summary::scalar("epoch_learning_rate", model().optimizer().learning_rate(), {.step = epoch});
    if (options_.write_steps_per_second) {
      const std::chrono::duration<double> seconds = Clock::now() - epoch_start_;
      summary::scalar("epoch_steps_per_second",
                      static_cast<double>(step() - epoch_first_step_) / seconds.count(),
                      {.step = epoch});
    }
  }
  for (const auto& [name, value] : logs) {
    if (!name.starts_with(kValidation)) continue;
    if (!validation_) {
      validation_ =
          is_chief()
              ? summary::create_file_writer(internal::join_path(options_.log_dir, "validation"))
              : summary::create_noop_writer();
    }
    const auto scope = validation_->as_default();
    summary::scalar("epoch_" + name.substr(kValidation.size()), value, {.step = epoch});
  }
  if (options_.histogram_freq > 0 && epoch % options_.histogram_freq == 0) write_histograms(epoch);
}

void TensorBoard::write_histograms(int64_t epoch) {
  const auto scope = train_->as_default();
  for (const Variable& variable : model().variables()) {
    const Tensor value = variable.value().detach();  // in every task, also where nobody writes
    summary::histogram(variable.name() + "/histogram", value, {.step = epoch});
  }
}

void TensorBoard::on_train_end(const Logs&) {
  train_->close();
  if (validation_) validation_->close();
}

void TensorBoard::on_train_interrupted() { on_train_end({}); }

}  // namespace cohort::keras::callbacks

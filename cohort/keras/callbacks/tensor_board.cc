#include "cohort/keras/callbacks/tensor_board.h"

#include <utility>

#include "cohort/core/files/file_system.h"
#include "cohort/core/files/writable_directory.h"
#include "cohort/core/host/host_name.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/profiler/profiler.h"
#include "cohort/core/profiler/xspace.h"
#include "cohort/core/program/task.h"
#include "cohort/core/text.h"
#include "cohort/keras/callbacks/layer_graph.h"
#include "cohort/keras/model/model.h"
#include "cohort/train/summary/event_writer.h"
#include "cohort/train/summary/summary.h"

namespace cohort::keras::callbacks {

using internal::str;

namespace {

// Names the task, since several tasks of a job may run on one host.
std::string trace_name(const char* ending) {
  const internal::Task& task = internal::Task::current();
  const bool is_alone = task.job() == "localhost";
  return str(internal::host_name(), is_alone ? "" : str(".", task.job(), "-", task.index()),
             ending);
}

}  // namespace

UpdateFreq::UpdateFreq(const char* word) {
  const std::string_view text(word);
  if (text != "epoch" && text != "batch") {
    throw InvalidArgumentError(str("TensorBoard: update_freq is ", internal::quoted(text),
                                   "; it is \"epoch\", \"batch\" or a number of steps"));
  }
  steps_ = text == "batch" ? 1 : 0;
}

UpdateFreq::UpdateFreq(int steps) : steps_(steps) {
  if (steps >= 1) return;
  throw InvalidArgumentError(
      str("TensorBoard: update_freq is ", steps, "; it must be 1 step or more, or \"epoch\""));
}

ProfileBatch::ProfileBatch(int64_t first, int64_t last) : first_(first), last_(last) {
  if (first >= 1 && last >= first) return;
  throw InvalidArgumentError(
      str("TensorBoard: profile_batch is ", first, " to ", last,
          "; steps are counted from 1, and the last is not before the first"));
}

TensorBoard::TensorBoard(TensorBoardOptions options) : options_(std::move(options)) {
  if (options_.log_dir.empty()) throw InvalidArgumentError("TensorBoard needs a .log_dir");
  if (options_.histogram_freq >= 0) return;
  throw InvalidArgumentError(str("TensorBoard: histogram_freq is ", options_.histogram_freq,
                                 "; it is a number of epochs, or 0 for none"));
}

int64_t TensorBoard::step() const {
  return model().optimizer().iterations().value().item<int64_t>();
}

void TensorBoard::on_train_begin() {
  train_ = is_chief() ? summary::create_file_writer(internal::join_path(options_.log_dir, "train"))
                      : summary::create_noop_writer();
  validation_.reset();
  if (is_chief()) {  // where the validation's file will be made
    internal::check_directory_is_writable(internal::join_path(options_.log_dir, "validation"));
  }
  if (options_.profile_batch.first() > 0) {
    internal::check_directory_is_writable(profile_directory());
  }
  is_full_ = false;
  next_update_ = update_after(step());
  steps_of_fit_ = 0;
  if (std::exchange(profiles_, false))
    profiler::stop();  // of a loop that has not said how it ended
  last_update_ = Clock::now();
  last_update_step_ = step();
  wrote_model_ = false;
  write_model();
}

// What it takes to have the values, of which some are read in all tasks together, stays outside.
void TensorBoard::record(FunctionRef<void()> write) {
  if (is_full_) return;
  try {
    write();
  } catch (const ResourceExhaustedError& error) {
    is_full_ = true;
    internal::log(logging::Level::kError,
                  "TensorBoard: nothing more is recorded, training goes on: ", error.what());
    give_up_files();
  }
}

void TensorBoard::give_up_files() {
  for (const auto* writer : {&train_, &validation_}) {
    try {
      if (*writer) (*writer)->close();
    } catch (const ResourceExhaustedError&) {  // which was said
    }
  }
}

void TensorBoard::record_training(FunctionRef<void()> write) {
  record([&] {
    const auto scope = internal::recording_scope(*train_);
    write();
  });
}

void TensorBoard::record_validation(FunctionRef<void()> write) {
  record([&] {
    const summary::SummaryWriter& writer = validation_writer();
    const auto scope = internal::recording_scope(writer);
    write();
    writer.flush();
  });
}

// Once the model is built: by its Input, or by the first step.
void TensorBoard::write_model() {
  if (wrote_model_ || !options_.write_graph || !model().built()) return;
  wrote_model_ = true;
  record_training([&] {
    summary::text("model", "```\n" + model().summary_text() + "```", {.step = 0});
    train_->flush();
  });
  std::string json, graph;
  try {
    if (!model().get_config()) return;  // as of most classes of the program
    json = model().to_json();
    graph = internal::layer_graph(json);
  } catch (const std::exception& error) {
    internal::log_warning("TensorBoard: there is no graph of model ",
                          internal::quoted(model().name()), ", training goes on: ", error.what());
    return;
  }
  record_training([&] {
    summary::keras_model("keras", json, {.step = 0});
    summary::graph(graph);  // what the page of graphs shows at first
    train_->flush();
  });
}

void TensorBoard::on_train_batch_begin(int64_t batch) {
  last_batch_ = batch - 1;
  // One call stands for all steps of an execution (steps_per_execution).
  const bool is_due = options_.profile_batch.first() > 0 && !profiles_ &&
                      steps_of_fit_ < options_.profile_batch.last() &&
                      steps_of_fit_ + 1 >= options_.profile_batch.first();
  if (!is_due) return;
  profiler::start({.trace = true});
  profiles_ = true;
}

std::string TensorBoard::profile_directory() const {
  return internal::join_path(
      options_.log_dir, str("train/plugins/profile/steps-", options_.profile_batch.first(), "-",
                            options_.profile_batch.last()));
}

void TensorBoard::finish_profile() {
  if (!std::exchange(profiles_, false)) return;
  const profiler::Profile profile = profiler::stop();
  const int64_t now = step();
  record_training([&] {
    internal::posix_file_system().make_directories(profile_directory());
    const auto path = [&](const char* ending) {
      return internal::join_path(profile_directory(), trace_name(ending));
    };
    profile.write_chrome_trace(path(".trace.json"));
    internal::write_xspace(profile, path(".xplane.pb"), internal::wall_time());
    summary::text("profile", "```\n" + profile.table() + "```", {.step = now});
    train_->flush();
  });
}

void TensorBoard::on_epoch_begin(int64_t) {
  epoch_start_ = Clock::now();
  epoch_first_step_ = options_.write_steps_per_second ? step() : 0;
}

int64_t TensorBoard::update_after(int64_t step) const {
  const int64_t every = options_.update_freq.steps();
  return every == 0 ? 0 : (step / every + 1) * every;
}

void TensorBoard::on_train_batch_end(int64_t batch, const Logs& logs) {
  if (options_.profile_batch.first() > 0) {
    steps_of_fit_ += batch - last_batch_;
    if (steps_of_fit_ >= options_.profile_batch.last()) finish_profile();
  }
  const int64_t every = options_.update_freq.steps();
  if (every == 0) return;
  const int64_t now = step();
  if (now < next_update_) return;
  next_update_ = update_after(now);
  record_training([&] {
    for (const auto& entry : logs) {
      summary::scalar("batch_" + entry.first, entry.second, {.step = now});
    }
    if (!options_.write_steps_per_second) return;
    const std::chrono::duration<double> seconds = Clock::now() - last_update_;
    summary::scalar("batch_steps_per_second",
                    static_cast<double>(now - last_update_step_) / seconds.count(), {.step = now});
  });
  last_update_ = Clock::now();
  last_update_step_ = now;
}

void TensorBoard::on_epoch_end(int64_t epoch, Logs& logs) {
  constexpr std::string_view kValidation = "val_";
  write_model();
  const double rate = model().optimizer().learning_rate();
  const std::chrono::duration<double> seconds = Clock::now() - epoch_start_;
  const int64_t steps = options_.write_steps_per_second ? step() - epoch_first_step_ : 0;
  bool has_validation = false;
  record_training([&] {
    for (const auto& entry : logs) {
      if (entry.first.starts_with(kValidation)) {
        has_validation = true;
      } else {
        summary::scalar("epoch_" + entry.first, entry.second, {.step = epoch});
      }
    }
    summary::scalar("epoch_learning_rate", rate, {.step = epoch});
    if (options_.write_steps_per_second) {
      summary::scalar("epoch_steps_per_second", static_cast<double>(steps) / seconds.count(),
                      {.step = epoch});
    }
  });
  if (has_validation) {
    record_validation([&] {
      for (const auto& entry : logs) {
        if (!entry.first.starts_with(kValidation)) continue;
        summary::scalar("epoch_" + entry.first.substr(kValidation.size()), entry.second,
                        {.step = epoch});
      }
    });
  }
  if (options_.histogram_freq > 0 && epoch % options_.histogram_freq == 0) write_histograms(epoch);
  record([&] { train_->flush(); });
}

void TensorBoard::on_test_end(const Logs& logs) {
  const int64_t now = step();
  record_validation([&] {
    for (const auto& entry : logs) {
      summary::scalar(str("evaluation_", entry.first, "_vs_iterations"), entry.second,
                      {.step = now});
    }
  });
}

const summary::SummaryWriter& TensorBoard::validation_writer() {
  if (!validation_) {
    validation_ =
        is_chief()
            ? summary::create_file_writer(internal::join_path(options_.log_dir, "validation"))
            : summary::create_noop_writer();
  }
  return *validation_;
}

void TensorBoard::write_histograms(int64_t epoch) {
  for (const Variable& variable : model().variables()) {
    const Tensor value = variable.value().detach();  // in every task, also where nobody writes
    record_training(
        [&] { summary::histogram(variable.name() + "_0/histogram", value, {.step = epoch}); });
  }
}

void TensorBoard::close_writers() {
  if (train_) record([&] { train_->close(); });
  if (const auto writer = std::exchange(validation_, std::nullopt)) {
    record([&] { writer->close(); });
  }
}

void TensorBoard::on_train_end(const Logs&) {
  finish_profile();
  close_writers();
}

void TensorBoard::on_train_interrupted() { on_train_end({}); }

// Others may profile later on, and somebody may want to see how far it came.
void TensorBoard::on_train_error() {
  if (std::exchange(profiles_, false)) profiler::stop();
  close_writers();
}

}  // namespace cohort::keras::callbacks

#include "cohort/keras/callbacks/model_checkpoint.h"

#include "cohort/core/files/file_system.h"
#include "cohort/core/files/writable_directory.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/text.h"
#include "cohort/keras/callbacks/file_name.h"
#include "cohort/keras/model/model.h"
#include "cohort/keras/saving/saved_model.h"
#include "cohort/train/saving/checkpoint_directory.h"

namespace cohort::keras::callbacks {

using internal::str;

ModelCheckpoint::ModelCheckpoint(ModelCheckpointOptions options)
    : options_(std::move(options)),
      monitor_("ModelCheckpoint", options_.monitor, options_.mode),
      best_(options_.initial_value_threshold.value_or(monitor_.worst())) {
  if (options_.filepath.empty()) throw InvalidArgumentError("ModelCheckpoint needs a .filepath");
  check_pattern();
}

void ModelCheckpoint::check_pattern() const {
  const bool each_epoch = options_.save_freq.each_epoch();
  for (const std::string& name : internal::log_names_in(options_.filepath, !each_epoch)) {
    const auto refuse = [&](const char* problem) {
      throw InvalidArgumentError(
          str("ModelCheckpoint: file name ", internal::quoted(options_.filepath), ": ", problem));
    };
    if (name.empty()) refuse("a pair of braces has no name");
    if (each_epoch && name == "batch") {
      refuse("{batch} is there only where .save_freq is a number of steps");
    }
    if (!each_epoch && name.starts_with("val_")) {
      refuse("saves after steps have no numbers of validation");
    }
  }
}

std::vector<internal::LogRead> ModelCheckpoint::log_reads() const {
  const bool after_steps = !options_.save_freq.each_epoch();
  std::vector<internal::LogRead> reads;
  if (options_.save_best_only) reads.push_back(monitor_.log_read(after_steps));
  for (std::string& name : internal::log_names_in(options_.filepath, after_steps)) {
    reads.push_back({.name = std::move(name),
                     .use = "file name " + internal::quoted(options_.filepath),
                     .after_steps = after_steps,
                     .is_required = true});
  }
  return reads;
}

void ModelCheckpoint::on_train_begin() {
  let_go();
  if (is_chief()) check_path();
  if (options_.save_weights_only) {
    weights_.emplace(internal::weights_checkpoint(model()));
    return;
  }
  whole_ = std::make_shared<internal::ModelSaver>(
      model(), internal::ModelSaver::Options{.asynchronous = options_.asynchronous,
                                             .keeps_others_out = true});
  try {
    whole_->check();
  } catch (const UnimplementedError& error) {
    throw UnimplementedError(
        str(error.what(), "; ModelCheckpoint does that with .save_weights_only = true"));
  }
}

void ModelCheckpoint::check_path() const {
  const std::string directory = internal::common_directory(options_.filepath);
  internal::check_directory_is_writable(directory);
  internal::CheckpointDirectory::check_no_other_writer(internal::posix_file_system(), directory);
  const bool is_directory =
      !options_.save_weights_only && options_.filepath.find('{') == std::string::npos;
  if (is_directory) internal::check_directory_is_writable(options_.filepath);
}

void ModelCheckpoint::on_epoch_end(int64_t epoch, Logs& logs) {
  epoch_ = epoch;
  if (options_.save_freq.each_epoch()) save(std::nullopt, logs);
}

void ModelCheckpoint::on_train_batch_end(int64_t batch, const Logs& logs) {
  if (options_.save_freq.is_due(batch)) save(batch, logs);
}

void ModelCheckpoint::save(std::optional<int64_t> batch, const Logs& logs) {
  finish();  // what goes wrong with the save before is said of that one
  if (options_.save_best_only) {
    const auto value = monitor_.read(logs);
    if (!value || !monitor_.is_better(*value, best_)) return;
    best_when_saved_ = *value;
  }
  write(internal::formatted_file_name(options_.filepath, epoch_, batch, logs));
}

void ModelCheckpoint::write(const std::string& path) {
  if (whole_ == nullptr && !weights_) on_train_begin();  // a fit within this one has ended with it
  try {
    if (whole_ != nullptr) {
      whole_->save(path);
    } else {
      internal::write_as_latest(*weights_, path, {.enable_async = options_.asynchronous});
    }
  } catch (const ResourceExhaustedError& error) {
    best_when_saved_.reset();
    internal::log(logging::Level::kError, "ModelCheckpoint: ", path,
                  " was not saved, training goes on: ", error.what());
  }
}

void ModelCheckpoint::finish() {
  const std::optional<double> best = std::exchange(best_when_saved_, std::nullopt);
  try {
    if (whole_ != nullptr) {
      whole_->wait();
    } else if (weights_) {
      weights_->wait();
    }
    if (best) best_ = *best;
  } catch (const ResourceExhaustedError& error) {
    internal::log(logging::Level::kError,
                  "ModelCheckpoint: a save has failed, training goes on: ", error.what());
  }
}

void ModelCheckpoint::let_go() {
  best_when_saved_.reset();
  whole_.reset();
  weights_.reset();
}

void ModelCheckpoint::on_train_end(const Logs&) {
  finish();
  let_go();
}

void ModelCheckpoint::on_train_interrupted() { finish(); }
void ModelCheckpoint::on_train_error() { let_go(); }

}  // namespace cohort::keras::callbacks

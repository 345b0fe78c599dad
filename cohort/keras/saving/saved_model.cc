#include "cohort/keras/saving/saved_model.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/error_context.h"
#include "cohort/core/files/temporary_files.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/text.h"
#include "cohort/keras/layers/base/layer_state.h"
#include "cohort/keras/layers/base/serialized_layer.h"
#include "cohort/keras/saving/compile_config.h"
#include "cohort/keras/saving/model_reader.h"
#include "cohort/keras/training/training.h"
#include "cohort/train/checkpoint_impl.h"
#include "cohort/train/objects/checkpoint_restore.h"
#include "cohort/train/saving/checkpoint_directory.h"

namespace cohort {
namespace internal {
namespace {

using keras::ModelHandle;

constexpr std::string_view kVariables = "variables-";
// Other saves may replace what load_model reads so often.
constexpr int kMostReplacements = 10;

Json architecture(const keras::Model& model) {
  Json json = serialized_layer(model);
  // Keras's form at the top.
  json.erase("module");
  json.erase("registered_name");
  json["keras_version"] = "2.15.0";
  json["backend"] = "tensorflow";
  check_depth(json, str("model ", quoted(model.name())));
  return json;
}

// The number of "variables-12.index"; nothing of other names.
std::optional<int64_t> number_of(std::string_view name) {
  if (!name.starts_with(kVariables)) return std::nullopt;
  name.remove_prefix(kVariables.size());
  return parse_number<int64_t>(name.substr(0, name.find('.')));
}

// A name in `directory` that no checkpoint there has.
std::string next_variables(FileSystem& files, const std::string& directory) {
  int64_t last = 0;
  if (files.exists(directory)) {
    for (const std::string& name : files.list(directory)) {
      last = std::max(last, number_of(name).value_or(0));
    }
  }
  return str(kVariables, last + 1);
}

void write_in_one_step(FileSystem& files, const std::string& directory, const std::string& text) {
  const std::string temporary = temporary_path(directory, kModelFile);
  const auto file = files.create(temporary, {.expected_bytes = text.size()});
  try {
    file->append(text);
    file->sync();
    file->close();
    files.rename(temporary, join_path(directory, kModelFile));
  } catch (...) {
    try {
      files.remove(temporary);
    } catch (...) {  // the first error says more; the next save removes what is left
    }
    throw;
  }
  files.sync_directory(directory);
}

// The checkpoints of models that were saved here before.
void remove_others(FileSystem& files, const std::string& directory, const std::string& kept) {
  try {
    for (const std::string& name : files.list(directory)) {
      if (number_of(name) && !name.starts_with(kept + ".")) {
        files.remove(join_path(directory, name));
      }
    }
  } catch (const Error& error) {
    log_warning("the model in ", quoted(directory),
                " is saved, but of the one before there are files left: ", error.what());
  }
}

// What load_model finds of compile; where that cannot be written, the reason, and once a warning.
void add_compile_config(const ModelHandle& model, bool& warned, Json& json) {
  const auto own = model_of(model);
  const Training& training = Training::of(*own);
  json["compile_config"] = nullptr;
  if (!training.is_compiled()) return;
  try {
    json["compile_config"] = compile_config(training.compiled(*own));
  } catch (const UnimplementedError& error) {
    json["cohort"]["not_compiled"] = error.what();
    if (std::exchange(warned, true)) return;
    log_warning("model ", quoted(model.name()),
                " is saved without what compile said: ", error.what(),
                "; call compile after load_model");
  }
}

train::Checkpoint checkpoint_of(const ModelHandle& model, FileSystem& files) {
  train::Checkpoint checkpoint = weights_checkpoint(model);
  use_file_system(checkpoint, files);
  return checkpoint;
}

// Errors: DataLoss (longer than any; a sparse file may be of any size).
std::string read_text(FileSystem& files, const std::string& path) {
  const auto file = files.open(path);
  if (file->size() > kMostConfigBytes) {
    throw DataLossError(str("the model's file is damaged: ", quoted(path), " has ", file->size(),
                            " bytes; at most ", kMostConfigBytes, " are read"));
  }
  std::string text(file->size(), '\0');
  file->read(0, text.data(), text.size());
  return text;
}

// The checkpoint's path, which does not leave the directory.
std::string variables_path(const Json& json, const std::string& directory,
                           const std::string& file) {
  const std::string name =
      string_member(member_of(json, "cohort", file), "checkpoint", str(file, ": 'cohort'"));
  if (!number_of(name) || name.find('/') != name.npos) {
    throw InvalidArgumentError(str(file, ": ", quoted(name), " is no name of a checkpoint"));
  }
  return join_path(directory, name);
}

}  // namespace

train::Checkpoint weights_checkpoint(const ModelHandle& model) {
  const auto own = model_of(model);
  std::vector<train::NamedObject> objects;
  const Training& training = Training::of(*own);
  if (training.is_compiled()) {
    objects.emplace_back("optimizer", own->optimizer());
  } else if (auto waiting = training.waiting_optimizer(*own)) {
    objects.emplace_back("optimizer", std::move(waiting));
  }
  return train::Checkpoint(model.trackable(), std::move(objects));
}

std::optional<std::string> why_without_weights(keras::Model& model) {
  const LayerState& state = LayerState::of(model);
  if (!state.awaits_weights() || restore_position(model) != nullptr) return std::nullopt;
  return state.why_no_weights();
}

ModelSaver::ModelSaver(const ModelHandle& model, const Options& options, FileSystem& files)
    : model_(model), options_(options), files_(files), checkpoint_(checkpoint_of(model, files)) {}

void ModelSaver::check() const { architecture(*model_of(model_)); }

void ModelSaver::save(const std::string& path) {
  if (const auto why = why_without_weights(*model_of(model_))) {  // as Keras does
    log_warning("model ", quoted(model_.name()), " is saved without weights: ", *why);
  }
  Json json = architecture(*model_of(model_));
  add_compile_config(model_, warned_, json);
  check_depth(json, str("model ", quoted(model_.name())));  // ahead of its weights
  CheckpointImpl& checkpoint = checkpoint_.impl();
  SaveJob job;
  job.begin = [&] {
    if (path.empty()) throw InvalidArgumentError("save: the path is empty");
    if (!options_.overwrite && files_.exists(join_path(path, kModelFile))) {
      throw AlreadyExistsError(str("there is a model in ", quoted(path),
                                   " already; save elsewhere, or with .overwrite"));
    }
    if (options_.keeps_others_out) {
      around_ = CheckpointDirectory::for_writing(files_, parent_directory(path));
    }
    const std::string variables = join_path(path, next_variables(files_, path));
    checkpoint.leave_directories_but_of(variables);
    return variables;
  };
  job.then = [&files = files_, path, json = std::move(json)](const std::string& variables) mutable {
    const std::string name = base_name(variables);
    json["cohort"]["checkpoint"] = name;
    write_in_one_step(files, path, dump_config(json, kModelFile));
    remove_others(files, path, name);
    return std::string();
  };
  checkpoint.write(job, {.enable_async = options_.asynchronous});
}

void ModelSaver::wait() { checkpoint_.wait(); }

void save_model(const ModelHandle& model, const std::string& path,
                const keras::SaveOptions& options, FileSystem& files) {
  ModelSaver(model, {.overwrite = options.overwrite}, files).save(path);
}

namespace {

// What a model is made of.
struct ModelFile {
  std::string name = {};  // for messages
  Json json = {};
  std::string variables = {};  // the checkpoint's path
};

ModelFile read_model_file(const std::string& path, FileSystem& files) {
  const std::string file = join_path(path, kModelFile);
  if (base_name(path) == kModelFile && files.exists(path)) {
    throw NotFoundError(str(quoted(path), " is the file of the model in ",
                            quoted(parent_directory(path)), ": pass that directory"));
  }
  if (!files.exists(file)) {
    throw NotFoundError(str("there is no model in ", quoted(path), ": ", kModelFile,
                            " is missing; ModelHandle::save writes one (of weights alone make the "
                            "model, then load_weights)"));
  }
  ModelFile result{.name = quoted(file)};
  try {
    result.json = parse_config(read_text(files, file), result.name);
    result.variables = variables_path(result.json, path, result.name);
  } catch (const InvalidArgumentError& error) {
    throw DataLossError(str("the model's file is damaged: ", error.what()));
  }
  return result;
}

ModelHandle make_model(const ModelFile& file, const keras::models::LoadOptions& options,
                       FileSystem& files) {
  const Json& json = file.json;
  ModelReader reader({options.custom_objects.begin(), options.custom_objects.end()});
  const ModelHandle model = reader.model(json, file.name);
  const Json compile = json.value("compile_config", Json(nullptr));
  if (options.compile && !compile.is_null()) {
    const std::string where = str(file.name, ": compile_config");
    const keras::CompileOptions compiled = read_compile_config(compile, where);
    try {
      model.compile(compiled);
    } catch (...) {
      rethrow_with_context(where);
    }
  } else if (const Json& why = json["cohort"].value("not_compiled", Json(nullptr));
             options.compile && why.is_string()) {
    log_warning("model ", quoted(model.name()), " is not compiled: when it was saved, ",
                why.get<std::string>());
  }
  const train::LoadStatus status = checkpoint_of(model, files).read(file.variables);
  status.expect_partial();
  if (model.built()) status.assert_existing_objects_matched();
  const auto own = model_of(model);
  Training& training = Training::of(*own);
  if (options.compile && !training.is_compiled()) training.keep_optimizer_values(*own);
  return model;
}

}  // namespace

ModelHandle load_model(const std::string& path, const keras::models::LoadOptions& options,
                       FileSystem& files) {
  ModelFile file = read_model_file(path, files);
  for (int replacements = 0;; ++replacements) {
    try {
      return make_model(file, options, files);
    } catch (const Error&) {
      // Once another model is saved there, the checkpoint of the one before is removed.
      ModelFile now = read_model_file(path, files);
      if (now.variables == file.variables || replacements == kMostReplacements) throw;
      file = std::move(now);
    }
  }
}

}  // namespace internal

namespace keras {

using internal::str;

namespace {

// Loads the optimizer apart from the weights, which are of use with any optimizer: a file may lack
// it, or have another one.
void load_optimizer(const optimizers::Optimizer& optimizer, const std::string& path) {
  try {
    train::Checkpoint({{"optimizer", optimizer}}).read(path).expect_partial();
  } catch (const InvalidArgumentError& error) {
    internal::log_warning(
        "load_weights: the weights are loaded, but the optimizer in the file is not that of "
        "compile, "
        "which stays as it is (train::Checkpoint(model).read leaves it out): ",
        error.what());
  }
}

}  // namespace

std::string ModelHandle::to_json() const {
  return internal::dump_config(internal::architecture(model()), "to_json");
}

void ModelHandle::save(const std::string& path, const SaveOptions& options) const {
  internal::write_for_all(model(), [&] { internal::save_model(*this, path, options); });
}

void ModelHandle::save_weights(const std::string& path) const {
  if (const auto why = internal::why_without_weights(model())) {
    throw FailedPreconditionError(str("save_weights: ", *why));
  }
  internal::write_for_all(
      model(), [&] { internal::write_as_latest(internal::weights_checkpoint(*this), path); });
}

void ModelHandle::load_weights(const std::string& path) const {
  const train::LoadStatus status = train::Checkpoint(trackable()).read(path);
  status.expect_partial();
  if (built()) status.assert_existing_objects_matched();
  internal::Training& training = internal::Training::of(model());
  if (training.is_compiled()) {
    load_optimizer(optimizer(), path);
  } else {
    training.keep_optimizer_values(model());
  }
}

namespace models {

ModelHandle load_model(const std::string& path, const LoadOptions& options) {
  return internal::load_model(path, options);
}

ModelHandle model_from_json(std::string_view json, const CustomObjects& custom_objects) {
  const std::string where = "model_from_json";
  return internal::ModelReader({custom_objects.begin(), custom_objects.end()})
      .model(internal::parse_config(json, where), where);
}

ModelHandle clone_model(const ModelHandle& model, const CustomObjects& custom_objects) {
  return model_from_json(model.to_json(), custom_objects);
}

layers::LayerHandle layer_from_config(std::string_view class_name, const Config& config,
                                      const CustomObjects& custom_objects) {
  const internal::Json json = {{"class_name", class_name}, {"config", internal::json_of(config)}};
  return internal::ModelReader({custom_objects.begin(), custom_objects.end()})
      .layer(json, "layer_from_config");
}

}  // namespace models
}  // namespace keras
}  // namespace cohort

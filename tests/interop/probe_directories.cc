// keras::utils: datasets of directories and of arrays.
#include <cohort/core/error.h>
#include <cohort/keras/datasets/image_dataset_from_directory.h>
#include <cohort/keras/datasets/pad_sequences.h>
#include <cohort/keras/datasets/text_dataset_from_directory.h>
#include <cohort/keras/datasets/timeseries_dataset.h>

#include <array>
#include <string>
#include <vector>

#include "probe.h"
#include "tensor_json.h"

namespace cohort::interop {
namespace {

using namespace keras::utils;

template <class T>
std::optional<T> given(const Json& request, const char* key, std::optional<T> otherwise = {}) {
  if (!request.contains(key)) return otherwise;
  if (request.at(key).is_null()) return std::nullopt;
  return request.at(key).get<T>();
}

// What options of datasets of directories have in common.
template <class Options>
Options directory_options(const Json& request) {
  Options options;
  if (request.contains("labels")) {
    if (request.at("labels").is_null()) options.labels = std::nullopt;
    if (request.at("labels").is_array()) {
      options.labels = request.at("labels").get<std::vector<int64_t>>();
    }
  }
  options.label_mode = given<std::string>(request, "label_mode", "int");
  options.class_names = request.value("class_names", std::vector<std::string>());
  options.batch_size = given<int64_t>(request, "batch_size", 32);
  options.shuffle = request.value("shuffle", true);
  options.seed = given<uint64_t>(request, "seed");
  options.validation_split = given<double>(request, "validation_split");
  options.subset = given<std::string>(request, "subset");
  return options;
}

Json row_json(const Structure& element) {
  if (element.is_leaf()) return json_of(element);
  Json members = Json::array();
  for (const Structure& member : element.members()) members.push_back(json_of(member));
  return members;
}

Json directory_json(const DirectoryDataset& dataset) {
  Json json = {{"class_names", dataset.class_names()},
               {"file_paths", dataset.file_paths()},
               {"elements", Json::array()}};
  for (const Structure& element : dataset) json["elements"].push_back(row_json(element));
  return json;
}

template <class Call>
Json answer_of(const Call& call) {
  try {
    return call();
  } catch (const Error& error) {
    return {{"error", code_name(error.code())}, {"text", error.what()}};
  }
}

}  // namespace

Json read_text_directory(const Json& request) {
  return answer_of([&]() -> Json {
    auto options = directory_options<TextDatasetFromDirectoryOptions>(request);
    options.max_length = given<int64_t>(request, "max_length");
    const std::string directory = request.at("directory");
    if (options.subset != "both") {
      return {directory_json(text_dataset_from_directory(directory, options))};
    }
    const auto [training, validation] = text_datasets_from_directory(directory, options);
    return {directory_json(training), directory_json(validation)};
  });
}

Json read_image_directory(const Json& request) {
  return answer_of([&]() -> Json {
    auto options = directory_options<ImageDatasetFromDirectoryOptions>(request);
    options.color_mode = request.value("color_mode", "rgb");
    options.interpolation = request.value("interpolation", "bilinear");
    options.crop_to_aspect_ratio = request.value("crop_to_aspect_ratio", false);
    options.image_size = request.at("image_size").get<std::array<int64_t, 2>>();
    const std::string directory = request.at("directory");
    if (options.subset != "both") {
      return {directory_json(image_dataset_from_directory(directory, options))};
    }
    const auto [training, validation] = image_datasets_from_directory(directory, options);
    return {directory_json(training), directory_json(validation)};
  });
}

Json read_timeseries(const Json& request) {
  return answer_of([&]() -> Json {
    TimeseriesDatasetOptions options;
    options.sequence_stride = request.value("sequence_stride", int64_t{1});
    options.sampling_rate = request.value("sampling_rate", int64_t{1});
    options.batch_size = given<int64_t>(request, "batch_size", 128);
    options.start_index = given<int64_t>(request, "start_index");
    options.end_index = given<int64_t>(request, "end_index");
    std::optional<Tensor> targets;
    if (request.contains("targets")) targets = tensor_of(request.at("targets"));
    Json elements = Json::array();
    for (const Structure& element :
         timeseries_dataset_from_array(tensor_of(request.at("data")), targets,
                                       request.at("sequence_length").get<int64_t>(), options)) {
      elements.push_back(row_json(element));
    }
    return {{"elements", elements}};
  });
}

Json pad(const Json& request) {
  return answer_of([&]() -> Json {
    std::vector<Tensor> sequences;
    for (const Json& sequence : request.at("sequences")) sequences.push_back(tensor_of(sequence));
    PadSequencesOptions options;
    options.maxlen = given<int64_t>(request, "maxlen");
    options.dtype = request.value("dtype", "int32") == "float32" ? float32 : int32;
    options.padding = request.value("padding", "pre");
    options.truncating = request.value("truncating", "pre");
    options.value = request.value("value", 0.0);
    return json_of(pad_sequences(sequences, options));
  });
}

}  // namespace cohort::interop

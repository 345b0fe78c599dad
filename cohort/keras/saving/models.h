// Models of files: what ModelHandle::save and to_json write, and Keras's to_json.
//
//   model.save("run/model");
//   keras::ModelHandle again = keras::models::load_model("run/model");   // compiled as it was
//   keras::ModelHandle fresh = keras::models::model_from_json(model.to_json());
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "cohort/core/export.h"
#include "cohort/keras/base/config.h"
#include "cohort/keras/model/model.h"

namespace cohort::keras::models {

// Makes an object of a class of the program of what its get_config gave, a new one each time. It
// gets its name, and whether it is trainable, from the reader, unless the function has set them.
using FromConfig = std::function<layers::LayerHandle(const Config& config)>;
// Functions by the classes' names.
using CustomObjects = std::map<std::string, FromConfig>;

struct LoadOptions {
  // Compiles the model as it was when it was saved, and reads the optimizer's state.
  bool compile = true;
  CustomObjects custom_objects = {};
};

// The model in the directory `path`, made under the strategy of the present scope.
// Errors: NotFound (no model there), DataLoss (damaged), InvalidArgument (an unknown class, with
// the nearest known one; configurations that no layer takes), Unimplemented (what Cohort does not
// have).
COHORT_API ModelHandle load_model(const std::string& path, const LoadOptions& options = {});

// A Sequential or functional model as Keras 2.15 or ModelHandle::to_json writes it, with fresh
// weights. Errors: InvalidArgument (no JSON, or as load_model), Unimplemented.
COHORT_API ModelHandle model_from_json(std::string_view json,
                                       const CustomObjects& custom_objects = {});

// A model of the same layers, with fresh weights and not compiled, made under the strategy of the
// present scope. `set_weights(model.get_weights())` of the copy takes over the weights, too.
// Errors: as ModelHandle::to_json and model_from_json.
COHORT_API ModelHandle clone_model(const ModelHandle& model,
                                   const CustomObjects& custom_objects = {});

// The other way round of a layer's class name and get_config.
COHORT_API layers::LayerHandle layer_from_config(std::string_view class_name, const Config& config,
                                                 const CustomObjects& custom_objects = {});

}  // namespace cohort::keras::models

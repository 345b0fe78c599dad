// Makes models of their configurations. For sources only: it includes nlohmann-json.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "cohort/keras/layers/base/layer_reader.h"
#include "cohort/keras/model/functional.h"

namespace cohort::internal {

// Makes layers and models of what they wrote. Thread safety: none.
class ModelReader final : public LayerReader {
 public:
  using LayerReader::LayerReader;

  // Errors: as layer; InvalidArgument (the class is no model's).
  keras::ModelHandle model(const Json& json, const std::string& where);

 private:
  std::optional<keras::layers::LayerHandle> read_model(const ClassAndConfig& parts,
                                                       const std::string& here) override;
  keras::Sequential sequential(const Json& config, const std::string& where);
  keras::Functional functional(const Json& config, const std::string& where);
};

// Makes the calls of layers in a functional model's configuration, as keras.engine.functional's
// from_config does. `layer_of` makes the layers. Errors: InvalidArgument, Unimplemented.
keras::Functional read_functional(
    const Json& config, const std::string& where,
    const std::function<keras::layers::LayerHandle(const Json&, const std::string&)>& layer_of);

}  // namespace cohort::internal

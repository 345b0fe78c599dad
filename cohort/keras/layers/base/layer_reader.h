// Makes layers of their configurations. For sources only: it includes nlohmann-json.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/keras/base/fields.h"
#include "cohort/keras/base/named.h"
#include "cohort/keras/layers/base/layer_handle.h"

namespace cohort::internal {

// "layer 'dense' (Dense)".
std::string layer_place(const std::string& name, const std::string& class_name);
// Whether Keras has a layer or model of this name. A class of the program is none of them.
bool is_keras_class(std::string_view class_name);

// Makes layers of what they wrote. Thread safety: none.
class LayerReader {
 public:
  using Custom = std::function<keras::layers::LayerHandle(const keras::Config&)>;

  // Classes of the program come before Keras's.
  explicit LayerReader(std::map<std::string, Custom> custom) : custom_(std::move(custom)) {}
  virtual ~LayerReader() = default;
  LayerReader(const LayerReader&) = delete;
  LayerReader& operator=(const LayerReader&) = delete;

  // A layer that stands in several places is made once.
  // Errors: InvalidArgument (`where`: damaged, an unknown class with the nearest known name),
  // Unimplemented (what Cohort does not have; names the layer and the option).
  keras::layers::LayerHandle layer(const Json& json, const std::string& where);

 protected:
  // Errors begin with `here`; that of an unknown class begins with `where`.
  keras::layers::LayerHandle make(const ClassAndConfig& parts, const std::string& here,
                                  const std::string& where);
  bool is_custom(const std::string& class_name) const { return custom_.count(class_name) > 0; }
  KnownNames with_custom(KnownNames known) const;

 private:
  // A model, whose layers this reader makes; nullopt: the class is no model's.
  // Errors: InvalidArgument (`here`; this reader makes no models).
  virtual std::optional<keras::layers::LayerHandle> read_model(const ClassAndConfig& parts,
                                                               const std::string& here);

  std::map<std::string, Custom> custom_;
  std::map<int64_t, keras::layers::LayerHandle> shared_;  // by shared_object_id
};

// The layer that stands in a field, made as its surroundings are: classes of the program, models
// and shared layers, too. Errors: InvalidArgument (there is none, or as LayerReader::layer).
keras::layers::LayerHandle layer_field(FieldReader& field, const char* key);
std::vector<keras::layers::LayerHandle> layers_field(FieldReader& field, const char* key);

}  // namespace cohort::internal

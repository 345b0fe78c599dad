// What an object was made with, by name, so that a file can hold it: Keras's configurations.
//
//   class Scale : public keras::layers::Layer {
//    public:
//     explicit Scale(double factor) : factor_(factor) {}
//     std::optional<keras::Config> get_config() const override {
//       return keras::Config().set("factor", factor_);
//     }
//     ...
//   };
//   keras::models::load_model(path, {.custom_objects = {{"Scale", [](const keras::Config& config) {
//     return std::make_shared<Scale>(config.get_double("factor"));
//   }}}});
//
// A layer's name and whether it is trainable are added, and given back to what the function made.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/export.h"

namespace cohort {
namespace internal {
struct ConfigData;
}

namespace keras {

// A JSON object. A value: copies differ from then on. Thread safety: as std::string.
class COHORT_API Config {
 public:
  Config();
  Config(const Config&) = default;  // and no moves: a Config always has an object
  Config& operator=(const Config&) = default;
  // Errors: InvalidArgument (no JSON object; says where).
  static Config parse(std::string_view json);

  // These replace what there was under the key.
  Config& set(std::string_view key, bool value);
  Config& set(std::string_view key, int value) { return set(key, static_cast<int64_t>(value)); }
  Config& set(std::string_view key, int64_t value);
  Config& set(std::string_view key, double value);
  Config& set(std::string_view key, std::string_view value);
  Config& set(std::string_view key, const char* value) { return set(key, std::string_view(value)); }
  Config& set(std::string_view key, const std::string& value) {
    return set(key, std::string_view(value));
  }
  Config& set(std::string_view key, const std::vector<int64_t>& value);
  Config& set(std::string_view key, const std::vector<std::string>& value);
  Config& set(std::string_view key, const Config& value);

  // Whether there is a value that is not null.
  bool contains(std::string_view key) const;
  // Errors of all: InvalidArgument (no such key, or a value of another kind; names the key).
  bool get_bool(std::string_view key) const;
  int64_t get_int(std::string_view key) const;
  double get_double(std::string_view key) const;
  std::string get_string(std::string_view key) const;
  std::vector<int64_t> get_ints(std::string_view key) const;
  std::vector<std::string> get_strings(std::string_view key) const;
  Config get_config(std::string_view key) const;

  // Numbers that are not finite as Python writes them: NaN, Infinity, -Infinity. `parse` reads
  // them, too.
  // Errors: InvalidArgument (a text that is not UTF-8; says where).
  std::string json() const;
  bool operator==(const Config& other) const;

  const internal::ConfigData& data() const { return *data_; }

 private:
  friend struct internal::ConfigData;
  internal::ConfigData& own_data();

  std::shared_ptr<internal::ConfigData> data_;
};

}  // namespace keras
}  // namespace cohort

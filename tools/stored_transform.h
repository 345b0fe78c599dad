// A transform's directory as the commands read it: the function as a list of steps, and what its
// analyses have found.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/files/file_system.h"
#include "cohort/transform/output/transform_document.h"

namespace cohort::tools {

// A constant of a result. Its values are numbers, or the bytes of strings.
struct StoredConstant {
  std::string dtype;
  std::vector<int64_t> shape;
  nlohmann::json values;

  size_t size() const { return values.size(); }
  bool is_string() const { return dtype == "string"; }
  double number(size_t index) const { return values[index].get<double>(); }
  std::string text(size_t index) const;
};

struct StoredTransform {
  struct Column {
    std::string name;
    std::string type;  // "float32 [rows, 2]", "ragged string"
  };
  struct Step {
    std::string operation;
    nlohmann::json attributes = nlohmann::json::object();
    std::vector<int> inputs;  // steps before it
    int analysis = -1;        // of a statistic
  };
  struct Analysis {
    std::string kind;
    nlohmann::json attributes;
    std::vector<int> inputs;  // steps; before those that use the analysis
    std::string vocabulary;   // the name of one that it writes
    std::vector<std::pair<std::string, StoredConstant>> constants = {};
    std::optional<internal::StoredVocabulary> file = std::nullopt;

    // nullptr: there is none of this name.
    const StoredConstant* constant(std::string_view name) const;
    bool stores_frequency() const;
  };
  using Named = std::pair<std::string, int>;  // a step

  std::string directory;
  std::string cohort_version;
  int64_t rows = 0;
  std::vector<Column> columns;
  std::vector<Step> steps;
  std::vector<Analysis> analyses;
  std::vector<Named> outputs;
  std::vector<Named> statistics;
};

// Errors: those of read_transform_document and stored_vocabulary; InvalidArgument (what a file with
// a good checksum cannot hold).
StoredTransform read_stored_transform(internal::FileSystem& files, const std::string& directory);

struct VocabularyHead {
  struct Token {
    std::string text;
    std::optional<double> frequency = std::nullopt;
  };
  std::vector<Token> tokens;
};
inline constexpr uint64_t kMostHeadBytes = uint64_t{16} << 20;
// The first `most_tokens` tokens, as far as they lie within the file's first kMostHeadBytes. A file
// that is no longer than that is read whole and checked.
// Errors: DataLoss (its checksum is wrong; a line without a frequency).
VocabularyHead read_vocabulary_head(internal::FileSystem& files,
                                    const StoredTransform::Analysis& analysis,
                                    uint64_t most_tokens);

}  // namespace cohort::tools

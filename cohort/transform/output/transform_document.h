// The file in which a transform's directory holds the function and its results, as JSON. Without
// libtorch, so that the command `cohort` reads it, too. For sources only: it includes
// nlohmann-json.
//
//   DIR/transform_fn/transform.json         {"checksum", "function", "results", "rows", ...}
//   DIR/transform_fn/assets/NAME            the vocabularies
//   DIR/transformed_metadata/asset_map      {"name of the vocabulary": "name of its file"}
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "cohort/core/files/file_system.h"

namespace cohort::internal {

inline constexpr std::string_view kTransformFolder = "transform_fn";
inline constexpr std::string_view kTransformFile = "transform.json";
inline constexpr std::string_view kAssetsFolder = "assets";
inline constexpr std::string_view kMetadataFolder = "transformed_metadata";
inline constexpr std::string_view kAssetMapFile = "asset_map";

struct TransformDocument {
  nlohmann::json json = {};  // without its version and checksum
  uint32_t checksum = 0;
  std::string where;   // "transform 'DIR/transform_fn/transform.json'", for errors
  std::string assets;  // the folder of the vocabularies
};

// The text of a document of this content. Errors: InvalidArgument (texts that are not UTF-8).
std::string transform_document_text(nlohmann::json content);
// Errors: NotFound (no such output), DataLoss (damaged: says which file and what), InvalidArgument
// (of a later version).
TransformDocument read_transform_document(FileSystem& files, const std::string& directory);

// The bytes of a constant's text: what JSON cannot hold is written as {"hex": digits}.
nlohmann::json text_json(std::string_view bytes);
// Errors: InvalidArgument "`where`: ..." (neither form).
std::string text_of(const nlohmann::json& json, const std::string& where);

// What a result says of the vocabulary that it wrote.
struct StoredVocabulary {
  std::string path;
  uint64_t bytes = 0;
  int64_t lines = 0;
  uint32_t crc32c = 0;
};
// `file`: a result's member of that name. Looks at the file's size, and does not read it.
// Errors: DataLoss (missing, or of another size), InvalidArgument "`where`: ..." (no such member).
StoredVocabulary stored_vocabulary(FileSystem& files, const nlohmann::json& file,
                                   const std::string& path, const std::string& where);

}  // namespace cohort::internal

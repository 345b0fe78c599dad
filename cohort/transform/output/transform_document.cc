#include "cohort/transform/output/transform_document.h"

#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/files/crc32c.h"
#include "cohort/core/text.h"
#include "cohort/keras/base/config_json.h"
#include "cohort/version.h"

namespace cohort::internal {
namespace {

constexpr int kFileVersion = 1;

bool is_text(std::string_view bytes) {
  try {
    Json(std::string(bytes)).dump();
    return true;
  } catch (const Json::exception&) {
    return false;  // no UTF-8
  }
}

std::string read_hex(const std::string& digits, const std::string& where) {
  const auto value = [&](char c) {
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    throw InvalidArgumentError(str(where, ": no hexadecimal digits"));
  };
  std::string bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes += static_cast<char>(value(digits[i]) * 16 + value(digits[i + 1]));
  }
  return bytes;
}

std::string read_whole(FileSystem& files, const std::string& path) {
  const auto file = files.open(path);
  if (file->size() > kMostConfigBytes) {
    throw DataLossError(
        str(quoted(path), ": ", file->size(), " bytes are too many for a transform"));
  }
  std::string text(file->size(), '\0');
  file->read(0, text.data(), text.size());
  return text;
}

// The checksum of the file without it.
uint32_t checksum_of(const Json& json, const std::string& where) {
  return crc32c(dump_config(json, where));
}

int64_t take_integer(Json& json, const char* key, const std::string& where) {
  const int64_t integer = integer_of(member_of(json, key, where), where);
  json.erase(key);
  return integer;
}

}  // namespace

Json text_json(std::string_view bytes) {
  if (is_text(bytes)) return std::string(bytes);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string digits;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    digits += kDigits[byte >> 4];
    digits += kDigits[byte & 15];
  }
  return {{"hex", digits}};
}

std::string text_of(const Json& json, const std::string& where) {
  if (json.is_string()) return json.get<std::string>();
  return read_hex(string_member(json, "hex", where), where);
}

std::string transform_document_text(Json content) {
  const std::string where = "the transform";
  content["file_version"] = kFileVersion;
  content["cohort"] = cohort::kVersion;
  content["checksum"] = checksum_of(content, where);
  return dump_config(content, where) + '\n';
}

TransformDocument read_transform_document(FileSystem& files, const std::string& directory) {
  const std::string folder = join_path(directory, kTransformFolder);
  const std::string path = join_path(folder, kTransformFile);
  if (!files.exists(path)) {
    throw NotFoundError(str(quoted(directory), " holds no transform: there is no ", quoted(path),
                            "; transform::analyze_dataset writes one"));
  }
  TransformDocument document{.where = str("transform ", quoted(path)),
                             .assets = join_path(folder, kAssetsFolder)};
  Json& json = document.json;
  int64_t version = 0;
  uint32_t found = 0;
  try {
    json = parse_config(read_whole(files, path), document.where);
    document.checksum = static_cast<uint32_t>(take_integer(json, "checksum", document.where));
    found = checksum_of(json, document.where);
    version = take_integer(json, "file_version", document.where);
  } catch (const InvalidArgumentError& error) {
    throw DataLossError(str("damaged ", error.what()));
  }
  // Before the checksum: a later version may have another kind of one.
  if (version != kFileVersion) {
    throw InvalidArgumentError(str(document.where, ": it is of version ", version,
                                   ", but this Cohort reads version ", kFileVersion));
  }
  if (found != document.checksum) {
    throw DataLossError(str("damaged ", document.where, ": its checksum is wrong"));
  }
  return document;
}

StoredVocabulary stored_vocabulary(FileSystem& files, const Json& file, const std::string& path,
                                   const std::string& where) {
  const auto integer = [&](const char* key) {
    return integer_of(member_of(file, key, where), where);
  };
  const StoredVocabulary vocabulary{.path = path,
                                    .bytes = static_cast<uint64_t>(integer("bytes")),
                                    .lines = integer("lines"),
                                    .crc32c = static_cast<uint32_t>(integer("crc32c"))};
  if (!files.exists(path)) {
    throw DataLossError(str("vocabulary file ", quoted(path), " is missing"));
  }
  if (const uint64_t bytes = files.open(path)->size(); bytes != vocabulary.bytes) {
    throw DataLossError(str("vocabulary file ", quoted(path), " has ", bytes,
                            " bytes, where the transform was written with ", vocabulary.bytes,
                            "; it was changed or damaged"));
  }
  return vocabulary;
}

}  // namespace cohort::internal

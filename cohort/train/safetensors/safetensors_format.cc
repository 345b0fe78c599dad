#include "cohort/train/safetensors/safetensors_format.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/train/safetensors/safetensors_dtype.h"

namespace cohort::internal {
namespace {

constexpr size_t kAlignment = 8;

// The text as a JSON string.
std::string json_string(const std::string& text, std::string_view what) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    throw InvalidArgumentError(
        str(what, " ", quoted(text), " is not UTF-8, which a safetensors file needs"));
  }
}

std::string json_entry(const std::string& name, const SafetensorsEntry& entry) {
  if (name == kSafetensorsMetadataKey) {
    throw InvalidArgumentError(
        str("a safetensors file cannot have a tensor named ", quoted(name), ": it is reserved"));
  }
  std::string shape;
  for (const int64_t size : entry.shape) shape += str(shape.empty() ? "" : ",", size);
  return str(json_string(name, "the tensor name"), R"(:{"dtype":")",
             safetensors_dtype(entry.type, name), R"(","shape":[)", shape, R"(],"data_offsets":[)",
             entry.begin, ",", entry.end, "]}");
}

}  // namespace

SafetensorsOrder in_file_order(const SafetensorsHeader& header) {
  SafetensorsOrder order;
  order.reserve(header.tensors.size());
  for (const auto& tensor : header.tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
  });
  return order;
}

uint64_t data_bytes(const SafetensorsHeader& header) {
  uint64_t bytes = 0;
  for (const auto& [name, entry] : header.tensors) bytes = std::max(bytes, entry.end);
  return bytes;
}

void place_tensors(SafetensorsHeader& header) {
  std::vector<std::pair<const std::string, SafetensorsEntry>*> order;
  for (auto& tensor : header.tensors) {
    safetensors_dtype(tensor.second.type, tensor.first);
    order.push_back(&tensor);
  }
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return size_of(a->second.type) > size_of(b->second.type);
  });
  uint64_t end = 0;
  for (auto* tensor : order) {
    SafetensorsEntry& entry = tensor->second;
    entry.begin = end;
    end += num_elements(entry.shape, tensor->first) * size_of(entry.type);
    entry.end = end;
  }
}

std::string format_safetensors_header(const SafetensorsHeader& header) {
  std::string json = "{";
  if (!header.metadata.empty()) {
    json += str('"', kSafetensorsMetadataKey, R"(":{)");
    for (const auto& [key, value] : header.metadata) {
      if (json.back() != '{') json += ',';
      json += json_string(key, "the metadata's key") + ":" + json_string(value, "the metadata");
    }
    json += "}";
  }
  for (const auto* tensor : in_file_order(header)) {
    if (json.back() != '{') json += ',';
    json += json_entry(tensor->first, tensor->second);
  }
  json += "}";
  json.append((kAlignment - json.size() % kAlignment) % kAlignment, ' ');
  if (json.size() > kMostSafetensorsHeaderBytes) {
    throw InvalidArgumentError(str("the header of a safetensors file would have ", json.size(),
                                   " bytes; ", kMostSafetensorsHeaderBytes, " are allowed"));
  }
  std::string length;
  for (int i = 0; i < 8; ++i) length += static_cast<char>(json.size() >> (8 * i));
  return length + json;
}

}  // namespace cohort::internal

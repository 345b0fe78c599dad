#include "cohort/cluster/resolvers/api_answer.h"

#include <algorithm>
#include <utility>

#include "cohort/cluster/address.h"
#include "cohort/cluster/config_error.h"
#include "cohort/cluster/json_document.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

using Json = nlohmann::json;

Code code_of(long status) {
  switch (status) {
    case 401:
      return Code::kUnauthenticated;
    case 403:
      return Code::kPermissionDenied;
    case 404:
      return Code::kNotFound;
    case 410:
      return Code::kAborted;
    default:
      return status == 429 || status >= 500 ? Code::kUnavailable : Code::kUnknown;
  }
}

Json parse_body(std::string_view source, const std::string& body) {
  try {
    return parse_json(body, {.source = source, .bytes = size_t{64} << 20, .depth = 64});
  } catch (const InvalidArgumentError& error) {
    throw UnknownError(str("an answer that cannot be read: ", error.what()));
  }
}

// Kubernetes has it at the top, Google in "error".
std::string message_in(std::string_view source, const std::string& body) {
  try {
    const Json answer = parse_body(source, body);
    if (auto message = text_at(answer, {"message"})) return *std::move(message);
    if (auto message = text_at(answer, {"error", "message"})) return *std::move(message);
  } catch (const UnknownError&) {
    // Proxies answer with a page.
  }
  return body;
}

// Takes the digits off, without zeros before them.
std::string_view take_number(std::string_view& text) {
  const auto length = static_cast<size_t>(std::ranges::find_if_not(text, is_digit) - text.begin());
  std::string_view number = text.substr(0, length);
  text.remove_prefix(length);
  number.remove_prefix(std::min(number.find_first_not_of('0'), number.size()));
  return number;
}

}  // namespace

Json parse_answer(std::string_view source, const HttpResponse& response) {
  if (response.status == 200) return parse_body(source, response.body);
  throw_error(code_of(response.status), str(source, " answers ", response.status, ": ",
                                            quoted_start(message_in(source, response.body))));
}

std::optional<std::string> text_at(const Json& object, std::initializer_list<const char*> keys) {
  const Json* value = &object;
  for (const char* key : keys) {
    if (!value->is_object()) return std::nullopt;
    const auto found = value->find(key);
    if (found == value->end()) return std::nullopt;
    value = &*found;
  }
  if (!value->is_string()) return std::nullopt;
  return value->get<std::string>();
}

Json::array_t take_items(std::string_view source, Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || (found != object.end() && !found->is_null() && !found->is_array())) {
    throw UnknownError(str(source, ": an answer without a list of ", key));
  }
  if (found == object.end() || found->is_null()) return {};
  return std::move(found->get_ref<Json::array_t&>());
}

std::string address_of(std::string_view source, const std::string& ip, int port) {
  const bool ipv6 = ip.find(':') != std::string::npos;
  const std::string address = str(ipv6 ? "[" + ip + "]" : ip, ":", port);
  try {
    return to_string(parse_address(address));
  } catch (const InvalidArgumentError& error) {
    throw UnknownError(str(source, ": a task's address: ", error.what()));
  }
}

bool natural_less(std::string_view left, std::string_view right) {
  const std::string_view whole_left = left;
  const std::string_view whole_right = right;
  while (!left.empty() && !right.empty()) {
    if (is_digit(left.front()) && is_digit(right.front())) {
      const std::string_view a = take_number(left);
      const std::string_view b = take_number(right);
      if (a.size() != b.size()) return a.size() < b.size();
      if (a != b) return a < b;
    } else {
      if (left.front() != right.front()) return left.front() < right.front();
      left.remove_prefix(1);
      right.remove_prefix(1);
    }
  }
  if (left.empty() != right.empty()) return left.empty();
  return whole_left < whole_right;  // zeros before numbers
}

}  // namespace cohort::internal

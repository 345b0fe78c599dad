#include "cohort/cluster/json_document.h"

#include <new>
#include <set>
#include <vector>

#include "cohort/cluster/config_error.h"
#include "cohort/core/classic_locale.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

using Json = nlohmann::json;
constexpr std::string_view kTopLevel = "top level";

// The parser's place in the document. The parser reports a value after the value's end, keys and
// beginnings at once.
class JsonPath {
 public:
  // False where the object has the key already.
  bool enter_member(const std::string& key) {
    levels_.back().key = key;
    return levels_.back().keys.insert(key).second;
  }
  void begin(bool list) { levels_.push_back({.list = list}); }
  void end_container() {
    levels_.pop_back();
    end_value();
  }
  void end_value() {
    if (!levels_.empty() && levels_.back().list) ++levels_.back().index;
  }
  size_t depth() const { return levels_.size(); }

  std::string text() const {
    std::string path;
    for (const Level& level : levels_) {
      if (level.list) {
        path += json_element(level.index);
      } else if (!level.keys.empty()) {
        path += json_member(level.key);
      }
    }
    if (path.starts_with('.')) path.erase(0, 1);
    return path.empty() ? std::string(kTopLevel) : path;
  }

 private:
  struct Level {
    bool list = false;
    int index = 0;
    std::string key = "";
    std::set<std::string> keys = {};
  };
  std::vector<Level> levels_;
};

}  // namespace

Json parse_json(std::string_view text, const JsonLimits& limits) {
  JsonPath path;
  const auto fail = [&](std::string_view problem) {
    throw_config_error(limits.source, path.text(), problem);
  };
  if (text.size() > limits.bytes) {
    fail(str("has ", text.size(), " bytes; at most ", limits.bytes, " are read"));
  }
  // The parser would take it for the end.
  if (const size_t nul = text.find('\0'); nul != text.npos) {
    fail(str("has a NUL byte at byte ", nul));
  }
  if (text.find_first_not_of(" \t\r\n") == text.npos) fail("is empty, which is no JSON; write {}");
  const auto follow = [&](int, Json::parse_event_t event, Json& value) {
    switch (event) {
      case Json::parse_event_t::key: {
        const bool added = path.enter_member(value.get_ref<const std::string&>());
        if (!added) fail("is there twice");
        break;
      }
      case Json::parse_event_t::object_start:
      case Json::parse_event_t::array_start:
        if (path.depth() == static_cast<size_t>(limits.depth)) {
          fail(str("is nested deeper than ", limits.depth, " levels"));
        }
        path.begin(event == Json::parse_event_t::array_start);
        break;
      case Json::parse_event_t::object_end:
      case Json::parse_event_t::array_end:
        path.end_container();
        break;
      case Json::parse_event_t::value:
        path.end_value();
        break;
    }
    return true;
  };
  try {
    const ClassicLocale classic;
    return Json::parse(text.begin(), text.end(), follow);
  } catch (const Json::parse_error& error) {
    fail(str("is no JSON near byte ", error.byte > 0 ? error.byte - 1 : 0));
  } catch (const Json::exception&) {
    fail("has a number that is too large");
  } catch (const std::bad_alloc&) {
    throw ResourceExhaustedError(str(limits.source, ": ", path.text(),
                                     ": there is no memory for its ", text.size(),
                                     " bytes as a tree"));
  }
  return {};
}

std::string_view json_kind(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::object:
      return "an object";
    case Json::value_t::array:
      return "a list";
    case Json::value_t::string:
      return "a string";
    case Json::value_t::boolean:
      return "a boolean";
    default:
      return "a number";
  }
}

}  // namespace cohort::internal

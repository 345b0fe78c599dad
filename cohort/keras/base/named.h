// Tables of what Keras knows by name, and the error for a name that is in none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cohort::internal {

template <class Value>
struct Named {
  std::string_view class_name;                // "MeanAbsoluteError"
  std::vector<std::string_view> other_names;  // "mean_absolute_error", "mae"
  Value value;
};

// nullptr: none of them.
template <class Value>
const Named<Value>* find_named(const std::vector<Named<Value>>& table, std::string_view name) {
  for (const Named<Value>& entry : table) {
    if (entry.class_name == name) return &entry;
    for (const std::string_view other : entry.other_names) {
      if (other == name) return &entry;
    }
  }
  return nullptr;
}

struct KnownNames {
  std::vector<std::string_view> all;
  std::vector<std::string_view> classes;
};

template <class Value>
KnownNames names_of(const std::vector<Named<Value>>& table) {
  KnownNames names;
  for (const Named<Value>& entry : table) {
    names.classes.push_back(entry.class_name);
    names.all.push_back(entry.class_name);
    names.all.insert(names.all.end(), entry.other_names.begin(), entry.other_names.end());
  }
  return names;
}

// Twice the number of letters that one must insert, drop or change to make `b` of `a`; a change of
// case counts 1.
size_t edit_distance(std::string_view a, std::string_view b);

// "no loss is called 'mean_abs_error'; the nearest is 'mean_absolute_error'; ..", and the classes;
// after `where`, the place in a file, if there is one.
// Errors: InvalidArgument.
[[noreturn]] void throw_unknown_name(std::string_view kind, std::string_view name,
                                     const KnownNames& known, std::string_view where = "");

}  // namespace cohort::internal

#include "cohort/keras/model/logs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <ostream>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/keras/model/progress_text.h"

namespace cohort::keras {
namespace {

using internal::str;

template <class Entries>
auto find_entry(Entries& entries, std::string_view name) {
  return std::find_if(entries.begin(), entries.end(),
                      [&](const auto& entry) { return entry.first == name; });
}

template <class Entries>
[[noreturn]] void throw_no_entry(const Entries& entries, std::string_view name) {
  std::string known;
  for (const auto& entry : entries) known += str(known.empty() ? "" : ", ", entry.first);
  throw NotFoundError(str("there is no ", internal::quoted(name),
                          " among the logs; there are: ", known.empty() ? "none" : known));
}

}  // namespace

const std::vector<Logs::Entry>& Logs::entries() const {
  if (source_ != nullptr && !read_) {
    read_ = true;
    source_->read(entries_);
  }
  return entries_;
}

std::optional<double> Logs::find(std::string_view name) const {
  const auto found = find_entry(entries(), name);
  if (found == entries_.end()) return std::nullopt;
  return found->second;
}

double Logs::operator[](std::string_view name) const {
  const auto found = find_entry(entries(), name);
  if (found == entries_.end()) throw_no_entry(entries_, name);
  return found->second;
}

void Logs::set(std::string_view name, double value) {
  (void)entries();
  const auto found = find_entry(entries_, name);
  if (found == entries_.end()) {
    entries_.emplace_back(name, value);
  } else {
    found->second = value;
  }
}

void Logs::forget() {
  if (source_ == nullptr) return;
  read_ = false;
  entries_.clear();
}

std::ostream& operator<<(std::ostream& out, const Logs& logs) {
  const char* separator = "";
  for (const auto& [name, value] : logs) {
    out << separator << name << ": " << internal::log_number(value);
    separator = " - ";
  }
  return out;
}

bool History::contains(std::string_view name) const {
  return find_entry(history, name) != history.end();
}

const std::vector<double>& History::operator[](std::string_view name) const& {
  const auto found = find_entry(history, name);
  if (found == history.end()) throw_no_entry(history, name);
  return found->second;
}

std::vector<double> History::operator[](std::string_view name) && {
  return std::as_const(*this)[name];
}

void History::add(int64_t number, const Logs& logs) {
  epoch.push_back(number);
  for (const auto& [name, value] : logs) {
    auto found = find_entry(history, name);
    // A column that begins late (validation_freq) has as many values as there were.
    if (found == history.end()) found = history.insert(history.end(), {name, {}});
    found->second.push_back(value);
  }
}

}  // namespace cohort::keras

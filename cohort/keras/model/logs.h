// What training reports: numbers by name, of a step, an epoch or a whole run.
//
//   keras::Logs logs = model.evaluate(dataset, {.verbose = 0});
//   double accuracy = logs["accuracy"];
//   keras::History history = model.fit(dataset, {.epochs = 3});
//   std::vector<double> losses = history["loss"];              // one an epoch
#pragma once

#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/core/export.h"

namespace cohort::keras {

// In the order in which they are shown.
// Thread safety: as std::vector; those of a batch on the thread that trains only.
class COHORT_API Logs {
 public:
  using Entry = std::pair<std::string, double>;
  // Fetches numbers that have a price: metrics over all replicas.
  class Source {
   public:
    virtual ~Source() = default;
    virtual void read(std::vector<Entry>& entries) = 0;
  };

  Logs() = default;
  Logs(std::initializer_list<Entry> entries) : entries_(entries) {}
  // Asks `source`, which must outlive this, the first time that somebody looks. With several tasks
  // that is COLLECTIVE: look in all of them, or in none.
  explicit Logs(Source& source) : source_(&source) {}

  const std::vector<Entry>& entries() const;
  std::vector<Entry>::const_iterator begin() const { return entries().begin(); }
  std::vector<Entry>::const_iterator end() const { return entries().end(); }
  size_t size() const { return entries().size(); }
  bool empty() const { return entries().empty(); }
  bool contains(std::string_view name) const { return find(name).has_value(); }
  std::optional<double> find(std::string_view name) const;
  // Errors: NotFound (names those that there are).
  double operator[](std::string_view name) const;
  double operator[](const char* name) const { return (*this)[std::string_view(name)]; }
  // In place of a number of that name, or at the end.
  void set(std::string_view name, double value);
  // Forgets what the source said: it is asked again.
  void forget();

 private:
  mutable std::vector<Entry> entries_;
  mutable bool read_ = false;
  Source* source_ = nullptr;
};
// loss: 0.4423 - accuracy: 0.8601
COHORT_API std::ostream& operator<<(std::ostream& out, const Logs& logs);

// What fit returns. Thread safety: as any struct.
struct COHORT_API History {
  std::vector<int64_t> epoch;  // the numbers of the epochs, from 0
  // The logs of all epochs, name by name.
  std::vector<std::pair<std::string, std::vector<double>>> history;

  bool contains(std::string_view name) const;
  // A temporary gives a copy: for (double loss : model.fit(x, y, {})["loss"]).
  // Errors: NotFound (names those that there are).
  const std::vector<double>& operator[](std::string_view name) const&;
  const std::vector<double>& operator[](const char* name) const& {
    return (*this)[std::string_view(name)];
  }
  std::vector<double> operator[](std::string_view name) &&;
  std::vector<double> operator[](const char* name) && {
    return std::move(*this)[std::string_view(name)];
  }
  void add(int64_t number, const Logs& logs);
};

}  // namespace cohort::keras

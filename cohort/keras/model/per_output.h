// What a model's outputs are given: one thing for all of them, a list in their order, or by name.
//
//   .loss = "mse";   .loss = {"mse", "mae"};   .loss = {{"price", "mse"}, {"kind", "mae"}};
#pragma once

#include <concepts>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cohort::keras {

// Thread safety: as std::vector.
template <class T>
class PerOutput {
 public:
  PerOutput() = default;
  template <class U>
  requires(std::convertible_to<U, T> && !std::same_as<std::remove_cvref_t<U>, PerOutput>)
      PerOutput(U&& one)
      : one_(T(std::forward<U>(one))) {}
  PerOutput(std::initializer_list<T> list) : list_(list) {}
  PerOutput(std::initializer_list<std::pair<std::string, T>> named) : named_(named) {}

  static PerOutput in_order(std::vector<T> list) {
    PerOutput all;
    all.list_ = std::move(list);
    return all;
  }
  static PerOutput by_name(std::vector<std::pair<std::string, T>> named) {
    PerOutput all;
    all.named_ = std::move(named);
    return all;
  }

  bool empty() const { return !one_ && list_.empty() && named_.empty(); }
  const std::optional<T>& one() const { return one_; }
  const std::vector<T>& list() const { return list_; }
  const std::vector<std::pair<std::string, T>>& named() const { return named_; }

 private:
  std::optional<T> one_;
  std::vector<T> list_;
  std::vector<std::pair<std::string, T>> named_;
};

}  // namespace cohort::keras

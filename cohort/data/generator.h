// Elements that a user's code makes one after another.
//
//   Dataset::from_generator([i = int64_t{0}]() mutable -> std::optional<int64_t> {
//     return i < 5 ? std::optional(i++) : std::nullopt;
//   });
//   Dataset::from_generator([path]() -> data::Generator<Tensor> {      // a coroutine
//     for (const Tensor& image : read_images(path)) co_yield image;
//   });
#pragma once

#include <concepts>
#include <coroutine>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "cohort/core/export.h"
#include "cohort/data/element_function.h"

namespace cohort::data {

// What a coroutine returns that gives values with co_yield. Movable; owns the coroutine, which ends
// with it. Thread safety: none.
template <class T>
class Generator {
 public:
  struct promise_type {
    std::optional<T> value;
    std::exception_ptr error;

    Generator get_return_object() {
      return Generator(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    template <std::convertible_to<T> Value>
    std::suspend_always yield_value(Value&& yielded) {
      value.emplace(std::forward<Value>(yielded));
      return {};
    }
    void return_void() noexcept {}
    void unhandled_exception() {
      error = std::current_exception();
      if (!error) throw;  // pthread_exit: the thread goes on ending
    }
  };

  ~Generator() {
    if (coroutine_) coroutine_.destroy();
  }
  Generator(Generator&& other) noexcept : coroutine_(std::exchange(other.coroutine_, {})) {}
  Generator& operator=(Generator&& other) noexcept {
    std::swap(coroutine_, other.coroutine_);
    return *this;
  }

  // The next value; nullopt at the end. Errors: what the coroutine throws, once; it has then ended.
  std::optional<T> next() {
    if (!coroutine_ || coroutine_.done()) return std::nullopt;
    promise_type& promise = coroutine_.promise();
    promise.value.reset();
    coroutine_.resume();
    if (promise.error) std::rethrow_exception(std::exchange(promise.error, nullptr));
    return std::exchange(promise.value, std::nullopt);
  }

 private:
  explicit Generator(std::coroutine_handle<promise_type> coroutine) : coroutine_(coroutine) {}

  std::coroutine_handle<promise_type> coroutine_;
};

// A generator whose place can be written down, so that restoring repeats nothing.
template <class G>
concept ResumableGenerator = std::copy_constructible<G> &&
    requires(G generator, const G& at, std::string_view bytes) {
  generator.next().has_value();
  { at.save() } -> std::convertible_to<std::string>;
  generator.restore(bytes);
};

}  // namespace cohort::data

namespace cohort::internal {

// One pass over a user's generator. Thread safety: none.
class COHORT_API GeneratorPass {
 public:
  virtual ~GeneratorPass() = default;
  virtual bool next(Structure& out) = 0;
  // The position of a generator that can be resumed.
  virtual std::string save() const { return {}; }
  virtual void restore(std::string_view) {}
};

struct GeneratorSource {
  std::function<std::unique_ptr<GeneratorPass>()> start;  // from any thread
  bool resumable = false;
};

template <class Optional>
bool take_generated(Optional&& value, Structure& out) {
  if (!value.has_value()) return false;
  out = to_structure(*std::forward<Optional>(value));
  return true;
}

template <class T>
struct IsGenerator : std::false_type {};
template <class T>
struct IsGenerator<data::Generator<T>> : std::true_type {};

template <class T>
concept GivesOptional = requires(T result) {
  { result.has_value() } -> std::convertible_to<bool>;
  *result;
};

// A coroutine, with the function that made it: its captures live there.
template <class F>
class CoroutinePass final : public GeneratorPass {
 public:
  explicit CoroutinePass(std::shared_ptr<F> function)
      : function_(std::move(function)), generator_((*function_)()) {}
  bool next(Structure& out) override { return take_generated(generator_.next(), out); }

 private:
  std::shared_ptr<F> function_;
  std::invoke_result_t<F&> generator_;
};

template <class F>
class FunctionPass final : public GeneratorPass {
 public:
  explicit FunctionPass(const F& function) : function_(function) {}
  bool next(Structure& out) override { return take_generated(function_(), out); }

 private:
  F function_;
};

template <class G>
class ResumablePass final : public GeneratorPass {
 public:
  explicit ResumablePass(const G& generator) : generator_(generator) {}
  bool next(Structure& out) override { return take_generated(generator_.next(), out); }
  std::string save() const override { return generator_.save(); }
  void restore(std::string_view bytes) override { generator_.restore(bytes); }

 private:
  G generator_;
};

template <class F>
GeneratorSource make_generator_source(F&& given) {
  using Function = std::decay_t<F>;
  auto function = std::make_shared<Function>(std::forward<F>(given));
  if constexpr (data::ResumableGenerator<Function>) {
    return {[function] { return std::make_unique<ResumablePass<Function>>(*function); }, true};
  } else {
    static_assert(std::is_invocable_v<Function&>,
                  "a generator is called without arguments, or has next(), save() and restore()");
    if constexpr (IsGenerator<std::invoke_result_t<Function&>>::value) {
      return {[function] { return std::make_unique<CoroutinePass<Function>>(function); }, false};
    } else {
      static_assert(std::copy_constructible<Function>,
                    "each pass over the data calls a copy of the generator function");
      static_assert(GivesOptional<std::invoke_result_t<Function&>>,
                    "a generator function returns a std::optional of the next element, nullopt at "
                    "the end of the data, or is a coroutine that returns a data::Generator");
      if constexpr (GivesOptional<std::invoke_result_t<Function&>>) {
        return {[function] { return std::make_unique<FunctionPass<Function>>(*function); }, false};
      }
    }
  }
}

}  // namespace cohort::internal

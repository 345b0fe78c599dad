// A view of something callable, for parameters that are called before the function returns.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace cohort {

template <class Signature>
class FunctionRef;

// Two words, never allocates. The callable must outlive the view.
template <class Result, class... Args>
class FunctionRef<Result(Args...)> {
 public:
  template <class Callable>
  requires(!std::is_same_v<std::remove_cvref_t<Callable>, FunctionRef> &&
           std::is_invocable_r_v<Result, Callable&, Args...>) FunctionRef(Callable&& callable)
      : object_(const_cast<void*>(reinterpret_cast<const void*>(std::addressof(callable)))),
        call_([](void* object, Args... args) -> Result {
          auto& target = *reinterpret_cast<std::remove_reference_t<Callable>*>(object);
          if constexpr (std::is_void_v<Result>) {
            target(std::forward<Args>(args)...);
          } else {
            return target(std::forward<Args>(args)...);
          }
        }) {}

  Result operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  Result (*call_)(void*, Args...);
};

}  // namespace cohort

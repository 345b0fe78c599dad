// A value that threads read, change and wait for, each while no other has it. Nothing reaches the
// value without its lock, and no change of it goes unheard.
//
//   Synchronized<Steps> steps;
//   --steps.change()->under_way;                     // wakes those who wait
//   auto now = steps.lock();                         // of this thread, as long as `now` lives
//   if (!now.wait_until(deadline, [&] { return now->under_way < most; })) throw ...
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace cohort::internal {

// Thread safety: any thread. A thread that holds an access must not ask for another one.
template <class T>
class Synchronized {
 public:
  using Clock = std::chrono::steady_clock;

  // While it lives, this thread has the value.
  template <class Owner, class Value>
  class [[nodiscard]] Access {
   public:
    Access(Owner& owner, bool changes) : owner_(owner), lock_(owner.mutex_), changes_(changes) {}
    ~Access() { tell(); }
    Access(const Access&) = delete;
    Access& operator=(const Access&) = delete;

    Value& operator*() const { return owner_.value_; }
    Value* operator->() const { return &owner_.value_; }

    // Lets who waits look again, as the end of a change does.
    void wake() { owner_.changed_.notify_all(); }

    // Others may have the value while this waits until `condition()`, which is asked after each
    // change. With a deadline it returns whether the condition came true by then.
    template <class Condition>
    void wait(Condition condition) {
      tell();
      owner_.changed_.wait(lock_, condition);
    }
    template <class Condition>
    bool wait_until(Clock::time_point deadline, Condition condition) {
      tell();
      return owner_.changed_.wait_until(lock_, deadline, condition);
    }

   private:
    // It holds the lock: who waits may end the value right after.
    void tell() {
      if (changes_) wake();
    }

    Owner& owner_;
    std::unique_lock<std::mutex> lock_;
    const bool changes_;
  };
  using Reading = Access<const Synchronized, const T>;
  using Changing = Access<Synchronized, T>;

  template <class... Arguments>
  explicit Synchronized(Arguments&&... arguments) : value_{std::forward<Arguments>(arguments)...} {}
  Synchronized(const Synchronized&) = delete;
  Synchronized& operator=(const Synchronized&) = delete;

  // To read, or to change what nobody waits for.
  Reading lock() const { return {*this, false}; }
  Changing lock() { return {*this, false}; }
  // To change: those who wait look again when the access ends, or waits itself.
  Changing change() { return {*this, true}; }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  T value_;  // guarded by mutex_
};

}  // namespace cohort::internal

#include "allocation_callers.h"

#include <execinfo.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <map>
#include <string_view>

#include "symbols.h"

extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* old, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
}

namespace bench {
namespace {

// Frames that asked, as the tail of a stack, in a table that never allocates.
constexpr int kFrames = 12;
struct Stack {
  std::array<void*, kFrames> frames{};
  int size = 0;
  bool operator==(const Stack&) const = default;
};
struct Entry {
  std::atomic<int64_t> count{0};
  Stack stack;
};
constexpr size_t kEntries = 1 << 15;
std::array<Entry, kEntries> table;
std::atomic<int64_t> unplaced{0};
std::atomic<bool> counting{false};
std::atomic_flag table_lock;
[[gnu::tls_model("initial-exec")]] constinit thread_local bool inside = false;

void count_caller() {
  if (!counting.load(std::memory_order_relaxed) || inside) return;
  inside = true;
  Stack stack;
  stack.size = backtrace(stack.frames.data(), kFrames);
  size_t hash = 0;
  for (void* frame : stack.frames) hash = hash * 1000003 + reinterpret_cast<size_t>(frame);
  while (table_lock.test_and_set(std::memory_order_acquire)) {
  }
  bool placed = false;
  for (size_t probe = 0; probe < 64 && !placed; ++probe) {
    Entry& entry = table[(hash + probe) % kEntries];
    if (entry.count != 0 && !(entry.stack == stack)) continue;
    entry.stack = stack;
    ++entry.count;
    placed = true;
  }
  if (!placed) ++unplaced;
  table_lock.clear(std::memory_order_release);
  inside = false;
}

// Whether a frame allocates for its caller.
bool passes_on(const Symbol& frame) {
  const std::string_view module = frame.module;
  const std::string_view name = frame.mangled;
  return module.starts_with("libc.so") || module.starts_with("libstdc++") ||
         name.starts_with("_ZNSt") || name.starts_with("_ZNKSt") || name.starts_with("_ZSt") ||
         name.starts_with("_Znw");
}

Caller caller_of(const Stack& stack) {
  static const void* own = symbol_at(reinterpret_cast<void*>(&count_caller)).base;
  bool wrapper = true;  // this file's frames come first
  for (int i = 0; i < stack.size; ++i) {
    const Symbol frame = symbol_at(stack.frames[static_cast<size_t>(i)]);
    // count_caller and the wrapper that called it.
    if (wrapper && frame.base == own && i < 2) continue;
    wrapper = false;
    if (!passes_on(frame)) return {frame.module, frame.mangled, frame.function, 0};
  }
  return {"unknown", "", "", 0};
}

}  // namespace

void start_counting_allocations() {
  void* warm_up[1];
  backtrace(warm_up, 1);  // loads what it needs
  for (Entry& entry : table) entry.count = 0;
  unplaced = 0;
  counting = true;
}

std::vector<Caller> stop_counting_allocations() {
  counting = false;
  std::map<std::pair<std::string, std::string>, Caller> by_name;
  for (const Entry& entry : table) {
    if (entry.count == 0) continue;
    Caller caller = caller_of(entry.stack);
    Caller& counted = by_name.try_emplace({caller.module, caller.mangled}, caller).first->second;
    counted.allocations += entry.count;
  }
  std::vector<Caller> callers;
  for (auto& [names, caller] : by_name) callers.push_back(std::move(caller));
  if (unplaced > 0) {
    callers.push_back({"unknown", "", "more callers than the table holds", unplaced});
  }
  std::stable_sort(callers.begin(), callers.end(),
                   [](const Caller& a, const Caller& b) { return a.allocations > b.allocations; });
  return callers;
}

}  // namespace bench

// The program's own names win over the C library's.
extern "C" {

void* malloc(size_t size) noexcept {
  bench::count_caller();
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) noexcept {
  bench::count_caller();
  return __libc_calloc(count, size);
}
void* realloc(void* old, size_t size) noexcept {
  bench::count_caller();
  return __libc_realloc(old, size);
}
void* memalign(size_t alignment, size_t size) noexcept {
  bench::count_caller();
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) noexcept {
  bench::count_caller();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** result, size_t alignment, size_t size) noexcept {
  bench::count_caller();
  void* block = __libc_memalign(alignment, size);
  if (block == nullptr) return ENOMEM;
  *result = block;
  return 0;
}
void* mmap(void* address, size_t size, int protection, int flags, int fd, off_t offset) noexcept {
  bench::count_caller();
  return reinterpret_cast<void*>(::syscall(SYS_mmap, address, size, protection, flags, fd, offset));
}

}  // extern "C"

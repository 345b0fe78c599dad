#include "allocation_callers.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <string_view>

extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* old, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
}

namespace bench {
namespace {

// Frames that asked, as the tail of a stack, in a table that never allocates.
constexpr int kFrames = 8;
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

std::string demangled(const char* name) {
  if (name == nullptr) return "";
  int status = 0;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string result = status == 0 ? text : name;
  std::free(text);
  return result;
}

bool passes_on(std::string_view module) {
  return module.starts_with("libc.so") || module.starts_with("libstdc++");
}

Caller caller_of(const Stack& stack) {
  static const auto own = [] {
    Dl_info info{};
    dladdr(reinterpret_cast<void*>(&count_caller), &info);
    return info.dli_fbase;
  }();
  bool wrapper = true;  // this file's frames come first
  for (int i = 0; i < stack.size; ++i) {
    Dl_info info{};
    if (dladdr(stack.frames[static_cast<size_t>(i)], &info) == 0) continue;
    // count_caller and the wrapper that called it.
    if (wrapper && info.dli_fbase == own && i < 2) continue;
    wrapper = false;
    std::string_view module = info.dli_fname;
    module = module.substr(module.rfind('/') + 1);
    if (!passes_on(module)) return {std::string(module), demangled(info.dli_sname), 0};
  }
  return {"unknown", "", 0};
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
  std::map<std::pair<std::string, std::string>, int64_t> counts;
  for (const Entry& entry : table) {
    if (entry.count == 0) continue;
    const Caller caller = caller_of(entry.stack);
    counts[{caller.module, caller.function}] += entry.count;
  }
  if (unplaced > 0) counts[{"unknown", "more callers than the table holds"}] += unplaced;
  std::vector<Caller> callers;
  for (const auto& [names, count] : counts) callers.push_back({names.first, names.second, count});
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

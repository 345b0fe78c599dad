// Two threads write one integer without a lock: ThreadSanitizer must say so.
#include <thread>

int main() {
  int shared = 0;
  std::thread writer([&shared] { ++shared; });
  ++shared;
  writer.join();
  return shared == 2 ? 0 : 1;
}

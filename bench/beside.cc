// A neighbour that computes and never waits. bench/beside.py starts as many as it needs, and ends
// them.
#include <cstdint>

int main() {
  volatile uint64_t count = 0;
  while (true) count = count + 1;
}

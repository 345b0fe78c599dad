// Reads one byte past a heap block (argc is 1): AddressSanitizer must say so.
#include <cstdlib>

int main(int argc, char**) {
  // Volatile, so that the block's size is known at run time alone.
  char* volatile bytes = static_cast<char*>(std::calloc(8, 1));
  const int result = bytes[7 + argc];
  std::free(bytes);
  return result;
}

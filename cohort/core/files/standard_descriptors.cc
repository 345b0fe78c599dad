// A program may be started without some of the descriptors 0 to 2. The next file or socket that
// anybody opens would get the number, and what is printed would go there. So the free ones are
// taken when this code is loaded: /dev/null is open there, to be read where programs write and to
// be written where they read. Whoever uses one gets the error of a closed descriptor, EBADF.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

// Before the constructors of C++ objects, some of which may open files. CMakeLists.txt links it
// into every program, though nothing calls it.
extern "C" [[gnu::constructor(101)]] void cohort_take_standard_descriptors();

void cohort_take_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    // Programs that the process starts inherit the descriptor, because they may open files as well.
    const int taken = ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    if (taken > STDERR_FILENO) ::close(taken);  // another thread was quicker
  }
}

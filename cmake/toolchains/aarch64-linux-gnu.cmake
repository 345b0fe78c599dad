# Cross-compiles for Linux on ARM64 with Debian's g++-aarch64-linux-gnu, against the sysroot that
# scripts/arm64 makes. Programs run under qemu-aarch64.
#
# -DCOHORT_SYSROOT=DIR names another sysroot: a folder with an ARM64 system's /usr and /lib.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

if(DEFINED ENV{XDG_CACHE_HOME})
  set(cohort_cache $ENV{XDG_CACHE_HOME}/cohort)
else()
  set(cohort_cache $ENV{HOME}/.cache/cohort)
endif()
set(COHORT_SYSROOT ${cohort_cache}/sysroot-arm64 CACHE PATH "An ARM64 system's root folder")
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES COHORT_SYSROOT)
set(CMAKE_SYSROOT ${COHORT_SYSROOT})
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
# By the environment and not by -L, so that programs which a test starts find the sysroot, too.
set(CMAKE_CROSSCOMPILING_EMULATOR
    ${CMAKE_COMMAND};-E;env;QEMU_LD_PREFIX=${COHORT_SYSROOT};qemu-aarch64)

# Programs are this machine's; libraries and headers are the sysroot's.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${COHORT_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR}
    ${COHORT_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${COHORT_SYSROOT}/usr/share/pkgconfig)

# g++ finds another linker only under the name that begins with its target's.
set(COHORT_MOLD "" CACHE FILEPATH "")
if(EXISTS /usr/libexec/mold/ld)
  foreach(kind EXE SHARED MODULE)
    set(CMAKE_${kind}_LINKER_FLAGS_INIT -B/usr/libexec/mold)
  endforeach()
endif()

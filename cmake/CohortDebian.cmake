# cpack -G DEB: the packages libcohort0 (the shared libraries), libcohort-dev and cohort (the command),
# of what cohort_package built. scripts/packages makes them, checks them and tries them.
find_program(COHORT_DPKG dpkg)
mark_as_advanced(COHORT_DPKG)
if(NOT COHORT_DPKG)
  return()
endif()
set(COHORT_MAINTAINER "Cohort maintainers <maintainers@cohort.example>"
    CACHE STRING "Whom the Debian packages name as their maintainer")
mark_as_advanced(COHORT_MAINTAINER)

# Which release of Debian packages are for: libraries' versions differ.
file(STRINGS /etc/os-release os_release REGEX "^VERSION_ID=")
string(REGEX REPLACE ".*=\"?([0-9.]+)\"?" "deb\\1" os_release "${os_release}")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME cohort)
set(CPACK_PACKAGE_VENDOR Cohort)
set(CPACK_PACKAGE_CONTACT ${COHORT_MAINTAINER})
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_COMPONENTS_ALL runtime development command)
set(CPACK_DEB_COMPONENT_INSTALL ON)

set(CPACK_DEBIAN_PACKAGE_RELEASE 1~${os_release})
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
# A program needs the very version that it was linked with: 0.2 may have another binary interface.
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY =)

set(exact_version "(= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")
string(REGEX REPLACE "^([0-9]+\\.[0-9]+).*" "\\1" libtorch_minor ${Libtorch_VERSION})
string(REGEX REPLACE ".*\\.([0-9]+)$" "\\1" libtorch_next ${libtorch_minor})
math(EXPR libtorch_next "${libtorch_next} + 1")
string(REGEX REPLACE "[0-9]+$" ${libtorch_next} libtorch_next ${libtorch_minor})

set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each package has its own, the first line
set(about "\
Cohort is the programming model of tf.distribute for C++ on libtorch: training
steps that run on one device, on all devices of a machine, on many machines in
step, or on workers around parameter servers; input pipelines; Keras's layers
and optimizers; checkpoints and record files that TensorFlow reads.
")

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libcohort0)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
# It is loaded at run time, where dpkg-shlibdeps does not see it.
get_filename_component(onednn_file ${OneDNN_LIBRARY} REALPATH)
execute_process(COMMAND ${COHORT_DPKG} --search ${onednn_file} OUTPUT_VARIABLE onednn_package
                ERROR_QUIET)
if(onednn_package MATCHES "^([^:]+):")
  set(CPACK_DEBIAN_RUNTIME_PACKAGE_DEPENDS ${CMAKE_MATCH_1})
endif()
# CPack's own postinst calls ldconfig, and lintian wants the trigger, too.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/debian/triggers CONTENT "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/debian/triggers)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS "libopenblas0-pthread")
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION "distributed training on libtorch - shared libraries
${about}
This package holds the shared libraries that programs are linked with.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libcohort-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "libcohort0 ${exact_version}, libtorch-dev (>= ${libtorch_minor}), libtorch-dev (<< ${libtorch_next}~)")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS "cmake (>= 3.25) | pkg-config, g++ (>= 4:12) | clang")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "distributed training on libtorch - development files
${about}
This package holds the headers, and what CMake's find_package(cohort) and
pkg-config read.")

set(CPACK_DEBIAN_COMMAND_PACKAGE_NAME cohort)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_COMMAND_DESCRIPTION "distributed training on libtorch - command line tools
${about}
This package holds the command cohort, which looks at checkpoints, record
files and clusters, and starts the tasks of a job. It needs no libtorch.")

# What each package says of itself.
string(TIMESTAMP package_year %Y UTC)
string(TIMESTAMP package_date "%a, %d %b %Y %H:%M:%S +0000" UTC)
foreach(component runtime development command)
  string(TOUPPER ${component} upper)
  set(package ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  set(folder ${PROJECT_BINARY_DIR}/debian/${package})
  configure_file(cmake/debian/copyright.in ${folder}/copyright @ONLY)
  configure_file(cmake/debian/changelog.in ${folder}/changelog.Debian @ONLY)
  execute_process(COMMAND gzip -9nf ${folder}/changelog.Debian COMMAND_ERROR_IS_FATAL ANY)
  install(FILES ${folder}/copyright ${folder}/changelog.Debian.gz
          DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} COMPONENT ${component}
          EXCLUDE_FROM_ALL)
endforeach()

execute_process(COMMAND gzip -9nc ${PROJECT_SOURCE_DIR}/tools/cohort.1
                OUTPUT_FILE ${PROJECT_BINARY_DIR}/debian/cohort.1.gz COMMAND_ERROR_IS_FATAL ANY)
install(FILES ${PROJECT_BINARY_DIR}/debian/cohort.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1
        COMPONENT command EXCLUDE_FROM_ALL)

# The system's folder is searched without being told, and a package must not tell.
install(CODE "if(CMAKE_INSTALL_PREFIX STREQUAL \"/usr\")
  file(RPATH_REMOVE
       FILE \"\$ENV{DESTDIR}/usr/${CMAKE_INSTALL_LIBDIR}/libcohort.so.${PROJECT_VERSION}\")
endif()"
        COMPONENT runtime EXCLUDE_FROM_ALL)

include(CPack)

# cohort.pc and cohort-data.pc, for builds without CMake. What they say of libtorch is what
# Libtorch::Libtorch says.
set(pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
# From the file itself, so that the folder may be moved.
file(RELATIVE_PATH pc_prefix /prefix/${pc_dir} /prefix)
string(REGEX REPLACE "/$" "" pc_prefix ${pc_prefix})

set(pc_libtorch_cflags "")
get_target_property(pc_folders Libtorch::Libtorch INTERFACE_INCLUDE_DIRECTORIES)
foreach(folder IN LISTS pc_folders)
  string(APPEND pc_libtorch_cflags " -isystem ${folder}")
endforeach()
# What the compiler searches by itself must keep its place.
string(REPLACE " -isystem /usr/include " " " pc_libtorch_cflags "${pc_libtorch_cflags} ")
get_target_property(pc_definitions Libtorch::Libtorch INTERFACE_COMPILE_DEFINITIONS)
foreach(definition IN LISTS pc_definitions)
  string(APPEND pc_libtorch_cflags "-D${definition} ")
endforeach()
string(STRIP "${pc_libtorch_cflags}" pc_libtorch_cflags)

get_filename_component(pc_libtorch_dir ${Libtorch_torch_cpu_LIBRARY} DIRECTORY)
set(pc_libtorch_libs "-ltorch_cpu -lc10")
if(NOT pc_libtorch_dir IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
  string(PREPEND pc_libtorch_libs "-L${pc_libtorch_dir} -Wl,-rpath,${pc_libtorch_dir} ")
endif()
if(Libtorch_CUDA AND Libtorch_torch_cuda_LIBRARY)
  string(APPEND pc_libtorch_libs
         " -Wl,--push-state,--no-as-needed,${Libtorch_torch_cuda_LIBRARY},--pop-state")
endif()

foreach(name cohort cohort-data)
  configure_file(cmake/${name}.pc.in ${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${pc_dir} COMPONENT development)
endforeach()

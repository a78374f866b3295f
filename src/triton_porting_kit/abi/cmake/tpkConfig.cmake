# The headers for devices: `tpk_abi.h` and `tpk_hooks.h`, which needs pybind11.
if(NOT TARGET tpk::headers)
  add_library(tpk::headers INTERFACE IMPORTED)
  target_include_directories(tpk::headers INTERFACE ${CMAKE_CURRENT_LIST_DIR}/../include)
  target_compile_features(tpk::headers INTERFACE cxx_std_20)
endif()

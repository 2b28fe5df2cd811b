add_executable(grove-worker ${CMAKE_CURRENT_LIST_DIR}/main.cc)
target_include_directories(grove-worker PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(grove-worker PRIVATE grove::daemon grove::metrics grove::rpc grove::worker_rpc
                      grove::worker_pipeline grove::worker_setup CLI11::CLI11)
grove_warnings(grove-worker)
install(TARGETS grove-worker RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

add_executable(grove-coordinator ${CMAKE_CURRENT_LIST_DIR}/main.cc)
target_include_directories(grove-coordinator PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(grove-coordinator PRIVATE grove::daemon grove::metrics grove::rpc grove::engine grove::store
                      grove::search grove::catalogue grove::operation grove::generate grove::llm grove::coordinator_rpc
                      grove::coordinator_web CLI11::CLI11)
grove_warnings(grove-coordinator)
install(TARGETS grove-coordinator RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

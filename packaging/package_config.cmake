# Read by CPack once for each generator.
if(CPACK_GENERATOR STREQUAL "DEB")
  set(CPACK_SET_DESTDIR ON)  # files that name their prefix name the one they will have
  set(CPACK_INSTALL_PREFIX /usr)
else()
  set(CPACK_MONOLITHIC_INSTALL ON)
endif()

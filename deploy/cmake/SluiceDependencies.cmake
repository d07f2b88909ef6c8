# SPDX-License-Identifier: Apache-2.0
# Finds everything Sluice is built on and stops with the Debian package to install when something is missing.

set(SLUICE_MISSING "")

# sluice_need(<found> <what> <debian package>)
function(sluice_need found what package)
  if(NOT ${found})
    set(SLUICE_MISSING "${SLUICE_MISSING}\n  ${what}: apt-get install ${package}" PARENT_SCOPE)
  endif()
endfunction()

if(WIN32)
  include(SluiceDependenciesWindows)
elseif(SLUICE_CLIENT_PREFIX)
  include(SluiceDependenciesClient)
else()
  include(SluiceDependenciesLinux)
endif()

if(SLUICE_MISSING)
  message(FATAL_ERROR "Sluice cannot be configured; missing:${SLUICE_MISSING}\n"
                      "deploy/install-deps.sh installs all of them.")
endif()

// SPDX-License-Identifier: Apache-2.0
// The entry of our DLLs: Windows calls it for threads, for unloading and for the process's end.
#include <windows.h>

extern "C" {

BOOL WINAPI DllMainCRTStartup(HINSTANCE library, DWORD reason, LPVOID reserved);

// At the process's end Windows has ended the other threads wherever they were, also inside the C
// library's and winpthreads' locks. Destroying our static objects would wait for these locks: a
// program that returned from main hung there. So nothing is destroyed; the system takes everything
// back.
BOOL WINAPI SluiceLibraryEntry(HINSTANCE library, DWORD reason, LPVOID reserved) {
  const bool process_ends = reason == DLL_PROCESS_DETACH && reserved != nullptr;
  return process_ends || DllMainCRTStartup(library, reason, reserved);
}

}  // extern "C"

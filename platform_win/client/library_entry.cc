// SPDX-License-Identifier: Apache-2.0
// The entry of our DLLs: where they are told of threads, of their unloading and of the process's
// end.
#include <windows.h>

extern "C" {

BOOL WINAPI DllMainCRTStartup(HINSTANCE library, DWORD reason, LPVOID reserved);

// At the process's end the other threads have been ended wherever they were, inside the C library's
// and winpthreads' locks too, which taking our static objects down would wait for: a program that
// returned from main hung there. The system takes everything back.
BOOL WINAPI SluiceLibraryEntry(HINSTANCE library, DWORD reason, LPVOID reserved) {
  const bool process_ends = reason == DLL_PROCESS_DETACH && reserved != nullptr;
  return process_ends || DllMainCRTStartup(library, reason, reserved);
}

}  // extern "C"

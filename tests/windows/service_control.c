// SPDX-License-Identifier: Apache-2.0
// A service's answers to a control that sc.exe under Wine has no command for, and what it then says
// of itself:
//   service_control NAME pause|continue|paramchange|interrogate|query|stop
// `stop` has a line for each thing that it says until it has stopped, for a minute at most.
#include <stdio.h>
#include <string.h>
#include <windows.h>

static void Print(const SERVICE_STATUS* status) {
  printf("state %lu accepts %lu checkpoint %lu hint %lu\n", status->dwCurrentState,
         status->dwControlsAccepted, status->dwCheckPoint, status->dwWaitHint);
}

static int Follow(SC_HANDLE service) {
  SERVICE_STATUS before;
  SERVICE_STATUS status;
  memset(&before, 0, sizeof(before));
  for (int looks = 0; looks < 3000; ++looks) {
    memset(&status, 0, sizeof(status));
    if (!QueryServiceStatus(service, &status)) return 1;
    if (memcmp(&status, &before, sizeof(status)) != 0) Print(&status);
    if (status.dwCurrentState == SERVICE_STOPPED) return 0;
    before = status;
    Sleep(20);
  }
  return 1;
}

int main(int count, char** words) {
  static const struct {
    const char* name;
    DWORD control;
  } kControls[] = {{"pause", SERVICE_CONTROL_PAUSE},
                   {"continue", SERVICE_CONTROL_CONTINUE},
                   {"paramchange", SERVICE_CONTROL_PARAMCHANGE},
                   {"interrogate", SERVICE_CONTROL_INTERROGATE},
                   {"stop", SERVICE_CONTROL_STOP},
                   {"query", 0}};
  if (count != 3) return 2;
  DWORD control = MAXDWORD;
  for (size_t i = 0; i < sizeof(kControls) / sizeof(kControls[0]); ++i)
    if (strcmp(words[2], kControls[i].name) == 0) control = kControls[i].control;
  if (control == MAXDWORD) return 2;
  const SC_HANDLE manager = OpenSCManagerA(NULL, NULL, SC_MANAGER_CONNECT);
  const SC_HANDLE service = manager == NULL
                                ? NULL
                                : OpenServiceA(manager, words[1],
                                               SERVICE_QUERY_STATUS | SERVICE_PAUSE_CONTINUE |
                                                   SERVICE_INTERROGATE | SERVICE_STOP);
  if (service == NULL) {
    printf("no service: %lu\n", GetLastError());
    return 1;
  }
  SERVICE_STATUS status;
  if (control != 0)
    printf("answer %lu\n", ControlService(service, control, &status) ? 0ul : GetLastError());
  if (control == SERVICE_CONTROL_STOP) return Follow(service);
  if (!QueryServiceStatus(service, &status)) return 1;
  Print(&status);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
//
// A plug-in whose static object uses OpenCL when it is destroyed, at the process's end: no thread
// but the one that ends it is left then. The transport decides the calls' answers; they return, and
// the process ends.
#include "tests/windows/loaded_driver.h"

namespace {

struct LateUser {
  Loaded driver;
  Session session;

  ~LateUser() {
    if (session.context == nullptr) return;
    Computes(driver, session, 8);
    driver.cl->clFinish(session.queue);
    Session another;
    if (Open(driver, &another)) Close(driver, another);
    Close(driver, session);
    const char done[] = "returned";
    DWORD written = 0;
    WriteFile(GetStdHandle(STD_OUTPUT_HANDLE), done, sizeof(done) - 1, &written, nullptr);
  }
} user;

}  // namespace

extern "C" __declspec(dllexport) bool Start(const char* driver) {
  return Load(driver, &user.driver) && user.driver.count != 0 && Open(user.driver, &user.session) &&
         Computes(user.driver, user.session, 7);
}

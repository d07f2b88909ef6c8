// SPDX-License-Identifier: Apache-2.0
#include "tests/sharing/gl_app.h"

namespace sluice::gltest {

const char* BindingName(Binding binding) {
  switch (binding) {
    case Binding::kEglGl:
      return "EglGl";
    case Binding::kEglEs:
      return "EglEs";
    case Binding::kGlx:
      return "Glx";
    case Binding::kGlxVisual:
      return "GlxVisual";
    case Binding::kGlxEs:
      return "GlxEs";
    case Binding::kWgl:
      return "Wgl";
  }
  return "";
}

std::string BindingParamName(const testing::TestParamInfo<Binding>& info) {
  return BindingName(info.param);
}

void GlApp::Load(void* (*lookup)(const char* name)) {
#define SLUICE_TEST_LOAD(type, name) gl_.name = reinterpret_cast<type>(lookup("gl" #name));
  SLUICE_TEST_GL(SLUICE_TEST_LOAD)
#undef SLUICE_TEST_LOAD
}

}  // namespace sluice::gltest

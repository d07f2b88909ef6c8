// SPDX-License-Identifier: Apache-2.0
// Contexts of several graphics APIs, which there are none of, and of several media adapters, which
// there are.
#include <windows.h>
// After windows.h.
#include <CL/cl_gl.h>

#include <vector>

#include "tests/sharing/d3d/d3d_app.h"
#include "tests/sharing/d3d/d3d_extensions.h"
#include "tests/sharing/d3d/dx9_fixture.h"

namespace sluice::d3dtest {
namespace {

using PropertyList = std::vector<cl_context_properties>;

// A WGL context that is current, with a window of its own.
class Wgl {
 public:
  Wgl() {
    PIXELFORMATDESCRIPTOR about = {};
    about.nSize = sizeof(about);
    about.nVersion = 1;
    about.dwFlags = PFD_DRAW_TO_WINDOW | PFD_SUPPORT_OPENGL | PFD_DOUBLEBUFFER;
    about.cColorBits = 32;
    const int format = ::ChoosePixelFormat(device_, &about);
    if (!::SetPixelFormat(device_, format, &about)) return;
    context_ = ::wglCreateContext(device_);
    ::wglMakeCurrent(device_, context_);
  }
  ~Wgl() {
    ::wglMakeCurrent(nullptr, nullptr);
    if (context_ != nullptr) ::wglDeleteContext(context_);
    ::ReleaseDC(window_, device_);
    ::DestroyWindow(window_);
  }
  Wgl(const Wgl&) = delete;
  Wgl& operator=(const Wgl&) = delete;

  PropertyList properties() const {
    return {CL_GL_CONTEXT_KHR, reinterpret_cast<cl_context_properties>(context_), CL_WGL_HDC_KHR,
            reinterpret_cast<cl_context_properties>(device_)};
  }

 private:
  const HWND window_ =
      ::CreateWindowA("STATIC", "", WS_POPUP, 0, 0, 16, 16, nullptr, nullptr, nullptr, nullptr);
  const HDC device_ = ::GetDC(window_);
  HGLRC context_ = nullptr;
};

class Mixed : public WithDx9 {
 protected:
  static PropertyList Of(cl_context_properties name, void* object) {
    return {name, reinterpret_cast<cl_context_properties>(object)};
  }
  // Of a context of all of them.
  cl_int Status(const std::vector<PropertyList>& parts) {
    cl_int status = 0x7fffffff;
    NewContext(All(parts), &status);
    return status;
  }
  PropertyList All(const std::vector<PropertyList>& parts) const {
    PropertyList all = {CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(platform())};
    for (const PropertyList& part : parts) all.insert(all.end(), part.begin(), part.end());
    all.push_back(0);
    return all;
  }
};

// CL_INVALID_OPERATION if "interoperability with another graphics API is also specified" (sections
// 9.6.5, 9.7.5 and 9.8.5), for each two of them and for all, in any order; each alone is none.
TEST_P(Mixed, OneApiPerContext) {
  D3dApp<Khr10> ten;
  D3dApp<Khr11> eleven;
  ASSERT_TRUE(ten.ok() && eleven.ok());
  Wgl gl;
  const std::vector<PropertyList> apis = {
      Of(property(), app().device()), Of(CL_CONTEXT_D3D10_DEVICE_KHR, ten.device()),
      Of(CL_CONTEXT_D3D11_DEVICE_KHR, eleven.device()), gl.properties()};
  for (size_t i = 0; i < apis.size(); ++i) {
    EXPECT_EQ(Status({apis[i]}), CL_SUCCESS) << i;
    for (size_t j = 0; j < apis.size(); ++j) {
      if (i == j) continue;
      EXPECT_EQ(Status({apis[i], apis[j]}), CL_INVALID_OPERATION) << i << " and " << j;
    }
  }
  EXPECT_EQ(Status(apis), CL_INVALID_OPERATION);
}

// A context of two media adapters shares the surfaces of each, by its type alone.
TEST_P(Mixed, SeveralMediaAdapters) {
  Dx9App other(!is_ex(), /*multithreaded=*/true);
  ASSERT_TRUE(other.ok());
  const cl_dx9_media_adapter_type_khr other_type =
      is_ex() ? CL_ADAPTER_D3D9_KHR : CL_ADAPTER_D3D9EX_KHR;
  const cl_context_properties other_property =
      is_ex() ? CL_CONTEXT_ADAPTER_D3D9_KHR : CL_CONTEXT_ADAPTER_D3D9EX_KHR;
  const auto surface = app().Offscreen(D3DFMT_A8R8G8B8, 16, 8);
  LetContextGo();
  EXPECT_EQ(Status({Of(property(), app().device()), Of(other_property, surface.Get())}),
            CL_INVALID_DX9_MEDIA_ADAPTER_KHR)
      << "one of them is none";
  MakeContext(All({Of(property(), app().device()), Of(other_property, other.device())}));
  struct Side {
    Dx9App* app;
    cl_dx9_media_adapter_type_khr type;
    cl_dx9_media_adapter_type_khr not_its;
  };
  uint32_t seed = 1;
  for (const Side& side :
       {Side{&app(), GetParam(), other_type}, Side{&other, other_type, GetParam()}}) {
    const auto own = side.app->Offscreen(D3DFMT_A8R8G8B8, 16, 8);
    const Bytes bytes = Pattern(16 * 8 * 4, seed++);
    side.app->Write(own.Get(), bytes, 16 * 4, 8);
    cl_dx9_surface_info_khr info = {own.Get(), nullptr};
    From(side.not_its, &info, 0, CL_INVALID_DX9_MEDIA_SURFACE_KHR);
    From(CL_ADAPTER_DXVA_KHR, &info, 0, CL_INVALID_OPERATION);
    Own<cl_mem> image = From(side.type, &info, 0, CL_SUCCESS);
    ASSERT_EQ(Acquire(image), CL_SUCCESS);
    EXPECT_TRUE(ReadImage(image, {16, 8}) == bytes);
    EXPECT_EQ(Release(image), CL_SUCCESS);
  }
}

INSTANTIATE_TEST_SUITE_P(, Mixed, testing::Values(CL_ADAPTER_D3D9_KHR, CL_ADAPTER_D3D9EX_KHR),
                         ApiName);

}  // namespace
}  // namespace sluice::d3dtest

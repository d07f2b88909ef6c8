// SPDX-License-Identifier: Apache-2.0
//
// The tests' OpenCL.dll. It finds drivers as Khronos' loader does, by the values of
// HKLM\SOFTWARE\Khronos\OpenCL\Vendors (the value's name is the driver's path, its DWORD is 0), and
// forwards each call through the dispatch table of its first argument. Wine's own OpenCL.dll is no
// such loader: it ignores the key. Thread-safe once the first call has returned.
#include <CL/cl_icd.h>
#include <windows.h>

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace {

struct Driver {
  decltype(cl_icd_dispatch::clGetExtensionFunctionAddress) find = nullptr;
  std::vector<cl_platform_id> platforms;
};

std::vector<std::wstring> RegisteredDrivers() {
  std::vector<std::wstring> paths;
  HKEY key = nullptr;
  if (RegOpenKeyExW(HKEY_LOCAL_MACHINE, L"SOFTWARE\\Khronos\\OpenCL\\Vendors", 0, KEY_READ, &key) !=
      ERROR_SUCCESS) {
    return paths;
  }
  for (DWORD index = 0;; ++index) {
    wchar_t name[4096];
    DWORD length = 4096;
    DWORD type = 0;
    DWORD value = 1;
    DWORD bytes = sizeof(value);
    const LSTATUS status = RegEnumValueW(key, index, name, &length, nullptr, &type,
                                         reinterpret_cast<BYTE*>(&value), &bytes);
    if (status == ERROR_NO_MORE_ITEMS) break;
    if (status == ERROR_SUCCESS && type == REG_DWORD && value == 0)
      paths.emplace_back(name, length);
  }
  RegCloseKey(key);
  return paths;
}

bool Load(const std::wstring& path, Driver* driver) {
  const HMODULE library = LoadLibraryExW(path.c_str(), nullptr, LOAD_WITH_ALTERED_SEARCH_PATH);
  if (library == nullptr) return false;
  driver->find = reinterpret_cast<decltype(cl_icd_dispatch::clGetExtensionFunctionAddress)>(
      reinterpret_cast<void*>(GetProcAddress(library, "clGetExtensionFunctionAddress")));
  const auto get_platforms =
      driver->find == nullptr
          ? nullptr
          : reinterpret_cast<clIcdGetPlatformIDsKHR_fn>(driver->find("clIcdGetPlatformIDsKHR"));
  cl_uint count = 0;
  if (get_platforms == nullptr || get_platforms(0, nullptr, &count) != CL_SUCCESS || count == 0) {
    FreeLibrary(library);
    return false;
  }
  driver->platforms.resize(count);
  get_platforms(count, driver->platforms.data(), nullptr);
  return true;
}

}  // namespace

extern "C" {
// Of the first platform: for calls with a null handle, whose code the driver says.
const cl_icd_dispatch* default_dispatch = nullptr;
}

namespace {

const cl_icd_dispatch* DispatchOf(const void* handle) {
  return handle == nullptr ? default_dispatch : *static_cast<const cl_icd_dispatch* const*>(handle);
}

const std::vector<Driver>& Drivers() {
  static std::vector<Driver>& drivers = *new std::vector<Driver>;
  static std::once_flag once;
  std::call_once(once, [] {
    for (const std::wstring& path : RegisteredDrivers()) {
      Driver driver;
      if (Load(path, &driver)) drivers.push_back(std::move(driver));
    }
    if (!drivers.empty()) default_dispatch = DispatchOf(drivers.front().platforms.front());
  });
  return drivers;
}

// The platform that a list of context properties names; null if it names none.
const void* NamedPlatform(const cl_context_properties* properties) {
  for (; properties != nullptr && properties[0] != 0; properties += 2) {
    if (properties[0] == CL_CONTEXT_PLATFORM) return reinterpret_cast<const void*>(properties[1]);
  }
  return nullptr;
}

}  // namespace

extern "C" {

cl_int CL_API_CALL clGetPlatformIDs(cl_uint capacity, cl_platform_id* platforms, cl_uint* count) {
  if ((capacity == 0) == (platforms != nullptr) || (platforms == nullptr && count == nullptr))
    return CL_INVALID_VALUE;
  std::vector<cl_platform_id> all;
  for (const Driver& driver : Drivers())
    all.insert(all.end(), driver.platforms.begin(), driver.platforms.end());
  if (count != nullptr) *count = static_cast<cl_uint>(all.size());
  if (all.empty()) return -1001;  // cl_khr_icd: CL_PLATFORM_NOT_FOUND_KHR if there are none.
  for (size_t i = 0; i < all.size() && i < capacity; ++i) platforms[i] = all[i];
  return CL_SUCCESS;
}

cl_int CL_API_CALL clGetPlatformInfo(cl_platform_id platform, cl_platform_info name, size_t size,
                                     void* value, size_t* size_ret) {
  if (Drivers().empty()) return CL_INVALID_PLATFORM;
  if (platform == nullptr) platform = Drivers().front().platforms.front();
  return DispatchOf(platform)->clGetPlatformInfo(platform, name, size, value, size_ret);
}

cl_context CL_API_CALL clCreateContext(const cl_context_properties* properties, cl_uint count,
                                       const cl_device_id* devices,
                                       void(CL_CALLBACK* notify)(const char*, const void*, size_t,
                                                                 void*),
                                       void* user_data, cl_int* code) {
  const cl_icd_dispatch* dispatch =
      DispatchOf(count == 0 || devices == nullptr ? nullptr : devices[0]);
  if (dispatch == nullptr) {
    if (code != nullptr) *code = CL_INVALID_PLATFORM;
    return nullptr;
  }
  return dispatch->clCreateContext(properties, count, devices, notify, user_data, code);
}

cl_context CL_API_CALL clCreateContextFromType(const cl_context_properties* properties,
                                               cl_device_type type,
                                               void(CL_CALLBACK* notify)(const char*, const void*,
                                                                         size_t, void*),
                                               void* user_data, cl_int* code) {
  Drivers();
  const cl_icd_dispatch* dispatch = DispatchOf(NamedPlatform(properties));
  if (dispatch == nullptr) {
    if (code != nullptr) *code = CL_INVALID_PLATFORM;
    return nullptr;
  }
  return dispatch->clCreateContextFromType(properties, type, notify, user_data, code);
}

cl_int CL_API_CALL clWaitForEvents(cl_uint count, const cl_event* events) {
  const cl_icd_dispatch* dispatch =
      DispatchOf(count == 0 || events == nullptr ? nullptr : events[0]);
  return dispatch == nullptr ? CL_INVALID_VALUE : dispatch->clWaitForEvents(count, events);
}

cl_int CL_API_CALL clUnloadCompiler() { return CL_SUCCESS; }

void* CL_API_CALL clGetExtensionFunctionAddress(const char* name) {
  if (name == nullptr) return nullptr;
  // A function of an extension that has a slot is the loader's.
  const std::string_view text = name;
  if (text.ends_with("KHR") || text.ends_with("EXT")) {
    const FARPROC forward = GetProcAddress(GetModuleHandleW(L"OpenCL.dll"), name);
    if (forward != nullptr) return reinterpret_cast<void*>(forward);
  }
  for (const Driver& driver : Drivers()) {
    void* const found = driver.find(name);
    if (found != nullptr) return found;
  }
  return nullptr;
}

}  // extern "C"

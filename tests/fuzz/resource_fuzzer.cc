// SPDX-License-Identifier: Apache-2.0
// Daemon-owned resources whose clients are hostile: the input is a list of calls, each the bytes of
// its request as they would come over gRPC, on one of four connections, with time passing between
// them. They go through the same conversions and checks as the service's, into a real registry.
//
//   call: what (1 byte) | connection (1) | request bytes (2) | request
//
// This must hold after each call: a writer is alone, limits are kept. In the end this must hold:
// every acquire was answered once, every watch has ended, and nothing is left.
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "broker/resources/conversion.h"
#include "broker/resources/registry.h"
#include "tests/fuzz/fuzzer.h"

namespace sluice::fuzz {
namespace {

constexpr uint64_t kConnections = 4;
constexpr char kIdentity[] = "uid:1";

enum class What : uint8_t {
  kCreate,
  kImport,
  kDescribe,
  kAcquire,
  kCancel,
  kRelease,
  kDestroy,
  kWatch,
  kUnwatch,
  kEndConnection,
  kWait,
  kCount,
};

// A corpus is data: what breaks a promise ends the program at once.
void Require(bool good) {
  if (!good) std::abort();
}

broker::ResourcesConfig Limits() {
  broker::ResourcesConfig limits;
  limits.max_resources = 8;
  limits.max_resources_per_user = 6;
  limits.max_bytes = 1 << 20;
  limits.max_bytes_per_user = 1 << 19;
  limits.max_acquires_per_connection = 6;
  limits.max_watches_per_connection = 3;
  limits.max_wait_ms = 1'000;
  limits.max_linger_ms = 500;
  return limits;
}

class Daemon {
 public:
  Daemon() {
    registry_.SetIsOpenElsewhere([this](broker::ResourceMemory*) { return open_elsewhere_; });
  }

  void Call(What what, uint64_t connection, const std::string& request) {
    switch (what) {
      case What::kCreate:
        return Make<v1::CreateResourceRequest>(connection, request, &broker::ReadCreate);
      case What::kImport:
        return Make<v1::ImportResourceRequest>(connection, request, &broker::ReadImport);
      case What::kDescribe:
        return Describe(connection, request);
      case What::kAcquire:
        return Acquire(connection, request);
      case What::kCancel:
        return WithHold(request, [&](uint64_t id, auto) { registry_.Cancel(connection, id); });
      case What::kRelease:
        return WithHold(request, [&](uint64_t id, broker::ResourceTurns::Contents contents) {
          (void)registry_.Release(connection, id, contents);
        });
      case What::kDestroy:
        return Destroy(request);
      case What::kWatch:
        return Watch(connection, request);
      case What::kUnwatch:
        if (!watches_.empty()) registry_.Unwatch(watches_[request.size() % watches_.size()]);
        return;
      case What::kEndConnection:
        return registry_.ConnectionEnded(connection, now_ms_);
      case What::kWait:
        now_ms_ += static_cast<int64_t>(request.size());
        open_elsewhere_ = request.size() % 2 != 0;
        return registry_.AdvanceTo(now_ms_);
      case What::kCount:
        return;
    }
  }

  void Check() const {
    uint64_t bytes = 0;
    for (const broker::ResourceInfo& info : registry_.List()) {
      Require(!info.state.writer || info.state.readers == 0);
      bytes += info.size_bytes;
    }
    Require(registry_.count() <= limits_.max_resources_per_user);
    Require(registry_.bytes() == bytes && bytes <= limits_.max_bytes_per_user);
  }

  void End() {
    open_elsewhere_ = false;
    for (uint64_t connection = 1; connection <= kConnections; ++connection) {
      registry_.ConnectionEnded(connection, now_ms_);
    }
    registry_.AdvanceTo(now_ms_ + 10 * limits_.max_linger_ms);
    Require(registry_.count() == 0 && registry_.bytes() == 0);
    Require(!registry_.NextDueMs().has_value());
    for (const int answers : *answers_) Require(answers == 1);
  }

 private:
  // A reader that relies on a shape reads as far as each plane's end.
  static void RequireLayoutFits(const broker::ResourceShape& shape) {
    if (!shape.image.has_value()) return;
    const uint64_t slices = std::max(shape.image->depth, shape.image->array_layers);
    for (const broker::PlaneLayout& plane : shape.image->planes) {
      uint64_t end = 0;
      Require(!__builtin_mul_overflow(plane.slice_pitch, slices, &end) &&
              !__builtin_add_overflow(end, plane.offset, &end) && end <= shape.size_bytes);
    }
  }

  template <typename Request>
  void Make(uint64_t connection, const std::string& bytes,
            broker::CreateParameters (*read)(const Request&)) {
    Request request;
    if (!request.ParseFromString(bytes)) return;
    broker::CreateParameters parameters = read(request);
    if (!broker::CompleteShape(&parameters.shape).ok()) return;
    const uint64_t size = parameters.shape.size_bytes;
    Require(size != 0 && size <= broker::kMaxResourceBytes);
    RequireLayoutFits(parameters.shape);
    if (!registry_.Reserve(kIdentity, size).ok()) return;
    const auto made =
        registry_.Create(connection, kIdentity, std::move(parameters.shape), parameters.backing,
                         std::move(parameters.options), broker::ResourceMemory());
    if (!made.ok()) return;
    capabilities_.push_back(made->read.Encode());
    capabilities_.push_back(made->write.Encode());
  }

  // The bytes that a client says, or, if it is one byte, a capability that a client was given: the
  // random 16 bytes cannot be guessed by a fuzzer either.
  std::string Capability(const std::string& said) const {
    if (said.size() != 1 || capabilities_.empty()) return said;
    return capabilities_[static_cast<uint8_t>(said[0]) % capabilities_.size()];
  }

  void Describe(uint64_t connection, const std::string& bytes) {
    v1::DescribeResourceRequest request;
    if (!request.ParseFromString(bytes)) return;
    const auto view =
        registry_.Open(connection, Capability(request.capability()), broker::ResourceAccess::kRead);
    if (!view.ok()) return;
    v1::ResourceDescription description;
    broker::FillDescription(*view, registry_.StateOf(view->id), &description);
    Require(description.resource_id() == view->id);
    view->memory->lent = true;  // As an export does.
  }

  void Acquire(uint64_t connection, const std::string& bytes) {
    v1::AcquireResourceRequest request;
    if (!request.ParseFromString(bytes)) return;
    const auto access = broker::ReadAccess(request.access());
    if (!access.ok()) return;
    const size_t number = answers_->size();
    answers_->push_back(0);
    registry_.Acquire(connection, request.hold_id(), Capability(request.capability()), *access,
                      now_ms_, request.timeout_ms(),
                      [answers = answers_, number](absl::StatusOr<broker::ResourceGrant>) {
                        ++(*answers)[number];
                      });
  }

  template <typename Then>
  void WithHold(const std::string& bytes, Then then) {
    v1::ReleaseResourceRequest request;
    if (!request.ParseFromString(bytes)) return;
    const auto contents = broker::ReadContents(request);
    if (contents.ok()) then(request.hold_id(), *contents);
  }

  void Destroy(const std::string& bytes) {
    v1::DestroyResourceRequest request;
    if (request.ParseFromString(bytes)) {
      (void)registry_.Destroy(Capability(request.capability()));
    }
  }

  void Watch(uint64_t connection, const std::string& bytes) {
    v1::WatchResourceRequest request;
    if (!request.ParseFromString(bytes)) return;
    auto ended = std::make_shared<bool>(false);
    const auto watch = registry_.Watch(connection, Capability(request.capability()),
                                       [ended](const broker::ResourceStateView& state, bool last) {
                                         Require(!*ended);
                                         *ended = last;
                                         v1::ResourceState message;
                                         broker::FillState(state, &message);
                                       });
    if (watch.ok()) watches_.push_back(*watch);
  }

  const broker::ResourcesConfig limits_ = Limits();
  broker::ResourceRegistry registry_{limits_};
  int64_t now_ms_ = 1'000'000;
  bool open_elsewhere_ = false;  // All that was lent.
  std::vector<std::string> capabilities_;
  std::vector<uint64_t> watches_;
  std::shared_ptr<std::vector<int>> answers_ = std::make_shared<std::vector<int>>();
};

}  // namespace
}  // namespace sluice::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using sluice::fuzz::What;
  static const auto silenced = google::protobuf::SetLogHandler(nullptr);
  static_cast<void>(silenced);
  sluice::fuzz::Daemon daemon;
  std::string_view in(reinterpret_cast<const char*>(data), size);
  while (in.size() >= 4) {
    const auto what =
        static_cast<What>(static_cast<uint8_t>(in[0]) % static_cast<uint8_t>(What::kCount));
    const uint64_t connection = 1 + static_cast<uint8_t>(in[1]) % sluice::fuzz::kConnections;
    uint16_t bytes = 0;
    std::memcpy(&bytes, in.data() + 2, sizeof(bytes));
    in.remove_prefix(4);
    const std::string_view request = in.substr(0, bytes);
    in.remove_prefix(request.size());
    daemon.Call(what, connection, std::string(request));
    daemon.Check();
  }
  daemon.End();
  return 0;
}

namespace {

using Random = std::mt19937_64;

uint64_t OddNumber(Random& random) {
  switch (random() % 4) {
    case 0:
      return random();
    case 1:
      return UINT64_MAX - random() % 4;
    default:
      return random() % 70;
  }
}

void FillShape(Random& random, sluice::v1::ResourceShape* shape) {
  if (random() % 3 == 0) {
    shape->set_size_bytes(OddNumber(random));
    return;
  }
  static constexpr uint32_t kFourccs[] = {0x34325241, 0x3231564e, 0x32315659, 0x30313050, 0};
  sluice::v1::ImageShape& image = *shape->mutable_image();
  if (random() % 2 == 0) {
    image.set_drm_fourcc(kFourccs[random() % std::size(kFourccs)]);
  } else {
    image.set_channel_order(0x10b0 + static_cast<uint32_t>(random() % 12));
    image.set_channel_type(0x10d0 + static_cast<uint32_t>(random() % 16));
  }
  image.set_width(OddNumber(random));
  image.set_height(OddNumber(random));
  if (random() % 4 == 0) image.set_depth(OddNumber(random));
  if (random() % 4 == 0) image.set_array_layers(OddNumber(random));
  for (size_t planes = random() % 4; planes > 1; --planes) {
    sluice::v1::ResourcePlane& plane = *image.add_planes();
    plane.set_offset(OddNumber(random));
    plane.set_row_pitch(OddNumber(random) * 4);
    plane.set_slice_pitch(OddNumber(random) * 64);
  }
}

template <typename Request>
std::string MakeRequest(Random& random) {
  Request request;
  FillShape(random, request.mutable_shape());
  request.set_label(std::string(random() % 80, 'l'));
  request.set_linger_ms(random() % 3 == 0 ? OddNumber(random) : 0);
  request.set_trust_readers(random() % 2 == 0);
  return request.SerializeAsString();
}

std::string CapabilityOf(Random& random) {
  return std::string(random() % 8 == 0 ? random() % 30 : 1, static_cast<char>(random()));
}

template <typename Request>
std::string Named(Random& random) {
  Request request;
  request.set_capability(CapabilityOf(random));
  return request.SerializeAsString();
}

std::string RequestFor(sluice::fuzz::What what, Random& random) {
  using sluice::fuzz::What;
  switch (what) {
    case What::kCreate:
      return MakeRequest<sluice::v1::CreateResourceRequest>(random);
    case What::kImport:
      return MakeRequest<sluice::v1::ImportResourceRequest>(random);
    case What::kDescribe:
    case What::kDestroy:
    case What::kWatch:
      return Named<sluice::v1::DescribeResourceRequest>(random);
    case What::kAcquire: {
      sluice::v1::AcquireResourceRequest request;
      request.set_capability(CapabilityOf(random));
      request.set_access(static_cast<sluice::v1::ResourceAccess>(1 + random() % 2));
      request.set_timeout_ms(OddNumber(random));
      request.set_hold_id(random() % 6);
      return request.SerializeAsString();
    }
    case What::kCancel:
    case What::kRelease: {
      sluice::v1::ReleaseResourceRequest request;
      request.set_hold_id(random() % 6);
      request.set_contents_indeterminate(random() % 4 == 0);
      request.set_contents_untouched(random() % 4 == 0);
      return request.SerializeAsString();
    }
    default:
      return std::string(random() % 300, 'x');
  }
}

}  // namespace

std::string MakeFuzzInput(Random& random) {
  using sluice::fuzz::What;
  std::string input;
  for (size_t calls = 1 + random() % 40; calls > 0; --calls) {
    // Something must be there before much can be done to it.
    const auto what = random() % 5 == 0
                          ? What::kCreate
                          : static_cast<What>(random() % static_cast<uint8_t>(What::kCount));
    const std::string request = RequestFor(what, random);
    const auto bytes = static_cast<uint16_t>(request.size());
    input.push_back(static_cast<char>(what));
    input.push_back(static_cast<char>(random()));
    input.append(reinterpret_cast<const char*>(&bytes), sizeof(bytes));
    input += request;
  }
  return input;
}

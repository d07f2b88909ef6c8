// SPDX-License-Identifier: Apache-2.0
#include "client_icd/session/ring_transport.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "broker/os/descriptor_identity.h"
#include "broker/os/doorbell.h"
#include "broker/os/local_socket.h"
#include "broker/os/threads.h"
#include "client_icd/base/client_log.h"
#include "proto/heap_span.h"
#include "proto/status_macros.h"

namespace sluice::client {
namespace {

// A wait for room looks again this often whether the session is lost.
constexpr int64_t kRoomTimeoutNs = 100'000'000;
// How long a descriptor may wait for room in the channel.
constexpr int kHandleTimeoutMs = 1000;
// How long a frame's segment may be behind the frame: it was sent before, but comes by another way,
// through a thread that may get no processor for seconds (heap_map.h).
constexpr absl::Duration kSegmentTimeout = absl::Seconds(30);
// Descriptors that nobody has asked for yet: an honest worker sends one for each call that waits.
constexpr size_t kMaxUnclaimed = 64;

// Of one message: a shadow's memory and its two semaphores.
constexpr int kMostDescriptors = 3;

// Takes the next message of the channel, checked for form. kAborted: end of file. `none_left`: it
// brought descriptors that this process may not have.
absl::StatusOr<wire::HandleMessage> ReceiveHandleMessage(int socket, std::vector<os::UniqueFd>* fds,
                                                         bool* none_left = nullptr) {
  wire::HandleMessage message = {};
  absl::StatusOr<size_t> bytes =
      os::ReceiveMessage(socket, &message, sizeof(message), fds, kMostDescriptors);
  if (none_left != nullptr && absl::IsResourceExhausted(bytes.status())) {
    *none_left = true;
    bytes = sizeof(message);  // All of it has come but those; the magic tells.
  }
  if (!bytes.ok()) return bytes.status();
  if (*bytes == 0) return absl::AbortedError("the worker has ended");
  if (*bytes != sizeof(message) || message.magic != wire::kHandleMagic) {
    return absl::InvalidArgumentError("a message on the handle channel that is none");
  }
  return message;
}

absl::StatusOr<os::SharedMapping> VerifyAndMap(const os::UniqueFd& fd, uint64_t size,
                                               void* address) {
  RETURN_IF_ERROR(os::VerifySharedMemory(fd.get(), size));
  return os::SharedMapping::Map(fd.get(), size, /*writable=*/true, address);
}

}  // namespace

struct RingTransport::Channel {
  explicit Channel(os::UniqueFd fd) : socket(std::move(fd)) {}

  // The thread's whole life, with a worker and with a helper.
  static void Run(const std::shared_ptr<Channel>& channel);
  static void RunWithHelper(const std::shared_ptr<Channel>& channel,
                            const std::function<void()>& await_end);
  absl::Status Take(const wire::HandleMessage& message, std::vector<os::UniqueFd>* fds);
  absl::Status TakeWithoutDescriptors(const wire::HandleMessage& message);
  absl::Status TakeSegment(const wire::HandleMessage& message, const os::UniqueFd& file);
  absl::Status AddSegment(uint32_t number, os::SharedMapping mapping);
  absl::Status TakeExported(const wire::HandleMessage& message, std::vector<os::UniqueFd> fds);
  void LoseOwner(std::string_view reason, bool by_end_of_file);

  const os::GuardedFd socket;

  absl::Mutex mu;
  RingTransport* owner ABSL_GUARDED_BY(mu) = nullptr;  // Null once the transport is gone.
  bool ended ABSL_GUARDED_BY(mu) = false;              // No more segments will come.
  absl::flat_hash_map<uint32_t, os::SharedMapping> segments ABSL_GUARDED_BY(mu);
  // The descriptors that the worker exported, by the id of their object, until somebody takes them.
  absl::flat_hash_map<uint64_t, std::vector<os::UniqueFd>> exported ABSL_GUARDED_BY(mu);
  absl::CondVar changed;
};

void RingTransport::Channel::Run(const std::shared_ptr<Channel>& channel) {
  absl::Status status;
  // Memory comes as a descriptor. One is kept open whose number it can have: an application that
  // has used up its own asks for memory all the same.
  std::optional<os::GuardedFd> spare;
  while (status.ok()) {
    if (!spare.has_value()) spare.emplace(os::OpenSentinel());
    status = os::AwaitMessage(channel->socket.get());
    if (!channel->socket.there()) {
      status = absl::FailedPreconditionError("the application has closed the session's socket");
    }
    if (!status.ok()) break;
    spare.reset();
    std::vector<os::UniqueFd> fds;
    bool none_left = false;
    const absl::StatusOr<wire::HandleMessage> message =
        ReceiveHandleMessage(channel->socket.get(), &fds, &none_left);
    status = !message.ok() ? message.status()
             : none_left   ? channel->TakeWithoutDescriptors(*message)
                           : channel->Take(*message, &fds);
    // Mapped memory no longer needs its descriptor, which is kept in place of a new one: once it is
    // closed, another thread of the application may take its number.
    if (!fds.empty()) spare.emplace(std::move(fds.front()));
  }
  channel->LoseOwner(std::string(status.message()), absl::IsAborted(status));
}

void RingTransport::Channel::RunWithHelper(const std::shared_ptr<Channel>& channel,
                                           const std::function<void()>& await_end) {
  await_end();
  const bool there = channel->socket.there();
  channel->LoseOwner(
      there ? "the network helper has ended" : "the application has closed the session's socket",
      /*by_end_of_file=*/true);
}

absl::Status RingTransport::Channel::Take(const wire::HandleMessage& message,
                                          std::vector<os::UniqueFd>* fds) {
  const size_t count = fds->size();
  if (message.type == wire::HandleMessageType::kHeapSegment && count == 1)
    return TakeSegment(message, fds->front());
  if (message.type == wire::HandleMessageType::kShadowMemory && (count == 1 || count == 3))
    return TakeExported(message, std::move(*fds));
  return absl::InvalidArgumentError("a message on the handle channel that is no offer of memory");
}

// The application has lowered its limit (RLIMIT_NOFILE) below all that is open, so that not even
// the spare descriptor's number may be given again. All that needs this memory fails, and nothing
// else.
absl::Status RingTransport::Channel::TakeWithoutDescriptors(const wire::HandleMessage& message) {
  ClientLog(ClientLogLevel::kWarning,
            "memory of the session cannot be mapped: this process may open no more files (ulimit "
            "-n, RLIMIT_NOFILE)");
  if (message.type == wire::HandleMessageType::kHeapSegment)
    return AddSegment(message.segment, os::SharedMapping());
  return TakeExported(message, {});
}

absl::Status RingTransport::Channel::AddSegment(uint32_t number, os::SharedMapping mapping) {
  absl::MutexLock lock(&mu);
  if (!segments.try_emplace(number, std::move(mapping)).second) {
    return absl::InvalidArgumentError(absl::StrCat("heap segment ", number, " a second time"));
  }
  changed.SignalAll();
  return absl::OkStatus();
}

absl::Status RingTransport::Channel::TakeSegment(const wire::HandleMessage& message,
                                                 const os::UniqueFd& file) {
  if (message.segment == 0) return absl::InvalidArgumentError("a heap segment without a number");
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address that both processes agreed on (SVM).
  void* const address = reinterpret_cast<void*>(message.address);
  absl::StatusOr<os::SharedMapping> mapped = VerifyAndMap(file, message.size, address);
  // Something lies there in this process, perhaps another session's SVM: then this one has no SVM,
  // and a segment that nothing fits into.
  const bool taken = address != nullptr && absl::IsAlreadyExists(mapped.status());
  if (!mapped.ok() && !taken) return mapped.status();
  return AddSegment(message.segment, taken ? os::SharedMapping() : *std::move(mapped));
}

absl::Status RingTransport::Channel::TakeExported(const wire::HandleMessage& message,
                                                  std::vector<os::UniqueFd> fds) {
  absl::MutexLock lock(&mu);
  if (exported.size() >= kMaxUnclaimed) {
    return absl::ResourceExhaustedError("exported memory that was not asked for");
  }
  exported.insert_or_assign(message.address, std::move(fds));
  changed.SignalAll();
  return absl::OkStatus();
}

void RingTransport::Channel::LoseOwner(std::string_view reason, bool by_end_of_file) {
  absl::MutexLock lock(&mu);
  ended = true;
  changed.SignalAll();
  if (owner != nullptr) owner->LoseAs(reason, by_end_of_file);
}

absl::StatusOr<std::unique_ptr<RingTransport>> RingTransport::Connect(os::UniqueFd channel_fd,
                                                                      int timeout_ms,
                                                                      uint64_t max_in_flight) {
  auto channel = std::make_shared<Channel>(std::move(channel_fd));
  ASSIGN_OR_RETURN(auto transport, TakeOffer(channel, timeout_ms, max_in_flight, Heap::kShared));
  if (!os::StartThread("sluice-channel", [channel] { Channel::Run(channel); })) {
    return absl::ResourceExhaustedError("no thread to be had");
  }
  return transport;
}

absl::StatusOr<std::unique_ptr<RingTransport>> RingTransport::ConnectToHelper(
    os::UniqueFd channel_fd, int timeout_ms, uint64_t max_in_flight,
    std::function<void()> await_end) {
  auto channel = std::make_shared<Channel>(std::move(channel_fd));
  ASSIGN_OR_RETURN(auto transport, TakeOffer(channel, timeout_ms, max_in_flight, Heap::kNone));
  const auto run = [channel, await_end = std::move(await_end)] {
    Channel::RunWithHelper(channel, await_end);
  };
  if (!os::StartThread("sluice-channel", run)) {
    return absl::ResourceExhaustedError("no thread to be had");
  }
  return transport;
}

absl::StatusOr<std::unique_ptr<RingTransport>> RingTransport::TakeOffer(
    std::shared_ptr<Channel> channel, int timeout_ms, uint64_t max_in_flight, Heap heap) {
  RETURN_IF_ERROR(os::WaitReadable(channel->socket.get(), timeout_ms));
  std::vector<os::UniqueFd> fds;
  ASSIGN_OR_RETURN(const wire::HandleMessage offer,
                   ReceiveHandleMessage(channel->socket.get(), &fds));
  if (offer.type != wire::HandleMessageType::kRingOffer || fds.size() != 2 ||
      offer.size != wire::kRingFileBytes) {
    return absl::InvalidArgumentError("the worker's first message is no ring offer");
  }
  ASSIGN_OR_RETURN(os::SharedMapping commands, VerifyAndMap(fds[0], wire::kRingFileBytes, nullptr));
  ASSIGN_OR_RETURN(os::SharedMapping replies, VerifyAndMap(fds[1], wire::kRingFileBytes, nullptr));
  return std::unique_ptr<RingTransport>(new RingTransport(
      std::move(channel), offer, std::move(commands), std::move(replies), max_in_flight, heap));
}

RingTransport::RingTransport(std::shared_ptr<Channel> channel, const wire::HandleMessage& offer,
                             os::SharedMapping commands, os::SharedMapping replies,
                             uint64_t max_in_flight, Heap heap)
    : channel_(std::move(channel)),
      takes_imports_((offer.flags & wire::kTakesImports) != 0),
      commands_(std::move(commands)),
      replies_(std::move(replies)),
      replies_shared_(reinterpret_cast<wire::RingShared*>(replies_.data())),
      max_in_flight_(max_in_flight),
      heap_(heap),
      writer_(commands_.data()),
      reader_(replies_.data()) {
  absl::MutexLock lock(&channel_->mu);
  channel_->owner = this;
}

bool RingTransport::SendHandle(uint64_t token, int fd) {
  if (!takes_imports_ || lost()) return false;
  wire::HandleMessage message = {};
  message.magic = wire::kHandleMagic;
  message.type = wire::HandleMessageType::kImportHandle;
  message.address = token;
  absl::MutexLock lock(&handle_mu_);
  // The worker's main thread takes what comes; one that does not must not hold us up.
  if (!os::WaitWritable(channel_->socket.get(), kHandleTimeoutMs).ok()) return false;
  return os::SendMessage(channel_->socket.get(), &message, sizeof(message), &fd, 1).ok();
}

RingTransport::~RingTransport() {
  {
    absl::MutexLock lock(&channel_->mu);
    channel_->owner = nullptr;
  }
  os::HangUp(channel_->socket.get());  // Ends the channel's thread, and the worker.
}

bool RingTransport::Send(const wire::FrameHeader& header, std::string_view message,
                         std::string_view payload, bool wake) {
  const bool sent =
      wire::CutFrame(header, message, payload, wire::kMaxPieceBody,
                     [this](const wire::PieceHeader& piece, std::string_view a, std::string_view b,
                            std::string_view c) {
                       while (!writer_.TryWritePiece(piece, a, b, c)) {
                         if (writer_.violated())
                           Lose("the worker's place in the command ring is impossible");
                         if (lost()) return false;
                         writer_.Notify(wire::Wake::kUrgent, 0);
                         writer_.WaitForRoom(piece.body_bytes, kRoomTimeoutNs);
                       }
                       return true;
                     });
  if (sent && wake) writer_.Notify(wire::Wake::kWaiter, 0);
  return sent;
}

bool RingTransport::Receive(wire::Frame* frame) {
  if (lost() && !receiving_last_words_) return false;
  const absl::StatusOr<bool> there = reader_.Next(frame);
  if (!there.ok()) {
    receiving_last_words_ = false;
    Lose(std::string(there.status().message()));
  }
  return there.ok() && *there;
}

bool RingTransport::HasFrame() const { return reader_.HasPiece(); }

uint32_t RingTransport::Arm(wire::RingSleep state, uint64_t awaited_event) {
  const uint32_t ticket = replies_shared_->bell.load(std::memory_order_seq_cst);
  replies_shared_->awaited_event.store(awaited_event, std::memory_order_relaxed);
  // Ordered before the sleeper's look at `produced`; pairs with the producer's look at the state
  // after it has produced.
  replies_shared_->sleep_state.store(state, std::memory_order_seq_cst);
  return ticket;
}

void RingTransport::Wait(uint32_t ticket, uint32_t bit) { Nap(ticket, bit, /*ns=*/-1); }

bool RingTransport::Nap(uint32_t ticket, uint32_t bit, int64_t ns) {
  return lost() || HasFrame() || os::FutexWait(&replies_shared_->bell, ticket, bit, ns);
}

void RingTransport::Interrupt(uint32_t bits) { reader_.Interrupt(bits); }

std::string RingTransport::lost_reason() const {
  absl::MutexLock lock(&mu_);
  return lost_reason_;
}

void RingTransport::Lose(std::string_view reason) { LoseAs(reason, /*by_end_of_file=*/false); }

void RingTransport::ReceiveLastWords() {
  absl::MutexLock lock(&mu_);
  receiving_last_words_ = lost_by_end_of_file_;
}

void RingTransport::LoseAs(std::string_view reason, bool by_end_of_file) {
  {
    absl::MutexLock lock(&mu_);
    if (lost_.load(std::memory_order_relaxed) && (by_end_of_file || !lost_by_end_of_file_)) return;
    lost_reason_ = std::string(reason);
    lost_by_end_of_file_ = by_end_of_file;
    lost_.store(true, std::memory_order_release);
  }
  os::HangUp(channel_->socket.get());
  reader_.Interrupt(wire::kBitWaiter | wire::kBitBackground);
  writer_.WakeWriter();
}

void RingTransport::LoseInForkedChild() {
  lost_.store(true, std::memory_order_release);
  // The worker's end of file must come from the parent alone. Nobody uses it here any more.
  const os::UniqueFd closed(channel_->socket.get());
}

bool RingTransport::InHeap(const void* memory, uint64_t bytes) const {
  if (lost()) return false;  // In the child of a fork the lock may be held for ever.
  const auto* begin = static_cast<const uint8_t*>(memory);
  absl::MutexLock lock(&channel_->mu);
  for (const auto& [number, segment] : channel_->segments) {
    if (begin < segment.data() + segment.size() && segment.data() < begin + bytes) return true;
  }
  return false;
}

std::vector<os::UniqueFd> RingTransport::TakeDescriptors(uint64_t id) {
  if (heap_ == Heap::kNone) return {};
  absl::MutexLock lock(&channel_->mu);
  const absl::Time deadline = absl::Now() + kSegmentTimeout;
  while (true) {
    const auto it = channel_->exported.find(id);
    if (it != channel_->exported.end()) {
      std::vector<os::UniqueFd> fds = std::move(it->second);
      channel_->exported.erase(it);
      return fds;
    }
    if (lost() || channel_->ended || channel_->changed.WaitWithDeadline(&channel_->mu, deadline))
      return {};
  }
}

uint8_t* RingTransport::Map(const wire::BulkSpan& span) {
  if (span.segment == 0 || heap_ == Heap::kNone || lost()) return nullptr;
  absl::MutexLock lock(&channel_->mu);
  const absl::Time deadline = absl::Now() + kSegmentTimeout;
  while (true) {
    const auto it = channel_->segments.find(span.segment);
    if (it != channel_->segments.end()) {
      return wire::SpanPointer(it->second.data(), it->second.size(), span.offset, span.size);
    }
    if (channel_->ended || channel_->changed.WaitWithDeadline(&channel_->mu, deadline))
      return nullptr;
  }
}

}  // namespace sluice::client

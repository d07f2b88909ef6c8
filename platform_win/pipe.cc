// SPDX-License-Identifier: Apache-2.0
#include "platform_win/pipe.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/base/check.h"
#include "broker/os/lasting_thread.h"
#include "broker/os/local_socket.h"
#include "broker/os/random.h"
#include "platform_win/handles/travel.h"
#include "platform_win/wide_text.h"

namespace sluice::os {
namespace {

// Stands before each message's own bytes and says which handles come with it.
struct PipeHeader {
  uint32_t magic;
  uint16_t flags;
  uint16_t object_count;
};
struct ObjectRecord {
  uint32_t kind;
  uint32_t handle_count;
  uint64_t handles[kMaxTravelHandles];
};
static_assert(sizeof(PipeHeader) == 8 && sizeof(ObjectRecord) == 8 + 8 * kMaxTravelHandles);

constexpr uint32_t kPipeMagic = 0x50434c53;  // "SLCP"
// The handles are the receiver's already; else they are the sender's, for the receiver to pull.
constexpr uint16_t kInReceiver = 1;

constexpr size_t kMaxPacketBytes = size_t{256} << 10;

// Closes a handle in another process, if it is one.
void CloseIn(HANDLE process, uint64_t value) {
  HANDLE here = nullptr;
  if (::DuplicateHandle(process, reinterpret_cast<HANDLE>(value), ::GetCurrentProcess(), &here, 0,
                        FALSE, DUPLICATE_SAME_ACCESS | DUPLICATE_CLOSE_SOURCE)) {
    ::CloseHandle(here);
  }
}

// A pseudo handle means another object in each process, also in ours: never pull one.
bool IsPlainHandle(uint64_t value) {
  return value != 0 && value % 4 == 0 && value < (uint64_t{1} << 31);
}

absl::StatusOr<std::string> PeerGone() {
  return absl::AbortedError("the peer has closed the connection");
}

}  // namespace

absl::StatusOr<std::pair<OwnedHandle, OwnedHandle>> CreateOneWayPipe(DWORD mode, DWORD bytes) {
  uint64_t secret[2];
  if (absl::Status random = FillRandom(secret, sizeof(secret)); !random.ok()) return random;
  const std::wstring name = ToWide(
      absl::StrCat(R"(\\.\pipe\sluice-output-)", absl::Hex(secret[0]), absl::Hex(secret[1])));
  // Windows' anonymous pipes cannot be waited for.
  OwnedHandle read_end(::CreateNamedPipeW(
      name.c_str(), PIPE_ACCESS_INBOUND | FILE_FLAG_OVERLAPPED | FILE_FLAG_FIRST_PIPE_INSTANCE,
      mode | PIPE_REJECT_REMOTE_CLIENTS, 1, bytes, bytes, 0, nullptr));
  if (!read_end.valid()) return WindowsStatus(::GetLastError(), "creating a pipe for output");
  OwnedHandle write_end(
      ::CreateFileW(name.c_str(), GENERIC_WRITE, 0, nullptr, OPEN_EXISTING, 0, nullptr));
  if (!write_end.valid()) return WindowsStatus(::GetLastError(), "opening a pipe for output");
  return std::make_pair(std::move(read_end), std::move(write_end));
}

PipeEnd::PipeEnd(OwnedHandle pipe, std::shared_ptr<PipePair> pair, int side)
    : HandleObject(HandleKind::kPipe, std::move(pipe)), pair_(std::move(pair)), side_(side) {
  read_event_ = OwnedHandle(::CreateEventW(nullptr, TRUE, FALSE, nullptr));
  write_event_ = OwnedHandle(::CreateEventW(nullptr, TRUE, FALSE, nullptr));
  read_.hEvent = read_event_.get();
  write_.hEvent = write_event_.get();
}

PipeEnd::PipeEnd(OwnedHandle pipe, PipePeer peer)
    : HandleObject(HandleKind::kPipe, std::move(pipe)), peer_(std::move(peer)) {
  read_event_ = OwnedHandle(::CreateEventW(nullptr, TRUE, FALSE, nullptr));
  write_event_ = OwnedHandle(::CreateEventW(nullptr, TRUE, FALSE, nullptr));
  read_.hEvent = read_event_.get();
  write_.hEvent = write_event_.get();
}

PipeEnd::PipeEnd(OwnedHandle pipe) : PipeEnd(std::move(pipe), PipePeer()) {}

PipeEnd::~PipeEnd() {
  DWORD bytes;
  // Waits until the system is done with our buffers.
  if (read_state_ == ReadState::kPending) {
    ::CancelIoEx(handle(), &read_);
    ::GetOverlappedResult(handle(), &read_, &bytes, TRUE);
  }
  if (write_pending_) {
    ::CancelIoEx(handle(), &write_);
    ::GetOverlappedResult(handle(), &write_, &bytes, TRUE);
  }
}

// --- bytes

void PipeEnd::StartRead() {
  // A thread's end cancels the read that it has begun. That is no end of the pipe.
  DWORD bytes = 0;
  if (read_state_ == ReadState::kPending && !hung_up_ &&
      !::GetOverlappedResult(handle(), &read_, &bytes, FALSE) &&
      ::GetLastError() == ERROR_OPERATION_ABORTED) {
    read_state_ = ReadState::kIdle;
  }
  if (read_state_ != ReadState::kIdle) return;
  if (hung_up_) {
    read_state_ = ReadState::kEnd;
    ::SetEvent(read_event_.get());
    return;
  }
  read_buffer_.resize(kReadBytes);
  if (::ReadFile(handle(), read_buffer_.data(), static_cast<DWORD>(read_buffer_.size()), nullptr,
                 &read_) ||
      ::GetLastError() == ERROR_IO_PENDING || ::GetLastError() == ERROR_MORE_DATA) {
    read_state_ = ReadState::kPending;  // Perhaps complete already; then the event is set.
    return;
  }
  read_state_ = ReadState::kEnd;
  ::SetEvent(read_event_.get());
}

HANDLE PipeEnd::PrepareWait() {
  const std::lock_guard<std::mutex> lock(read_mutex_);
  StartRead();
  return read_event_.get();
}

HANDLE PipeEnd::PrepareWriteWait() {
  const std::lock_guard<std::mutex> lock(write_mutex_);
  return write_pending_ ? write_event_.get() : nullptr;
}

bool PipeEnd::OtherHasHungUp() {
  const std::lock_guard<std::mutex> lock(read_mutex_);
  return read_state_ == ReadState::kEnd ||
         !::PeekNamedPipe(handle(), nullptr, 0, nullptr, nullptr, nullptr);
}

// Ends all waits at this end. A client's end can tell the other side only by closing its handle,
// which this does at once.
void PipeEnd::HangUp() {
  if (hung_up_.exchange(true)) return;
  std::unique_lock<std::mutex> read_lock(read_mutex_, std::defer_lock);
  std::unique_lock<std::mutex> write_lock(write_mutex_, std::defer_lock);
  // A thread that read hung_up_ before may start another operation now, which must be cancelled,
  // too.
  while (std::try_lock(read_lock, write_lock) >= 0) {
    ::CancelIoEx(handle(), nullptr);
    ::SwitchToThread();
  }
  ::CancelIoEx(handle(), nullptr);
  DWORD bytes;
  if (read_state_ == ReadState::kPending) ::GetOverlappedResult(handle(), &read_, &bytes, TRUE);
  if (write_pending_) ::GetOverlappedResult(handle(), &write_, &bytes, TRUE);
  write_pending_ = false;
  read_state_ = ReadState::kEnd;
  ::SetEvent(read_event_.get());
  CloseNow();
}

// The rest of a message that was longer than the buffer.
absl::StatusOr<std::string> PipeEnd::FinishRead(DWORD bytes, bool more) {
  std::string packet(read_buffer_.data(), bytes);
  while (more) {
    DWORD left = 0;
    if (!::PeekNamedPipe(handle(), nullptr, 0, nullptr, nullptr, &left) || left == 0 ||
        packet.size() + left > kMaxPacketBytes) {
      return absl::InvalidArgumentError("a message larger than any of ours");
    }
    read_buffer_.resize(left);
    DWORD got = 0;
    more = false;
    if (!::ReadFile(handle(), read_buffer_.data(), left, nullptr, &read_) &&
        ::GetLastError() != ERROR_IO_PENDING && ::GetLastError() != ERROR_MORE_DATA) {
      return PeerGone();
    }
    if (!::GetOverlappedResult(handle(), &read_, &got, TRUE)) {
      if (::GetLastError() != ERROR_MORE_DATA) return PeerGone();
      more = true;
    }
    packet.append(read_buffer_.data(), got);
  }
  return packet;
}

absl::StatusOr<std::string> PipeEnd::ReceiveRaw(bool may_block) {
  std::unique_lock<std::mutex> lock(read_mutex_);
  while (true) {
    StartRead();
    if (read_state_ == ReadState::kEnd) return std::string();
    DWORD bytes = 0;
    const bool done = ::GetOverlappedResult(handle(), &read_, &bytes, FALSE);
    const DWORD error = done ? ERROR_SUCCESS : ::GetLastError();
    if (error == ERROR_IO_INCOMPLETE) {
      if (!may_block) return absl::UnavailableError("receive would block");
      lock.unlock();
      ::WaitForSingleObject(read_event_.get(), INFINITE);
      lock.lock();
      continue;
    }
    if (error == ERROR_OPERATION_ABORTED && !hung_up_) continue;
    read_state_ = ReadState::kIdle;
    if (done || error == ERROR_MORE_DATA) {
      absl::StatusOr<std::string> packet = FinishRead(bytes, error == ERROR_MORE_DATA);
      if (packet.ok() && packet->empty()) return absl::InvalidArgumentError("an empty message");
      if (!absl::IsAborted(packet.status())) return packet;
    }
    read_state_ = ReadState::kEnd;  // And stays it.
    ::SetEvent(read_event_.get());
  }
}

absl::Status PipeEnd::SendRaw(std::string bytes) {
  const std::lock_guard<std::mutex> lock(write_mutex_);
  if (hung_up_) return absl::AbortedError("the connection was ended");
  DWORD written = 0;
  if (write_pending_) {
    // The last write is still pending: the peer does not read.
    if (!::GetOverlappedResult(handle(), &write_, &written, non_blocking_ ? FALSE : TRUE) &&
        ::GetLastError() == ERROR_IO_INCOMPLETE) {
      return absl::UnavailableError("send would block");
    }
    write_pending_ = false;
  }
  write_buffer_ = std::move(bytes);
  DWORD error = ERROR_SUCCESS;
  const auto write = [this, &error] {
    const auto size = static_cast<DWORD>(write_buffer_.size());
    if (!::WriteFile(handle(), write_buffer_.data(), size, nullptr, &write_)) {
      error = ::GetLastError();
    }
  };
  // A pending operation would end with the thread that began it.
  if (non_blocking_) {
    RunWhereIoLasts(write);
  } else {
    write();
  }
  if (error == ERROR_IO_PENDING) {
    if (non_blocking_) {
      write_pending_ = true;  // The system reads from our buffer; the next write would block.
      return absl::OkStatus();
    }
    const bool late = ::WaitForSingleObject(write_event_.get(), send_limit_ms_) == WAIT_TIMEOUT;
    if (late) ::CancelIoEx(handle(), &write_);
    const bool done = ::GetOverlappedResult(handle(), &write_, &written, TRUE);
    if (late && !done)
      return absl::DeadlineExceededError("the peer has not read what was sent to it");
    error = done ? ERROR_SUCCESS : ::GetLastError();
  }
  if (error == ERROR_SUCCESS) return absl::OkStatus();
  if (error == ERROR_BROKEN_PIPE || error == ERROR_NO_DATA || error == ERROR_PIPE_NOT_CONNECTED ||
      error == ERROR_OPERATION_ABORTED) {
    return absl::AbortedError("the peer has closed the connection");
  }
  return WindowsStatus(error, absl::StrCat("sending ", write_buffer_.size(), " bytes"));
}

// --- handles

void PipeEnd::MovedTo(HANDLE process) {
  if (pair_ == nullptr) return;
  const std::lock_guard<std::mutex> lock(pair_->mutex);
  pair_->holder[side_] = DuplicateHandleHere(process, PROCESS_DUP_HANDLE | SYNCHRONIZE);
}

OwnedHandle PipeEnd::OtherProcess() const {
  if (pair_ != nullptr) {
    const std::lock_guard<std::mutex> lock(pair_->mutex);
    const OwnedHandle& holder = pair_->holder[1 - side_];
    return holder.valid() ? DuplicateHandleHere(holder.get()) : OwnedHandle();
  }
  return peer_.process.valid() ? DuplicateHandleHere(peer_.process.get()) : OwnedHandle();
}

absl::Status PipeEnd::Send(const void* data, size_t size,
                           const std::vector<std::shared_ptr<HandleObject>>& objects) {
  OwnedHandle other = OtherProcess();
  const bool into_receiver = duplicates();
  HANDLE target = into_receiver && other.valid() ? other.get() : ::GetCurrentProcess();
  PipeHeader header = {kPipeMagic, into_receiver ? kInReceiver : uint16_t{0},
                       static_cast<uint16_t>(objects.size())};
  std::string packet(reinterpret_cast<const char*>(&header), sizeof(header));
  std::vector<uint64_t> made;  // In `target`: the receiver's once the message is sent.
  absl::Status status;
  for (const auto& object : objects) {
    absl::StatusOr<TravelParts> parts = PartsOf(*object, /*to_child=*/false);
    status = parts.status();
    if (!status.ok()) break;
    ObjectRecord record = {};
    record.kind = static_cast<uint32_t>(parts->kind);
    for (HANDLE handle : parts->handles) {
      HANDLE there = nullptr;
      if (!::DuplicateHandle(::GetCurrentProcess(), handle, target, &there, 0, FALSE,
                             DUPLICATE_SAME_ACCESS)) {
        status = WindowsStatus(::GetLastError(), "duplicating a handle for the peer");
        break;
      }
      record.handles[record.handle_count++] = reinterpret_cast<uintptr_t>(there);
      made.push_back(reinterpret_cast<uintptr_t>(there));
    }
    if (!status.ok()) break;
    packet.append(reinterpret_cast<const char*>(&record), sizeof(record));
  }
  packet.append(static_cast<const char*>(data), size);
  if (status.ok()) status = SendRaw(std::move(packet));
  if (!status.ok()) {
    for (const uint64_t value : made) CloseIn(target, value);
    return status;
  }
  for (const auto& object : objects) {
    if (object->kind() != HandleKind::kPipe || !into_receiver) continue;
    if (other.valid()) static_cast<PipeEnd&>(*object).MovedTo(other.get());
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> PipeEnd::Receive(void* buffer, size_t capacity, int max_objects,
                                        std::vector<std::shared_ptr<HandleObject>>* objects) {
  absl::StatusOr<std::string> packet = ReceiveRaw(!non_blocking_);
  if (!packet.ok()) return packet.status();
  if (packet->empty()) return size_t{0};
  PipeHeader header;
  if (packet->size() < sizeof(header)) return absl::InvalidArgumentError("a message cut short");
  std::memcpy(&header, packet->data(), sizeof(header));
  const size_t records_bytes = size_t{header.object_count} * sizeof(ObjectRecord);
  if (header.magic != kPipeMagic || header.object_count > kMaxDescriptorsPerMessage ||
      packet->size() < sizeof(header) + records_bytes) {
    return absl::InvalidArgumentError("a message that is none of ours");
  }
  OwnedHandle other = OtherProcess();
  const bool in_receiver = (header.flags & kInReceiver) != 0;
  // Only the end that duplicates may say that a handle is in this process.
  if (header.object_count > 0 && in_receiver && duplicates() && other.valid()) {
    return absl::InvalidArgumentError("a peer that names handles of ours");
  }
  if (header.object_count > 0 && !in_receiver && !other.valid()) {
    return absl::InvalidArgumentError("handles of a process that this one may not open");
  }
  // Owned from here, so that every refusal below closes them.
  std::vector<std::shared_ptr<HandleObject>> received;
  absl::Status refused;
  for (size_t i = 0; i < header.object_count; ++i) {
    ObjectRecord record;
    std::memcpy(&record, packet->data() + sizeof(header) + i * sizeof(record), sizeof(record));
    std::vector<OwnedHandle> handles;
    for (size_t j = 0; j < std::min<size_t>(record.handle_count, kMaxTravelHandles); ++j) {
      if (!IsPlainHandle(record.handles[j])) {
        refused = absl::InvalidArgumentError("a handle that is none");
        continue;
      }
      HANDLE here = reinterpret_cast<HANDLE>(record.handles[j]);
      if (!in_receiver &&
          !::DuplicateHandle(other.get(), here, ::GetCurrentProcess(), &here, 0, FALSE,
                             DUPLICATE_SAME_ACCESS | DUPLICATE_CLOSE_SOURCE)) {
        refused = WindowsStatus(::GetLastError(), "taking a handle of the peer's");
        continue;
      }
      handles.emplace_back(here);
    }
    absl::StatusOr<std::shared_ptr<HandleObject>> object =
        ObjectFrom(record.kind, std::move(handles), /*pulled=*/!in_receiver);
    if (object.ok()) {
      received.push_back(*std::move(object));
    } else if (refused.ok()) {
      refused = object.status();
    }
  }
  if (!refused.ok()) return absl::InvalidArgumentError(refused.message());
  if (header.object_count > max_objects) {
    return absl::InvalidArgumentError(absl::StrCat("message carries ", header.object_count,
                                                   " descriptors, at most ", max_objects,
                                                   " are taken"));
  }
  const size_t size = packet->size() - sizeof(header) - records_bytes;
  if (size > capacity) {
    return absl::InvalidArgumentError(absl::StrCat("message is larger than ", capacity, " bytes"));
  }
  std::memcpy(buffer, packet->data() + sizeof(header) + records_bytes, size);
  if (objects != nullptr) *objects = std::move(received);
  return size;
}

}  // namespace sluice::os

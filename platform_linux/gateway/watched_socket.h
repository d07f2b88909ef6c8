// SPDX-License-Identifier: Apache-2.0
//
// A socket and the events that an epoll set reports of it. Owner: a Connection. Thread-compatible.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <utility>

#include "broker/os/scoped_handle.h"

namespace sluice::gateway {

class Connection;

// The data of an epoll event points to one.
struct EventSource {
  Connection* connection = nullptr;  // Null: a listening socket.
  bool is_grpc = false;              // gRPC's end of the connection; otherwise the client's.
};

class WatchedSocket {
 public:
  explicit WatchedSocket(EventSource source) : source_(source) {}
  WatchedSocket(const WatchedSocket&) = delete;
  WatchedSocket& operator=(const WatchedSocket&) = delete;

  void Set(os::UniqueFd socket) { socket_ = std::move(socket); }
  int fd() const { return socket_.get(); }

  // Adds it to `epoll`, with the events of the last Await, or `EPOLLIN`.
  bool Watch(int epoll) {
    epoll_event event = EventFor(events_);
    watched_ = ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd(), &event) == 0;
    epoll_ = epoll;
    return watched_;
  }
  void Unwatch() {
    ::epoll_ctl(epoll_, EPOLL_CTL_DEL, fd(), nullptr);
    watched_ = false;
  }
  // From now on these events are reported, if it is watched.
  void Await(uint32_t events) {
    if (!watched_ || events == events_) return;
    events_ = events;
    epoll_event event = EventFor(events);
    ::epoll_ctl(epoll_, EPOLL_CTL_MOD, fd(), &event);
  }

 private:
  epoll_event EventFor(uint32_t events) { return {.events = events, .data = {.ptr = &source_}}; }

  os::UniqueFd socket_;
  EventSource source_;
  int epoll_ = -1;
  uint32_t events_ = EPOLLIN;
  bool watched_ = false;
};

}  // namespace sluice::gateway

// SPDX-License-Identifier: Apache-2.0
// A GL object of the application as the sharing core sees one: staged through a buffer of the GL's
// (gl_holding.h), or copied to and from memory of the worker that is imported as one (gl_shadow.h).
// Owned by the SharedObject of a memory object; lets go of its holding on the GL thread.
#pragma once

#include <functional>
#include <memory>

#include "client_icd/sharing/core/native_object.h"
#include "client_icd/sharing/gl/gl_holding.h"
#include "client_icd/sharing/gl/gl_shadow.h"
#include "client_icd/sharing/gl/gl_share.h"

namespace sluice::client::sharing {

class GlObject final : public NativeObject {
 public:
  // Asks on the GL thread for the object, and waits. `hold` is one of the functions of
  // gl_holding.h.
  using Hold = std::function<cl_int(GlContexts&, std::unique_ptr<GlHolding>*)>;
  static cl_int Make(std::shared_ptr<GlShare> share, Hold hold, std::unique_ptr<GlObject>* out);
  ~GlObject() override;

  // Any thread; constant.
  const GlDescription& about() const { return holding_->about(); }

  NativeKey key() const override;
  NativeThread& thread() override { return share_->thread(); }
  absl::Duration timeout() const override { return kGlPatience; }
  cl_int Fetch(uint8_t* packed, absl::Time deadline) override;
  cl_int Store(const uint8_t* packed, absl::Time deadline) override;
  bool CanShadow() const override;
  absl::Status AttachShadow(ShadowMemory memory) override;
  bool CanSignal() const override;
  absl::Status AttachSemaphores(ShadowSemaphores semaphores, std::function<void()> stuck) override;
  cl_int CopyToShadow(ShadowSync sync, absl::Time deadline) override;
  cl_int CopyFromShadow(ShadowSync sync, absl::Time deadline) override;

 private:
  cl_int Copy(GlContexts& contexts, bool pack);
  void Watch(GLsync fence);
  GlObject(std::shared_ptr<GlShare> share, std::unique_ptr<GlHolding> holding)
      : share_(std::move(share)), holding_(std::move(holding)) {}

  const std::shared_ptr<GlShare> share_;
  std::unique_ptr<GlHolding> holding_;
  std::shared_ptr<GlShadow> shadow_;  // Set by AttachShadow; used on the GL thread.
  std::function<void()> stuck_;       // Set by AttachSemaphores.
};

}  // namespace sluice::client::sharing

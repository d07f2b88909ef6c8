// SPDX-License-Identifier: Apache-2.0
// A sampler: how kernels read images. Every query is answered from the properties that it was made
// with. Keeps its context; held by the application. Immutable once the handle is given out, hence
// thread-safe.
#pragma once

#include "client_icd/base/args.h"
#include "client_icd/base/object.h"
#include "client_icd/objects/context.h"
#include "client_icd/session/info.h"

namespace sluice::client {

class Sampler : public ClObject<Sampler, cl_sampler, ObjectKind::kSampler> {
 public:
  Sampler(Ref<Context> context, PropertyList properties, bool normalized,
          cl_addressing_mode addressing, cl_filter_mode filter);
  ~Sampler();

  Context& context() const { return *context_; }
  Session& session() const { return context_->session(); }

  // The worker has made it: from now on it is released on the wire too. Before the handle is given
  // out.
  void SetMade() { made_ = true; }

  cl_int GetInfo(cl_sampler_info param_name, const InfoSink& sink);

 private:
  const Ref<Context> context_;
  const PropertyList properties_;
  const bool normalized_;
  const cl_addressing_mode addressing_;
  const cl_filter_mode filter_;
  bool made_ = false;
};

}  // namespace sluice::client

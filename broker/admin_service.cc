// SPDX-License-Identifier: Apache-2.0
#include "broker/admin_service.h"

#include <grpc/support/log.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include <chrono>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "broker/admin_listener.h"
#include "broker/base/log.h"
#include "broker/base/shown_text.h"
#include "broker/base/version.h"
#include "broker/os/this_process.h"
#include "proto/admin.grpc.pb.h"

namespace sluice::broker {
namespace {

constexpr int kMaxRequestBytes = 64 * 1024;
constexpr int kMaxThreads = 8;

grpc::Status ToGrpc(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

void Describe(const ListenerConfig& config, v1::Listener* listener) {
  listener->set_tenant(config.tenant);
  listener->set_path(ShownText(config.path));
  listener->set_mode(config.mode);
  listener->set_group(config.group);
  for (const std::string& user : config.users) listener->add_users(user);
  listener->set_share(config.share);
  listener->set_interactive_percent(config.interactive_percent);
  listener->set_max_sessions(config.limits.max_sessions);
  listener->set_max_connections(config.limits.max_connections);
  listener->set_memory_bytes_per_session(config.limits.memory_bytes);
  listener->set_device_memory(config.limits.device_memory);
  listener->set_max_resources(config.limits.max_resources);
  listener->set_max_resource_bytes(config.limits.max_resource_bytes);
}

// Checks nothing: CheckListener does.
ListenerConfig ConfigOf(const v1::Listener& listener) {
  ListenerConfig config;
  config.tenant = listener.tenant();
  config.path = listener.path();
  config.mode = listener.mode();
  config.group = listener.group();
  config.users = {listener.users().begin(), listener.users().end()};
  if (listener.share() != 0) config.share = listener.share();
  config.interactive_percent = listener.interactive_percent();
  config.limits.max_sessions = listener.max_sessions();
  config.limits.max_connections = listener.max_connections();
  config.limits.memory_bytes = listener.memory_bytes_per_session();
  config.limits.device_memory = listener.device_memory();
  config.limits.max_resources = listener.max_resources();
  config.limits.max_resource_bytes = listener.max_resource_bytes();
  return config;
}

// The calls that only show. A monitor is refused every call that is not here, new ones included.
class MonitorService : public v1::Admin::Service {
 public:
  MonitorService(BrokerControl* control, AdminListener* listener, const AdminSocket& socket)
      : control_(control), listener_(listener), admin_name_(socket.admin_name) {}

  grpc::Status Status(grpc::ServerContext* context, const v1::StatusRequest*,
                      v1::StatusReply* reply) override {
    if (grpc::Status admitted = listener_->Admit(context); !admitted.ok()) return admitted;
    const absl::StatusOr<BrokerStatus> status = control_->GetStatus();
    if (!status.ok()) return ToGrpc(status.status());
    const absl::StatusOr<std::vector<SessionInfo>> sessions = control_->ListSessions();
    const Probe::Summary snapshot = control_->GetSnapshot();
    reply->set_version(kVersion);
    reply->set_pid(os::ProcessId());
    reply->set_uptime_seconds(status->uptime_seconds);
    reply->set_draining(status->draining);
    for (const std::string& endpoint : status->endpoints) reply->add_endpoints(endpoint);
    reply->set_config_file(status->config_file);
    reply->set_session_count(sessions.ok() ? sessions->size() : 0);
    reply->set_session_limit(status->session_limit);
    reply->set_snapshot_bytes(snapshot.bytes.size());
    reply->set_device_problem(snapshot.problem);
    reply->set_worker_user(status->worker_user);
    reply->set_control_groups(status->control_groups);
    reply->set_control_groups_advice(status->control_groups_advice);
    reply->set_worker_sandbox(status->worker_sandbox);
    return grpc::Status::OK;
  }

  grpc::Status ListSessions(grpc::ServerContext* context, const v1::ListSessionsRequest*,
                            v1::ListSessionsReply* reply) override {
    if (grpc::Status admitted = listener_->Admit(context); !admitted.ok()) return admitted;
    const absl::StatusOr<std::vector<SessionInfo>> sessions = control_->ListSessions();
    if (!sessions.ok()) return ToGrpc(sessions.status());
    for (const SessionInfo& info : *sessions) {
      v1::SessionEntry* entry = reply->add_sessions();
      entry->set_session_id(info.id);
      // A client may call itself anything; a proto3 string may hold UTF-8 only.
      entry->set_identity(ShownText(info.tenant.user));
      entry->set_process_name(ShownText(info.process_name));
      entry->set_client_pid(info.client_pid);
      entry->set_worker_pid(info.worker_pid);
      entry->set_age_seconds(
          static_cast<uint64_t>(absl::ToInt64Seconds(absl::Now() - info.started)));
      entry->set_ending(info.ending);
      entry->set_memory_bytes(info.memory_bytes);
      entry->set_object_count(info.object_count);
      entry->set_commands_executed(info.commands_executed);
      entry->set_context_count(info.context_count);
      entry->set_imported_objects(info.imported_objects);
      entry->set_shadowed_objects(info.shadowed_objects);
      entry->set_staged_objects(info.staged_objects);
      entry->set_shadows_by_semaphores(info.shadows_by_semaphores);
      entry->set_shadows_by_keyed_mutex(info.shadows_by_keyed_mutex);
      entry->set_device_name(ShownText(info.device_name));
      entry->set_tenant(ShownText(info.tenant.account.name));
      entry->set_domain(ShownText(info.tenant.domain.name));
      entry->set_share(info.tenant.account.share);
      entry->set_turns(info.turns.state);
      entry->set_turns_had(info.turns.turns);
      entry->set_turns_waited_us(info.turns.waited_us);
      entry->set_shares(info.turns.shares);
      entry->set_device_time_us(info.turns.device_us);
      entry->set_granted_bytes(info.granted_bytes);
      entry->set_account_memory_limit(info.account_memory_limit);
      entry->set_pool_id(info.pool);
      entry->set_no_pool(info.no_pool);
    }
    return grpc::Status::OK;
  }

  grpc::Status ListAccounts(grpc::ServerContext* context, const v1::ListAccountsRequest*,
                            v1::ListAccountsReply* reply) override {
    if (grpc::Status admitted = listener_->Admit(context); !admitted.ok()) return admitted;
    const absl::StatusOr<std::vector<AccountQuotas>> accounts = control_->ListAccounts();
    if (!accounts.ok()) return ToGrpc(accounts.status());
    for (const AccountQuotas& account : *accounts) {
      v1::AccountEntry* entry = reply->add_accounts();
      entry->set_account(ShownText(account.account));
      entry->set_share(account.share);
      for (const QuotaUse& use : account.quotas) {
        v1::QuotaEntry* quota = entry->add_quotas();
        quota->set_name(wire::QuotaName(use.kind));
        quota->set_counted(use.used.has_value());
        quota->set_used(use.used.value_or(0));
        quota->set_limit(use.limit);
      }
    }
    return grpc::Status::OK;
  }

  grpc::Status ListResources(grpc::ServerContext* context, const v1::ListResourcesRequest*,
                             v1::ListResourcesReply* reply) override {
    if (grpc::Status admitted = listener_->Admit(context); !admitted.ok()) return admitted;
    const absl::StatusOr<std::vector<ResourceInfo>> resources = control_->ListResources();
    if (!resources.ok()) return ToGrpc(resources.status());
    for (const ResourceInfo& info : *resources) {
      v1::ResourceEntry* entry = reply->add_resources();
      entry->set_resource_id(info.id);
      entry->set_identity(ShownText(info.identity));
      entry->set_label(ShownText(info.label));
      entry->set_image(info.image);
      entry->set_size_bytes(info.size_bytes);
      entry->set_backing(BackingName(info.backing));
      entry->set_users(info.users);
      entry->set_readers(info.state.readers);
      entry->set_writer(info.state.writer);
      entry->set_waiting(info.state.waiting);
      entry->set_watches(info.watches);
      entry->set_indeterminate(info.state.indeterminate);
      entry->set_destroyed(info.state.destroyed);
      entry->set_left_open(info.left_open);
      entry->set_generation(info.state.generation);
    }
    return grpc::Status::OK;
  }

  grpc::Status ListDevices(grpc::ServerContext* context, const v1::ListDevicesRequest*,
                           v1::ListDevicesReply* reply) override {
    if (grpc::Status admitted = listener_->Admit(context); !admitted.ok()) return admitted;
    Probe::Summary snapshot = control_->GetSnapshot();
    reply->set_snapshot(std::move(snapshot.bytes));
    reply->set_problem(snapshot.problem);
    return grpc::Status::OK;
  }

  grpc::Status ListListeners(grpc::ServerContext* context, const v1::ListListenersRequest*,
                             v1::ListListenersReply* reply) override {
    if (grpc::Status admitted = listener_->Admit(context); !admitted.ok()) return admitted;
    const absl::StatusOr<std::vector<ListenerInfo>> listeners = control_->ListListeners();
    if (!listeners.ok()) return ToGrpc(listeners.status());
    const absl::StatusOr<std::vector<SessionInfo>> sessions = control_->ListSessions();
    if (!sessions.ok()) return ToGrpc(sessions.status());
    std::map<std::string, uint64_t> counts;
    for (const SessionInfo& session : *sessions) ++counts[session.tenant.account.name];
    for (const ListenerInfo& info : *listeners) {
      v1::ListenerEntry* entry = reply->add_listeners();
      Describe(info.config, entry->mutable_listener());
      entry->set_from_file(info.from_file);
      entry->set_connections(info.connections);
      entry->set_sessions(counts[TenantAccountName(info.config.tenant)]);
    }
    return grpc::Status::OK;
  }

  grpc::Status AddListener(grpc::ServerContext* context, const v1::AddListenerRequest*,
                           v1::AddListenerReply*) override {
    return Refuse(context, "makes no listener");
  }

  grpc::Status RemoveListener(grpc::ServerContext* context, const v1::RemoveListenerRequest*,
                              v1::RemoveListenerReply*) override {
    return Refuse(context, "removes no listener");
  }

  grpc::Status KillSession(grpc::ServerContext* context, const v1::KillSessionRequest*,
                           v1::KillSessionReply*) override {
    return Refuse(context, "ends no session");
  }

  grpc::Status Drain(grpc::ServerContext* context, const v1::DrainRequest*,
                     v1::DrainReply*) override {
    return Refuse(context, "drains no daemon");
  }

 protected:
  BrokerControl* const control_;
  AdminListener* const listener_;

 private:
  grpc::Status Refuse(grpc::ServerContext* context, const char* what) {
    if (grpc::Status admitted = listener_->Admit(context); !admitted.ok()) return admitted;
    return grpc::Status(grpc::StatusCode::PERMISSION_DENIED,
                        absl::StrCat("the monitor socket only shows, and ", what,
                                     ": that is for who may open the admin socket, ", admin_name_));
  }

  const std::string admin_name_;
};

class AdminService final : public MonitorService {
 public:
  using MonitorService::MonitorService;

  grpc::Status KillSession(grpc::ServerContext* context, const v1::KillSessionRequest* request,
                           v1::KillSessionReply*) override {
    if (grpc::Status admitted = listener_->Admit(context); !admitted.ok()) return admitted;
    return ToGrpc(control_->KillSession(request->session_id(), request->reason()));
  }

  grpc::Status AddListener(grpc::ServerContext* context, const v1::AddListenerRequest* request,
                           v1::AddListenerReply* reply) override {
    if (grpc::Status admitted = listener_->Admit(context); !admitted.ok()) return admitted;
    ListenerConfig listener = ConfigOf(request->listener());
    const absl::Status added = control_->AddListener(&listener);
    reply->set_path(listener.path);
    return ToGrpc(added);
  }

  grpc::Status RemoveListener(grpc::ServerContext* context,
                              const v1::RemoveListenerRequest* request,
                              v1::RemoveListenerReply*) override {
    if (grpc::Status admitted = listener_->Admit(context); !admitted.ok()) return admitted;
    return ToGrpc(control_->RemoveListener(request->tenant(), request->end_sessions()));
  }

  grpc::Status Drain(grpc::ServerContext* context, const v1::DrainRequest* request,
                     v1::DrainReply* reply) override {
    if (grpc::Status admitted = listener_->Admit(context); !admitted.ok()) return admitted;
    const absl::StatusOr<uint64_t> left =
        control_->Drain(static_cast<int64_t>(request->timeout_ms()));
    if (!left.ok()) return ToGrpc(left.status());
    reply->set_sessions_left(*left);
    return grpc::Status::OK;
  }
};

// gRPC's own lines, in our format and at our levels.
void LogForGrpc(gpr_log_func_args* args) {
  const LogLevel level = args->severity == GPR_LOG_SEVERITY_ERROR  ? LogLevel::kError
                         : args->severity == GPR_LOG_SEVERITY_INFO ? LogLevel::kDebug
                                                                   : LogLevel::kTrace;
  Log(level, "grpc", args->message);
}

class GrpcAdminServer final : public AdminServer {
 public:
  GrpcAdminServer(std::unique_ptr<AdminListener> listener, const AdminSocket& socket,
                  BrokerControl* control)
      : listener_(std::move(listener)) {
    if (socket.role == AdminRole::kAdministrator) {
      service_ = std::make_unique<AdminService>(control, listener_.get(), socket);
    } else {
      service_ = std::make_unique<MonitorService>(control, listener_.get(), socket);
    }
  }

  ~GrpcAdminServer() override {
    if (server_ == nullptr) return;
    // Running requests notice that the broker stops, and return; the deadline cuts off idle
    // streams.
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(500));
    server_.reset();
  }

  absl::Status Listen() {
    grpc::ServerBuilder builder;
    grpc::ResourceQuota quota;
    quota.SetMaxThreads(kMaxThreads);
    builder.SetResourceQuota(quota);
    builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
    builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::MIN_POLLERS, 1);
    builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::MAX_POLLERS, 2);
    builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::NUM_CQS, 1);
    builder.RegisterService(service_.get());
    absl::StatusOr<std::unique_ptr<grpc::Server>> server = listener_->Start(&builder);
    if (!server.ok()) return server.status();
    server_ = *std::move(server);
    return absl::OkStatus();
  }

 private:
  const std::unique_ptr<AdminListener> listener_;
  std::unique_ptr<MonitorService> service_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<AdminServer>> AdminServer::Start(EventLoop* loop,
                                                                const AdminSocket& socket,
                                                                BrokerControl* control) {
  gpr_set_log_function(LogForGrpc);
  grpc::EnableDefaultHealthCheckService(true);
  absl::StatusOr<std::unique_ptr<AdminListener>> listener = AdminListener::Create(loop, socket);
  if (!listener.ok()) return listener.status();
  auto server = std::make_unique<GrpcAdminServer>(*std::move(listener), socket, control);
  if (absl::Status listening = server->Listen(); !listening.ok()) return listening;
  return std::unique_ptr<AdminServer>(std::move(server));
}

}  // namespace sluice::broker

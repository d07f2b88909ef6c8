// SPDX-License-Identifier: Apache-2.0
//
// A client's and an operator's answers from the broker, with real processes.
#include <errno.h>
#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "broker/os/local_socket.h"
#include "broker/os/peer_identity.h"
#include "broker/os/shared_memory.h"
#include "proto/admin.grpc.pb.h"
#include "proto/quota_messages.h"
#include "tests/unit/broker/broker_process.h"

namespace sluice::broker {
namespace {

class SessionTest : public testing::Test {
 protected:
  TestDirectory directory_;
};

class AdminClient {
 public:
  explicit AdminClient(const BrokerProcess& broker)
      : stub_(v1::Admin::NewStub(grpc::CreateChannel("unix:" + broker.admin_socket(),
                                                     grpc::InsecureChannelCredentials()))) {}

  v1::ListSessionsReply List() {
    v1::ListSessionsReply reply;
    grpc::ClientContext context;
    SetDeadline(&context);
    const grpc::Status status = stub_->ListSessions(&context, {}, &reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return reply;
  }

  grpc::StatusCode Kill(uint64_t id) {
    v1::KillSessionRequest request;
    request.set_session_id(id);
    request.set_reason("because");
    v1::KillSessionReply reply;
    grpc::ClientContext context;
    SetDeadline(&context);
    return stub_->KillSession(&context, request, &reply).error_code();
  }

  v1::Admin::Stub& stub() { return *stub_; }

  static void SetDeadline(grpc::ClientContext* context) {
    context->set_deadline(std::chrono::system_clock::now() +
                          std::chrono::milliseconds(kTestTimeoutMs));
  }

 private:
  std::unique_ptr<v1::Admin::Stub> stub_;
};

// A client is told what its own account has and may have, as operators are; and only if it has said
// that it will ask.
TEST_F(SessionTest, QuotasAreTold) {
  BrokerProcess broker(directory_, {.config = "[limits]\nmax_sessions_per_user = 5\n"
                                              "objects_per_session = 7\n"
                                              "device_memory_per_account = \"1MiB\"\n"
                                              "[resources]\nmax_resources_per_user = 3\n"});
  TestClient client(broker.socket());
  auto hello = wire::MakeMessage<wire::Hello>();
  wire::SetString(hello.features, wire::kFeatureQuotas);
  wire::Welcome welcome;
  os::UniqueFd snapshot;
  ASSERT_TRUE(client.Send(hello) && client.Receive(&welcome, &snapshot));
  EXPECT_TRUE(wire::HasFeature(welcome.features, wire::kFeatureQuotas)) << welcome.features;
  wire::SessionOpened opened;
  const os::UniqueFd session = client.Open(&opened);
  ASSERT_TRUE(session.valid());
  wire::Quotas told;
  ASSERT_TRUE(client.Send(wire::MakeMessage<wire::AskQuotas>()) && client.Receive(&told));
  EXPECT_EQ(std::string(told.account), "uid:" + std::to_string(::geteuid()));
  const auto is = [&](wire::QuotaKind kind, std::optional<uint64_t> used, uint64_t limit) {
    for (uint32_t i = 0; i < told.count; ++i) {
      const wire::Quota& quota = told.quotas[i];
      if (quota.kind != static_cast<uint32_t>(kind)) continue;
      EXPECT_EQ(quota.counted, used.has_value() ? 1u : 0u) << wire::QuotaName(kind);
      EXPECT_EQ(quota.used, used.value_or(0)) << wire::QuotaName(kind);
      EXPECT_EQ(quota.limit, limit) << wire::QuotaName(kind);
      return;
    }
    ADD_FAILURE() << "nothing about " << wire::QuotaName(kind);
  };
  is(wire::QuotaKind::kSessions, 1, 5);
  is(wire::QuotaKind::kConnections, 1, 512);
  is(wire::QuotaKind::kObjects, std::nullopt, 35);
  is(wire::QuotaKind::kDeviceMemory, 0, 1 << 20);
  is(wire::QuotaKind::kResources, 0, 3);
  is(wire::QuotaKind::kResourceBytes, 0, 4ULL << 30);

  v1::ListAccountsReply reply;
  grpc::ClientContext context;
  AdminClient::SetDeadline(&context);
  ASSERT_TRUE(AdminClient(broker).stub().ListAccounts(&context, {}, &reply).ok());
  ASSERT_EQ(reply.accounts_size(), 1);
  EXPECT_EQ(reply.accounts(0).account(), told.account);
  EXPECT_EQ(reply.accounts(0).quotas_size(), static_cast<int>(told.count));

  TestClient other(broker.socket());
  ASSERT_TRUE(other.Greet(&welcome, &snapshot));
  ASSERT_TRUE(other.Send(wire::MakeMessage<wire::AskQuotas>()));
  EXPECT_TRUE(other.IsClosedByPeer());
}

// The Welcome carries the probe's bytes, frozen, and the features that both sides have.
TEST_F(SessionTest, WelcomeCarriesTheSnapshot) {
  BrokerProcess broker(directory_, {});
  TestClient client(broker.socket());
  wire::Welcome welcome;
  os::UniqueFd snapshot;
  ASSERT_TRUE(client.Greet(&welcome, &snapshot));
  EXPECT_EQ(welcome.status, 0);
  EXPECT_STREQ(welcome.message, "");
  EXPECT_STREQ(welcome.features, "sync");
  EXPECT_EQ(*os::ReadSealedCopy(snapshot.get(), 4096), "stand-in snapshot");
  EXPECT_EQ(welcome.snapshot_size, std::string("stand-in snapshot").size());
  EXPECT_LT(::pwrite(snapshot.get(), "x", 1, 0), 0);
}

// A session's worker gets its limits as arguments, four descriptors, a scrubbed environment, no
// rights.
TEST_F(SessionTest, WorkerIsConfined) {
  BrokerProcess broker(directory_, {.arguments = {"--devices", "A*", "--devices", "B*"},
                                    .config = "[limits]\nmemory_bytes_per_session = \"1MiB\"\n"
                                              "[worker.environment]\nEXTRA = \"given\"\n"});
  TestClient client(broker.socket());
  wire::Welcome welcome;
  ASSERT_TRUE(client.Greet(&welcome));
  wire::SessionOpened opened;
  const os::UniqueFd channel = client.Open(&opened, wire::kOpenSessionSync);
  ASSERT_TRUE(channel.valid());
  EXPECT_EQ(opened.request_id, 4711u);
  EXPECT_NE(opened.session_id, 0u);
  EXPECT_EQ(opened.max_memory_bytes, 1u << 20);
  const std::string text = DescribeWorker(channel.get());
  for (const char* line : {"arg --limit-memory=1048576\n", "arg --sync=1\n", "arg --devices=A*\n",
                           "arg --devices=B*\n", "arg --turns=auto\n", "env EXTRA=given\n",
                           "fd 0\nfd 1\nfd 2\nfd 3\nfd 4\nfd 5\nfd 6\nuid", "no_new_privs 1\n",
                           "session_leader 1\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << "missing " << line << " in\n" << text;
  }
  EXPECT_EQ(text.find("SLUICE_TEST_SECRET"), std::string::npos);
  EXPECT_EQ(text.find("NOTIFY_SOCKET"), std::string::npos);
}

// A daemon of root's starts workers as the user that the configuration names.
TEST_F(SessionTest, WorkerRunsAsTheConfiguredUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root's daemon can change its workers' user";
  const auto nobody = os::LookUpUser("nobody");
  ASSERT_TRUE(nobody.ok());
  if (!CanRunDaemon(*nobody)) GTEST_SKIP() << kUnreachable;
  BrokerProcess broker(directory_, {.arguments = {"--worker-user", "nobody"}, .same_user = false});
  TestClient client(broker.socket());
  wire::Welcome welcome;
  ASSERT_TRUE(client.Greet(&welcome));
  wire::SessionOpened opened;
  const os::UniqueFd channel = client.Open(&opened);
  EXPECT_NE(DescribeWorker(channel.get()).find("uid " + std::to_string(nobody->uid) + "\n"),
            std::string::npos);
}

// Root's daemon gives every identity's workers a user of their own, and their cache belongs to it.
TEST_F(SessionTest, EveryIdentityHasAUserOfItsOwn) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root's daemon can change its workers' user";
  const auto nobody = os::LookUpUser("nobody");
  ASSERT_TRUE(nobody.ok());
  if (!CanRunDaemon(*nobody)) GTEST_SKIP() << kUnreachable;
  ASSERT_EQ(::chmod(directory_.path().c_str(), 0755), 0);
  const std::string cache = directory_.path() + "/cache";
  ASSERT_EQ(::mkdir(cache.c_str(), 0755), 0);
  BrokerProcess broker(directory_, {.config = "[worker]\ncache_directory = \"" + cache + "\"\n",
                                    .same_user = false});
  std::set<std::string> uids;
  for (const uid_t uid : {uid_t{0}, nobody->uid}) {
    ASSERT_EQ(::seteuid(uid), 0);  // SO_PEERCRED tells the user that connects.
    TestClient client(broker.socket());
    ASSERT_EQ(::seteuid(0), 0);
    wire::Welcome welcome;
    ASSERT_TRUE(client.Greet(&welcome));
    for (int i = 0; i < 2; ++i) {  // The same user both times.
      wire::SessionOpened opened;
      const os::UniqueFd channel = client.Open(&opened);
      const std::string text = DescribeWorker(channel.get());
      const size_t at = text.find("uid ");
      ASSERT_NE(at, std::string::npos) << text;
      EXPECT_NE(text.find("arg --limit-cache-bytes=1073741824\n"), std::string::npos) << text;
      uids.insert(text.substr(at, text.find('\n', at) - at));
    }
    struct stat info;
    ASSERT_EQ(::stat((cache + "/uid-" + std::to_string(uid)).c_str(), &info), 0);
    EXPECT_TRUE(uids.contains("uid " + std::to_string(info.st_uid)));
    EXPECT_EQ(info.st_mode & 0777, 0700u);
  }
  EXPECT_EQ(uids.size(), 2u);
  EXPECT_FALSE(uids.contains("uid 0"));
}

// Sessions are processes of their own with different ids; the limit refuses, and an end makes room.
TEST_F(SessionTest, LimitsHold) {
  BrokerProcess broker(directory_,
                       {.arguments = {}, .config = "[limits]\nmax_sessions_per_user = 2\n"});
  TestClient client(broker.socket());
  wire::Welcome welcome;
  ASSERT_TRUE(client.Greet(&welcome));
  EXPECT_EQ(welcome.session_limit, 2u);
  wire::SessionOpened first;
  wire::SessionOpened second;
  wire::SessionOpened third;
  os::UniqueFd first_channel = client.Open(&first);
  const os::UniqueFd second_channel = client.Open(&second);
  ASSERT_TRUE(first_channel.valid() && second_channel.valid());
  EXPECT_NE(first.session_id, second.session_id);
  EXPECT_FALSE(client.Open(&third).valid());
  EXPECT_EQ(third.status, EMFILE);
  EXPECT_NE(std::string(third.message).find("max_sessions_per_user"), std::string::npos);
  EXPECT_EQ(third.session_id, 0u);
  // Another connection of the same user is no way around it.
  TestClient other(broker.socket());
  ASSERT_TRUE(other.Greet(&welcome));
  EXPECT_FALSE(other.Open(&third).valid());
  ASSERT_EQ(::shutdown(first_channel.get(), SHUT_WR), 0);
  ASSERT_TRUE(WaitForEndOfFile(first_channel.get()));
  // The broker sees the exit a moment after we see the end of file: ask until it has.
  os::UniqueFd channel;
  for (int i = 0; i < 10'000 && !channel.valid(); ++i) channel = client.Open(&third);
  EXPECT_TRUE(channel.valid());
}

// A user who is not on the list is told so, and gets no snapshot and no session.
TEST_F(SessionTest, StrangersAreRefused) {
  const std::string other = ::getuid() == 4242 ? "4243" : "4242";
  BrokerProcess broker(directory_,
                       {.arguments = {}, .config = "[access]\nusers = [" + other + "]\n"});
  TestClient client(broker.socket());
  wire::Welcome welcome;
  os::UniqueFd snapshot;
  ASSERT_TRUE(client.Greet(&welcome, &snapshot));
  EXPECT_EQ(welcome.status, EACCES);
  EXPECT_STRNE(welcome.message, "");
  EXPECT_FALSE(snapshot.valid());
  EXPECT_TRUE(client.IsClosedByPeer());
}

// When a client is gone, its worker is ended within the grace, even if it does not want to.
TEST_F(SessionTest, DeadClientsWorkersAreEnded) {
  BrokerProcess broker(
      directory_,
      {.arguments = {}, .config = "[broker]\nkill_grace_ms = 50\n", .worker_mode = "ignore"});
  wire::SessionOpened opened;
  os::UniqueFd channel;
  {
    TestClient client(broker.socket());
    wire::Welcome welcome;
    ASSERT_TRUE(client.Greet(&welcome));
    channel = client.Open(&opened);
    ASSERT_TRUE(channel.valid());
  }
  EXPECT_TRUE(WaitForEndOfFile(channel.get()));
}

// A client may close one of its sessions: that worker must end within the grace even if it does not
// want to, and no other of the client's; nobody else's id does anything.
TEST_F(SessionTest, ClosedSessionsWorkerIsEnded) {
  BrokerProcess broker(
      directory_,
      {.arguments = {}, .config = "[broker]\nkill_grace_ms = 50\n", .worker_mode = "ignore"});
  TestClient client(broker.socket());
  TestClient stranger(broker.socket());
  wire::Welcome welcome;
  ASSERT_TRUE(client.Greet(&welcome));
  ASSERT_TRUE(stranger.Greet(&welcome));
  wire::SessionOpened first;
  wire::SessionOpened second;
  os::UniqueFd first_channel = client.Open(&first);
  os::UniqueFd second_channel = client.Open(&second);
  ASSERT_TRUE(first_channel.valid() && second_channel.valid());
  auto close = wire::MakeMessage<wire::CloseSession>();
  close.session_id = second.session_id;
  ASSERT_TRUE(os::SendMessage(stranger.socket(), &close, sizeof(close)).ok());
  close.session_id = first.session_id;
  ASSERT_TRUE(os::SendMessage(client.socket(), &close, sizeof(close)).ok());
  EXPECT_TRUE(WaitForEndOfFile(first_channel.get()));
  // Both were handled before this is answered, and the grace of the other is over with the first's.
  wire::SessionOpened third;
  EXPECT_TRUE(client.Open(&third).valid());
  EXPECT_FALSE(os::WaitReadable(second_channel.get(), 0).ok());
}

// A child that a dead client left behind does not keep the client's session.
TEST_F(SessionTest, ForkedChildDoesNotKeepTheSession) {
  auto pair = os::CreateSocketPair();
  ASSERT_TRUE(pair.ok());
  const auto identity = os::GetPeerIdentity(pair->first.get());
  ASSERT_TRUE(identity.ok());
  if (!identity->pidfd.valid()) GTEST_SKIP() << "this kernel has no SO_PEERPIDFD (Linux 6.5)";
  BrokerProcess broker(
      directory_,
      {.arguments = {}, .config = "[broker]\nkill_grace_ms = 50\n", .worker_mode = "ignore"});
  const pid_t client_pid = ::fork();
  if (client_pid == 0) {
    TestClient client(broker.socket());
    wire::Welcome welcome;
    wire::SessionOpened opened;
    if (!client.Greet(&welcome)) ::_exit(1);
    const os::UniqueFd channel = client.Open(&opened);
    const int fd = channel.get();
    if (::fork() == 0) {
      // Keeps every descriptor of its dead parent until the test lets go of it.
      pair->first.reset();
      char byte;
      [[maybe_unused]] const auto ended =
          os::ReceiveMessage(pair->second.get(), &byte, 1, nullptr, 0);
      ::_exit(0);
    }
    const bool sent = os::SendMessage(pair->second.get(), "x", 1, &fd, 1).ok();
    ::_exit(sent ? 0 : 2);
  }
  std::vector<os::UniqueFd> fds;
  char byte;
  ASSERT_TRUE(os::WaitReadable(pair->first.get(), kTestTimeoutMs).ok());
  ASSERT_TRUE(os::ReceiveMessage(pair->first.get(), &byte, 1, &fds, 1).ok());
  ASSERT_EQ(fds.size(), 1u);
  int status = 0;
  ASSERT_EQ(::waitpid(client_pid, &status, 0), client_pid);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(WaitForEndOfFile(fds[0].get()));
}

// An operator sees sessions with the numbers of their workers, and ends one by its id.
TEST_F(SessionTest, AdminListsAndKills) {
  BrokerProcess broker(directory_, {});
  TestClient client(broker.socket());
  wire::Welcome welcome;
  ASSERT_TRUE(client.Greet(&welcome));
  wire::SessionOpened opened;
  wire::SessionOpened other;
  const os::UniqueFd channel = client.Open(&opened);
  const os::UniqueFd other_channel = client.Open(&other);
  AdminClient admin(broker);
  const v1::ListSessionsReply list = admin.List();
  ASSERT_EQ(list.sessions_size(), 2);
  std::set<uint64_t> ids;
  for (const v1::SessionEntry& entry : list.sessions()) {
    ids.insert(entry.session_id());
    EXPECT_EQ(entry.identity(), "uid:" + std::to_string(::getuid()));
    EXPECT_EQ(entry.process_name(), "test client");
    EXPECT_EQ(entry.client_pid(), ::getpid());
    EXPECT_EQ(entry.commands_executed(), 42u);
    EXPECT_EQ(entry.device_name(), "stand-in device");
    EXPECT_EQ(entry.shadows_by_semaphores(), 3u);
    EXPECT_EQ(entry.shadows_by_keyed_mutex(), 2u);
  }
  EXPECT_EQ(ids, (std::set<uint64_t>{opened.session_id, other.session_id}));
  EXPECT_EQ(admin.Kill(opened.session_id), grpc::StatusCode::OK);
  EXPECT_TRUE(WaitForEndOfFile(channel.get()));
  EXPECT_NE(DescribeWorker(other_channel.get()), "");
  EXPECT_EQ(admin.Kill(0x1234), grpc::StatusCode::NOT_FOUND);
}

// Listing sessions does not wait for a worker that never answers.
TEST_F(SessionTest, SilentWorkerDoesNotStopTheList) {
  BrokerProcess broker(directory_, {});
  TestClient client(broker.socket());
  wire::Welcome welcome;
  ASSERT_TRUE(client.Greet(&welcome));
  wire::SessionOpened opened;
  const os::UniqueFd channel = client.Open(&opened);
  ASSERT_TRUE(channel.valid());
  AdminClient admin(broker);
  const pid_t worker = static_cast<pid_t>(admin.List().sessions(0).worker_pid());
  ASSERT_EQ(::kill(worker, SIGSTOP), 0);
  EXPECT_EQ(admin.List().sessions_size(), 1);
  // It cannot hear Terminate; the grace ends, and it with it.
  EXPECT_EQ(admin.Kill(opened.session_id), grpc::StatusCode::OK);
  EXPECT_TRUE(WaitForEndOfFile(channel.get()));
}

// Status and devices say what the daemon is and has; a drain ends it after its last session.
TEST_F(SessionTest, AdminStatusDevicesAndDrain) {
  BrokerProcess broker(directory_, {});
  TestClient client(broker.socket());
  wire::Welcome welcome;
  ASSERT_TRUE(client.Greet(&welcome));
  wire::SessionOpened opened;
  os::UniqueFd channel = client.Open(&opened);
  AdminClient admin(broker);
  v1::StatusReply status;
  {
    grpc::ClientContext context;
    AdminClient::SetDeadline(&context);
    ASSERT_TRUE(admin.stub().Status(&context, {}, &status).ok());
  }
  EXPECT_EQ(status.pid(), broker.process().pid());
  EXPECT_EQ(status.session_count(), 1u);
  EXPECT_FALSE(status.draining());
  ASSERT_EQ(status.endpoints_size(), 1);
  EXPECT_EQ(status.endpoints(0), "unix:" + broker.socket());
  v1::ListDevicesReply devices;
  {
    grpc::ClientContext context;
    AdminClient::SetDeadline(&context);
    ASSERT_TRUE(admin.stub().ListDevices(&context, {}, &devices).ok());
  }
  EXPECT_EQ(devices.snapshot(), "stand-in snapshot");
  EXPECT_EQ(devices.problem(), "");
  v1::DrainReply drained;
  {
    grpc::ClientContext context;
    AdminClient::SetDeadline(&context);
    ASSERT_TRUE(admin.stub().Drain(&context, {}, &drained).ok());
  }
  EXPECT_EQ(drained.sessions_left(), 1u);
  wire::SessionOpened refused;
  EXPECT_FALSE(client.Open(&refused).valid());
  EXPECT_EQ(refused.status, ESHUTDOWN);
  channel.reset();
  EXPECT_EQ(broker.WaitForExit().code, 0);
}

}  // namespace
}  // namespace sluice::broker

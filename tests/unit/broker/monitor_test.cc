// SPDX-License-Identifier: Apache-2.0
//
// The two sockets of operators, with a real daemon: through one all can be done, through the other
// nothing can be changed, whatever a caller says.
#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <set>
#include <string>

#include "proto/admin.grpc.pb.h"
#include "tests/unit/broker/broker_process.h"

namespace sluice::broker {
namespace {

class MonitorTest : public testing::Test {
 protected:
  static std::shared_ptr<grpc::Channel> ChannelTo(const std::string& socket) {
    return grpc::CreateChannel("unix:" + socket, grpc::InsecureChannelCredentials());
  }
  static void SetDeadline(grpc::ClientContext* context) {
    context->set_deadline(std::chrono::system_clock::now() +
                          std::chrono::milliseconds(kTestTimeoutMs));
  }
  // With an empty request, which every message can be.
  static grpc::Status Call(const std::string& socket, const std::string& method) {
    grpc::GenericStub stub(ChannelTo(socket));
    grpc::ClientContext context;
    SetDeadline(&context);
    grpc::CompletionQueue queue;
    const grpc::Slice nothing(size_t{0});
    const grpc::ByteBuffer request(&nothing, 1);
    const auto call = stub.PrepareUnaryCall(&context, method, request, &queue);
    call->StartCall();
    grpc::ByteBuffer reply;
    grpc::Status status;
    call->Finish(&reply, &status, &queue);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    return status;
  }

  TestDirectory directory_;
};

mode_t SocketModeOf(const std::string& path) {
  struct stat info = {};
  return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

// Of all the calls that there are, the monitor socket takes those that show, and refuses each other
// one with the place where it can be asked for.
TEST_F(MonitorTest, NothingIsChangedThroughIt) {
  BrokerProcess broker(directory_, {});
  const std::set<std::string> shows = {"Status",        "ListSessions", "ListAccounts",
                                       "ListResources", "ListDevices",  "ListListeners"};
  const auto* service =
      google::protobuf::DescriptorPool::generated_pool()->FindServiceByName("sluice.v1.Admin");
  ASSERT_NE(service, nullptr);
  ASSERT_GT(service->method_count(), 4);
  for (int i = 0; i < service->method_count(); ++i) {
    const std::string name = service->method(i)->name();
    const grpc::Status status = Call(broker.monitor_socket(), "/sluice.v1.Admin/" + name);
    if (shows.contains(name)) {
      EXPECT_TRUE(status.ok()) << name << ": " << status.error_message();
      continue;
    }
    EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << name;
    EXPECT_NE(status.error_message().find(broker.admin_socket()), std::string::npos)
        << name << ": " << status.error_message();
  }
  // It was not drained, and the other socket does all of it.
  TestClient client(broker.socket());
  wire::Welcome welcome;
  ASSERT_TRUE(client.Greet(&welcome));
  EXPECT_EQ(Call(broker.admin_socket(), "/sluice.v1.Admin/KillSession").error_code(),
            grpc::StatusCode::NOT_FOUND);
  EXPECT_TRUE(Call(broker.admin_socket(), "/sluice.v1.Admin/Drain").ok());
  EXPECT_EQ(broker.WaitForExit().code, 0);
}

// A running session is shown there, and goes on when its end is asked for.
TEST_F(MonitorTest, SessionsAreShown) {
  BrokerProcess broker(directory_, {});
  TestClient client(broker.socket());
  wire::Welcome welcome;
  ASSERT_TRUE(client.Greet(&welcome));
  wire::SessionOpened opened;
  const os::UniqueFd channel = client.Open(&opened);
  ASSERT_TRUE(channel.valid());
  const auto stub = v1::Admin::NewStub(ChannelTo(broker.monitor_socket()));
  v1::ListSessionsReply sessions;
  grpc::ClientContext lists;
  SetDeadline(&lists);
  ASSERT_TRUE(stub->ListSessions(&lists, {}, &sessions).ok());
  ASSERT_EQ(sessions.sessions_size(), 1);
  v1::KillSessionRequest request;
  request.set_session_id(sessions.sessions(0).session_id());
  v1::KillSessionReply reply;
  grpc::ClientContext kills;
  SetDeadline(&kills);
  EXPECT_EQ(stub->KillSession(&kills, request, &reply).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_NE(DescribeWorker(channel.get()), "");
}

// Only the daemon's own user may open either, until a group is named for the one that shows; both
// go with the daemon, and their folder stays.
TEST_F(MonitorTest, ModesAndGroup) {
  {
    BrokerProcess broker(directory_, {});
    EXPECT_EQ(SocketModeOf(broker.admin_socket()), 0600u);
    broker.Signal(SIGTERM);
    EXPECT_EQ(broker.WaitForExit().code, 0);
    EXPECT_FALSE(std::filesystem::exists(broker.admin_socket()));
    EXPECT_FALSE(std::filesystem::exists(broker.monitor_socket()));
    EXPECT_TRUE(std::filesystem::exists(directory_.path() + "/sluice-admin"));
    EXPECT_TRUE(std::filesystem::exists(directory_.path() + "/sluice/clients"));
  }
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a socket to a group of others";
  BrokerProcess broker(directory_,
                       {.arguments = {}, .config = "[broker]\nmonitor_group = \"daemon\"\n"});
  EXPECT_EQ(SocketModeOf(broker.admin_socket()), 0600u);
  EXPECT_EQ(SocketModeOf(broker.monitor_socket()), 0660u);
  struct stat info = {};
  ASSERT_EQ(::stat(broker.monitor_socket().c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 0u);
  EXPECT_EQ(info.st_gid, 1u) << "Debian's group daemon";
}

}  // namespace
}  // namespace sluice::broker

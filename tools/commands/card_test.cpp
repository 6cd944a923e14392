// Caches on a card, on a machine that has none.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuda/device/open.hpp"
#include "tools/commands/exit_status.hpp"
#include "tools/testing/command_runner.hpp"

namespace kvo::tools {
namespace {

using testing::HasSubstr;

// What is not there agrees with nothing, whatever the command.
TEST(Card, WithoutOneItsCachesAreNotSupported) {
  const auto card = cuda::card_name();
  if (card) GTEST_SKIP() << "there is a card";
  const std::string folder = testing::TempDir();
  const std::string log = (std::filesystem::path(folder) / "kvoracle_without_card.jsonl").string();
  std::ofstream(log) << R"({"kvlog":1,"contract":"layered","cache":"vector","config":{},"case":"a"}
{"op":"new","args":{"num_layers":1,"num_kv_heads":1,"head_dim":1},"ret":{"cache":0}}
)";
  const std::string subject = "layered.vector@cuda";
  for (const auto& arguments : {std::vector<std::string>{"check", subject, "--cases", "4"},
                                {"run", "--subject", subject, "--requests", "4"},
                                {"conform", "--subject", subject, log},
                                {"shrink", "--subject", subject, log}}) {
    const Finished finished = run_kvoracle(arguments, {.folder = folder});
    EXPECT_EQ(finished.status, kExitUsage) << arguments.front() << ": " << finished.out;
    EXPECT_THAT(finished.out + finished.err, HasSubstr(subject + " does not support case "));
    EXPECT_THAT(finished.out + finished.err, HasSubstr(card.error().detail)) << arguments.front();
  }
}

TEST(Card, WithoutOneTheCommandSaysSo) {
  const auto card = cuda::card_name();
  if (card) GTEST_SKIP() << "there is a card";
  EXPECT_THAT(card.error().detail, testing::StartsWith("no CUDA device: "));
  const std::string subject = "provider.contiguous@cuda";
  for (const auto& arguments : {std::vector<std::string>{"check", subject, "--cases", "4"},
                                {"run", "--subject", subject, "--requests", "4"},
                                {"bench", subject, "--quick"}}) {
    const Finished finished = run_kvoracle(arguments, {.folder = testing::TempDir()});
    EXPECT_EQ(finished.status, kExitUsage) << arguments.front();
    EXPECT_THAT(finished.err,
                testing::StartsWith("kvoracle: " + subject + ": " + card.error().detail + "\n"));
  }
}

TEST(Card, GpuCheckLooksForOneBeforeItBuilds) {
  const Finished finished =
      run_program({"/usr/bin/env", std::string(KVO_SOURCE_ROOT) + "/tools/gpu-check"},
                  {.environment = {"KVO_DEVICES=/no/such/folder"}});
  EXPECT_EQ(finished.status, kExitUsage);
  EXPECT_EQ(finished.out, "");
  EXPECT_EQ(finished.err,
            "gpu-check: no CUDA device: looked for /no/such/folder/nvidia0, /no/such/folder/dxg "
            "and a GPU in nvidia-smi -L\n");
  EXPECT_LT(finished.seconds.count(), 30);
}

}  // namespace
}  // namespace kvo::tools

#include "tools/probe/checkpoint.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "traces/io/test_files.hpp"

namespace kvo::tools {
namespace {

using Digests = std::map<std::string, std::string>;

// "SIZE CRC-32"
std::string digest_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> block(std::size_t{1} << 20U);
  uLong crc = 0;
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())), file.gcount() > 0)
    crc = ::crc32(crc, reinterpret_cast<const Bytef*>(block.data()),  // NOLINT
                  static_cast<uInt>(file.gcount()));
  return fmt::format("{} {:08x}", std::filesystem::file_size(path), crc);
}

Digests digests_of(const CheckpointOptions& options) {
  const traces::test::TempFolder folder;
  const auto total = write_checkpoint(folder.path("."), options);
  EXPECT_TRUE(total);
  Digests digests;
  std::uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path("."))) {
    bytes += entry.file_size();
    digests[entry.path().filename().string()] = digest_of(entry.path());
  }
  EXPECT_EQ(total ? *total : 0, bytes);
  return digests;
}

// Answers of models that were written before stay valid only if these bytes do.
TEST(ProbeCheckpoint, HfHasTheSameBytesEverywhere) {
  const auto model_of = [](const CheckpointOptions& options) {
    return digests_of(options).at("model.safetensors");
  };
  EXPECT_EQ(digests_of({}), (Digests{{"config.json", "503 a01404eb"},
                                     {"generation_config.json", "59 d08a661a"},
                                     {"model.safetensors", "16921712 c6fff945"},
                                     {"tokenizer.json", "58508 1ab6d63a"},
                                     {"tokenizer_config.json", "176 4327e2c2"}}));
  EXPECT_EQ(model_of({.dtype = StorageType::kF32}), "33839224 d4625652");
  EXPECT_EQ(model_of({.dtype = StorageType::kF16}), "16921680 1d35275b");
  EXPECT_EQ(model_of({.shape = {.head_dim = 128}}), "23213200 27a06d58");
  EXPECT_EQ(model_of({.dtype = StorageType::kF32, .shape = {.head_dim = 128}}),
            "46422144 6c91cf0a");
  const Digests with_window = digests_of({.shape = {.window = 256}});
  EXPECT_EQ(with_window.at("config.json"), "532 87bf9302");
  EXPECT_EQ(with_window.at("model.safetensors"), "16921712 8d8f3293");
}

TEST(ProbeCheckpoint, GgufHasTheSameBytesEverywhere) {
  const auto gguf = [](StorageType dtype, std::size_t head_dim) {
    return digests_of(
        {.format = ModelFormat::kGguf, .dtype = dtype, .shape = {.head_dim = head_dim}});
  };
  EXPECT_EQ(gguf(StorageType::kF16, 64), (Digests{{"probe.gguf", "17015072 43a0458d"}}));
  EXPECT_EQ(gguf(StorageType::kF32, 64), (Digests{{"probe.gguf", "33923360 9c1570b9"}}));
  EXPECT_EQ(gguf(StorageType::kF16, 128), (Digests{{"probe.gguf", "23306528 2c5c2782"}}));
}

TEST(ProbeCheckpoint, EveryTokenHasATextOfItsOwn) {
  std::map<std::string, probe::Token> texts;
  for (probe::Token token = 0; token < probe::Shape::kVocabulary; ++token)
    EXPECT_TRUE(texts.emplace(token_text(token), token).second) << token_text(token);
  EXPECT_EQ(token_text(probe::kBegin), "<s>");
  EXPECT_EQ(token_text(15), "<r15>");
  EXPECT_EQ(token_text(probe::kFirstByte + 10), "<0x0A>");
  EXPECT_EQ(token_text(probe::kFirstValue), "\xe4\xb8\x80");
  EXPECT_EQ(token_text(probe::kFirstPad - 1), "\xe5\xb7\xbf");
  EXPECT_EQ(token_text(probe::kFirstPad), "<pad4368>");
}

TEST(ProbeCheckpoint, AFolderThatIsNotThere) {
  const auto written = write_checkpoint("/nowhere/at/all", {});
  EXPECT_EQ(traces::test::error_text(written),
            "/nowhere/at/all/model.safetensors: cannot write: No such file or directory");
}

}  // namespace
}  // namespace kvo::tools

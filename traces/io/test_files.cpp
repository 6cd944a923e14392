#include "traces/io/test_files.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <unistd.h>
#include <zlib.h>

namespace kvo::traces::test {

namespace fs = std::filesystem;

TempFolder::TempFolder() {
  const auto* const info = testing::UnitTest::GetInstance()->current_test_info();
  const auto name = std::string("kvo-") + info->test_suite_name() + "-" + info->name() + "-" +
                    std::to_string(::getpid());
  folder_ = (fs::path(testing::TempDir()) / name).string();
  fs::remove_all(folder_);
  fs::create_directories(folder_);
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

std::string TempFolder::path(std::string_view name) const {
  return (fs::path(folder_) / name).string();
}

std::string TempFolder::write(std::string_view name, std::string_view content) const {
  std::ofstream(path(name), std::ios::binary) << content;
  return path(name);
}

std::size_t TempFolder::files() const {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
}

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string gzipped(std::string_view text) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS, 8,
                         Z_DEFAULT_STRATEGY),
            Z_OK);
  std::string packed(deflateBound(&stream, text.size()) + 32, '\0');
  std::string input(text);
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  (void)deflateEnd(&stream);
  return packed;
}

std::vector<Request> requests_in(std::string_view content, std::string_view format) {
  const auto reader = open_trace(TextSource::in_memory("t", content), format);
  EXPECT_EQ(error_text(reader), "no error");
  if (!reader) return {};
  const auto requests = read_all(**reader);
  EXPECT_EQ(error_text(requests), "no error");
  return requests ? *requests : std::vector<Request>();
}

std::string error_in(std::string_view content, std::string_view format) {
  const auto reader = open_trace(TextSource::in_memory("t", content), format);
  if (!reader) return reader.error().text();
  return error_text(read_all(**reader));
}

}  // namespace kvo::traces::test

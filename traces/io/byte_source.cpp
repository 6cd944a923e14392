#include "traces/io/byte_source.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <zlib.h>

#include "traces/io/kept_input.hpp"

namespace kvo::traces {

namespace {

constexpr std::size_t kPackedBytes = std::size_t{64} << 10;
constexpr int kGzipOnly = 16 + MAX_WBITS;
constexpr std::array<char, 2> kMagic{'\x1f', '\x8b'};

struct CloseFile {
  void operator()(std::FILE* file) const { (void)std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

class FileBytes final : public ByteSource {
 public:
  FileBytes(std::string name, File file) : name_(std::move(name)), file_(std::move(file)) {}

  TraceResult<std::size_t> read(std::span<char> out) override {
    errno = 0;
    const std::size_t got = std::fread(out.data(), 1, out.size(), file_.get());
    if (got == 0 && std::ferror(file_.get()) != 0) {
      return system_error(name_, "cannot read", errno);
    }
    return got;
  }

 private:
  std::string name_;
  File file_;
};

class MemoryBytes final : public ByteSource {
 public:
  explicit MemoryBytes(std::string_view memory) : rest_(memory) {}

  TraceResult<std::size_t> read(std::span<char> out) override {
    const std::size_t got = std::min(out.size(), rest_.size());
    if (got != 0) std::memcpy(out.data(), rest_.data(), got);
    rest_.remove_prefix(got);
    return got;
  }

 private:
  std::string_view rest_;
};

// zlib's own gzread() passes over whatever stands behind the first packed member if that does not
// look like gzip, so that a damaged second member is lost without a word. Hence inflate() by hand.
class MaybeGzip final : public ByteSource {
 public:
  MaybeGzip(std::string name, std::unique_ptr<ByteSource> raw)
      : name_(std::move(name)), raw_(std::move(raw)) {}
  MaybeGzip(const MaybeGzip&) = delete;
  MaybeGzip& operator=(const MaybeGzip&) = delete;

  ~MaybeGzip() override {
    if (state_ == State::kMember || state_ == State::kBetween) (void)inflateEnd(&stream_);
  }

  TraceResult<std::size_t> read(std::span<char> out) override {
    if (state_ == State::kUnknown) {
      if (const auto known = look_at_magic(); !known) return known.error();
    }
    while (state_ == State::kMember || state_ == State::kBetween) {
      if (state_ == State::kBetween) {
        if (const auto begun = begin_next_member(); !begun) return begun.error();
        if (state_ == State::kBetween) return std::size_t{0};
      }
      auto got = unpack(out);
      if (!got || *got != 0) return got;
    }
    return copy(out);
  }

 private:
  enum class State { kUnknown, kPlain, kMember, kBetween };

  [[nodiscard]] TraceError damaged(std::string_view message) const {
    return error_at({name_}, "gzip", {}, message);
  }

  // Makes at least `wanted` bytes of input available, or all that are left.
  TraceResult<void> refill(std::size_t wanted) {
    std::memmove(packed_.data(), packed_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    while (end_ < wanted) {
      const auto got = raw_->read(std::span(packed_).subspan(end_));
      if (!got) return got.error();
      if (*got == 0) break;
      end_ += *got;
    }
    return {};
  }

  TraceResult<void> look_at_magic() {
    if (auto filled = refill(kMagic.size()); !filled) return filled;
    if (end_ < kMagic.size() || std::memcmp(packed_.data(), kMagic.data(), kMagic.size()) != 0) {
      state_ = State::kPlain;
      return {};
    }
    if (inflateInit2(&stream_, kGzipOnly) != Z_OK) return damaged("no memory to unpack it");
    state_ = State::kMember;
    return {};
  }

  // Behind a member there may be another one, or zeros that a tape or a block device has added.
  TraceResult<void> begin_next_member() {
    for (;;) {
      while (begin_ < end_ && packed_[begin_] == '\0') ++begin_;
      if (begin_ < end_) break;
      if (auto filled = refill(1); !filled) return filled;
      if (end_ == 0) return {};
    }
    if (packed_[begin_] != kMagic[0]) {
      return damaged("the packed data are followed by something else");
    }
    (void)inflateReset(&stream_);
    state_ = State::kMember;
    return {};
  }

  // Returns 0 bytes only with the end of a member.
  TraceResult<std::size_t> unpack(std::span<char> out) {
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    const auto room = static_cast<uInt>(std::min(out.size(), std::size_t{1} << 30));
    stream_.avail_out = room;
    while (stream_.avail_out == room) {
      if (begin_ == end_) {
        if (const auto filled = refill(1); !filled) return filled.error();
        if (end_ == 0) return damaged("the packed data end too early; the file is truncated");
      }
      stream_.next_in = reinterpret_cast<Bytef*>(packed_.data() + begin_);
      stream_.avail_in = static_cast<uInt>(end_ - begin_);
      const int code = inflate(&stream_, Z_NO_FLUSH);
      begin_ = end_ - stream_.avail_in;
      if (code == Z_STREAM_END) {
        state_ = State::kBetween;
        break;
      }
      if (code != Z_OK && code != Z_BUF_ERROR) {
        const char* reason = stream_.msg == nullptr ? "cannot be unpacked" : stream_.msg;
        return damaged("the packed data are damaged: " + std::string(reason));
      }
    }
    return std::size_t{room - stream_.avail_out};
  }

  TraceResult<std::size_t> copy(std::span<char> out) {
    if (begin_ == end_) return raw_->read(out);
    const std::size_t got = std::min(out.size(), end_ - begin_);
    std::memcpy(out.data(), packed_.data() + begin_, got);
    begin_ += got;
    return got;
  }

  std::string name_;
  std::unique_ptr<ByteSource> raw_;
  State state_ = State::kUnknown;
  z_stream stream_ = {};
  std::array<char, kPackedBytes> packed_;
  std::size_t begin_ = 0;  // packed_[begin_, end_) has been read and not been used
  std::size_t end_ = 0;
};

}  // namespace

TraceResult<std::unique_ptr<ByteSource>> open_bytes(const std::string& path) {
  if (path == kStandardInput)
    if (const auto kept = keep_input(path); !kept) return kept.error();
  if (auto kept = open_kept(path)) {
    if (!*kept) return kept->error();
    return std::unique_ptr<ByteSource>(
        std::make_unique<MaybeGzip>(shown_name(path), std::move(**kept)));
  }
  // fopen() opens a directory and only read() refuses it; a check names it before.
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return system_error(path, "cannot open", EISDIR);
  }
  errno = 0;
  File file(std::fopen(path.c_str(), "rb"));
  if (file == nullptr) return system_error(path, "cannot open", errno);
  auto raw = std::make_unique<FileBytes>(path, std::move(file));
  return std::unique_ptr<ByteSource>(std::make_unique<MaybeGzip>(path, std::move(raw)));
}

std::unique_ptr<ByteSource> bytes_in_memory(std::string name, std::string_view memory) {
  return std::make_unique<MaybeGzip>(std::move(name), std::make_unique<MemoryBytes>(memory));
}

}  // namespace kvo::traces

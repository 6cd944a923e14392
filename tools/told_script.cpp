#include "tools/told_script.hpp"

#include <array>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

#include "traces/log/kvlog.hpp"

namespace kvo::tools {
namespace {

class ToldOps final : public OpStream {
 public:
  ToldOps(std::unique_ptr<OpStream> ops, int file) : ops_(std::move(ops)), file_(file) {}

  [[nodiscard]] std::optional<Op> next() override {
    auto op = ops_->next();
    if (op) {
      const std::string line = traces::step_line(*op, std::nullopt) + "\n";
      // A line that does not fit is cut there, and the script ends before it.
      [[maybe_unused]] const ssize_t written = ::write(file_, line.data(), line.size());
    }
    return op;
  }
  [[nodiscard]] const Observation* expected() const override { return ops_->expected(); }
  void saw(const Op& op, const Observation& seen, Labels& labels) override {
    ops_->saw(op, seen, labels);
  }
  [[nodiscard]] std::vector<Figure> figures() const override { return ops_->figures(); }

 private:
  std::unique_ptr<OpStream> ops_;
  int file_;
};

}  // namespace

ToldScript::ToldScript() : file_(::memfd_create("script", MFD_CLOEXEC)) {
  if (file_ < 0) throw std::system_error(errno, std::generic_category(), "memfd_create");
}

ToldScript::~ToldScript() {
  ::close(file_);
}

std::unique_ptr<OpStream> ToldScript::tell(std::unique_ptr<OpStream> ops) const {
  return std::make_unique<ToldOps>(std::move(ops), file_);
}

Script ToldScript::script(const CacheKind& kind) const {
  std::string text = traces::header_line({.kind = &kind}) + "\n";
  constexpr std::size_t kAtOnce = 1U << 16U;
  std::array<char, kAtOnce> bytes{};
  for (off_t at = 0;;) {
    const ssize_t count = ::pread(file_, bytes.data(), bytes.size(), at);
    if (count <= 0) break;
    text.append(bytes.data(), static_cast<std::size_t>(count));
    at += count;
  }
  Script script;
  auto log = traces::LogReader::in_memory("script", text, [&](auto, auto) { return &kind; });
  if (!log.next_case()) return script;
  while (const auto step = log.next_step()) {
    if (!*step) break;
    script.push_back((*step)->op);
  }
  return script;
}

}  // namespace kvo::tools

#include "tools/serving/journal.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <utility>

#include <sys/mman.h>

#include "traces/log/kvlog.hpp"

namespace kvo::tools {
namespace {

constexpr std::size_t kBytes = std::size_t{256}
                               << 20U;  // of addresses; pages come as they are used
bool closed = false;                    // NOLINT: one a process

}  // namespace

struct Journal::Memory {
  std::atomic<std::size_t> size = 0;

  std::span<char> text() {
    return {reinterpret_cast<char*>(this + 1), kBytes - sizeof *this};  // NOLINT
  }
  // A line that does not fit is left out, and so is what follows it.
  void write(const std::string& line) {
    const std::size_t at = size.load(std::memory_order_relaxed);
    if (closed || line.size() > text().size() - std::min(at, text().size())) return;
    std::ranges::copy(line, text().begin() + static_cast<std::ptrdiff_t>(at));
    size.store(at + line.size(), std::memory_order_release);
  }
};

namespace {

template <class Memory>
class WritingOps final : public OpStream {
 public:
  WritingOps(std::unique_ptr<OpStream> ops, Memory& memory)
      : ops_(std::move(ops)), memory_(memory) {}

  [[nodiscard]] std::optional<Op> next() override {
    auto op = ops_->next();
    if (op) memory_.write(traces::step_line(*op, std::nullopt) + "\n");
    return op;
  }
  [[nodiscard]] const Observation* expected() const override { return ops_->expected(); }
  void saw(const Op& op, const Observation& seen, Labels& labels) override {
    ops_->saw(op, seen, labels);
  }
  [[nodiscard]] std::vector<Figure> figures() const override { return ops_->figures(); }

 private:
  std::unique_ptr<OpStream> ops_;
  Memory& memory_;
};

}  // namespace

Journal::Journal() {
  void* memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  memory_ = new (memory) Memory;
}

Journal::~Journal() {
  (void)::munmap(memory_, kBytes);
}

std::unique_ptr<OpStream> Journal::writing(std::unique_ptr<OpStream> ops) const {
  closed = false;
  return std::make_unique<WritingOps<Memory>>(std::move(ops), *memory_);
}

Script Journal::script(const CacheKind& kind, const Setup& setup) const {
  const std::size_t size = std::min(memory_->size.load(), memory_->text().size());
  // Without a config a header would lack the members that one must have.
  const Record config = setup.config ? setup.config : Record(*kind.config, kind.config->made());
  std::string text = traces::header_line({.kind = &kind, .config = config}) + "\n";
  text.append(memory_->text().data(), size);
  Script script;
  auto log = traces::LogReader::in_memory("journal", text, [&](auto, auto) { return &kind; });
  if (!log.next_case()) return script;
  while (const auto step = log.next_step()) {
    if (!*step) break;
    script.push_back((*step)->op);
  }
  return script;
}

void Journal::close() {
  closed = true;
}

}  // namespace kvo::tools

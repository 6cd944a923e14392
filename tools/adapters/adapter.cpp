#include "tools/adapters/adapter.hpp"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include <boost/json.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "properties/runner/verdict.hpp"
#include "reference/contract/describe/parse_json.hpp"
#include "tools/adapters/child.hpp"
#include "tools/adapters/greeting.hpp"
#include "tools/adapters/refusals.hpp"
#include "tools/commands/usage.hpp"
#include "traces/log/kvlog.hpp"

namespace kvo::tools {
namespace {

namespace json = boost::json;

constexpr std::int64_t kProtocol = 1;
constexpr std::size_t kMemoryBytes = std::size_t{64} << 20U;
constexpr std::size_t kMostShown = 120;

std::string shortened(std::string_view text) {
  return std::string(text.substr(0, kMostShown)) + (text.size() > kMostShown ? "..." : "");
}

/// While it lives, tensors of JSON are in the memory, if there is one.
class TensorsIn {
 public:
  explicit TensorsIn(TensorMemory* memory) { tensor_memory = memory; }
  ~TensorsIn() { tensor_memory = nullptr; }
  TensorsIn(const TensorsIn&) = delete;
  TensorsIn& operator=(const TensorsIn&) = delete;
};

/// One program, and the process of this process that runs it.
class Adapter {
 public:
  Adapter(std::string command, const AdapterDeadlines& deadlines)
      : command_(std::move(command)), deadlines_(deadlines) {}

  /// Nothing, or how it died. Asks for a greeting where it has to be started.
  [[nodiscard]] std::optional<std::string> start() {
    if (child_ != nullptr && pid_ == getpid() && child_->lives()) return std::nullopt;
    // A copy of this process does not end the child of the original.
    // Nor does it close files whose numbers are another's by now.
    if (pid_ != getpid()) {
      (void)child_.release();   // NOLINT
      (void)memory_.release();  // NOLINT
    }
    pid_ = getpid();
    if (memory_ == nullptr) memory_ = std::make_unique<SharedMemory>(kMemoryBytes);
    child_ = std::make_unique<Child>(command_, *memory_);
    json::object hello;
    hello["protocol"] = kProtocol;
    hello["memory"] = json::object{{"file", Child::kMemoryFile}, {"bytes", memory_->bytes()}};
    json::object answer;
    if (auto death = ask({{"hello", std::move(hello)}}, deadlines_.greeting, answer)) return death;
    JsonFault fault;
    Greeting greeting;
    const json::value* said = answer.if_contains("hello");
    if (said == nullptr) return refuse("has no valid greeting: no member hello");
    if (!read_json(*said, greeting, fault)) return refuse("has no valid greeting: " + fault.text());
    if (greeting.protocol != kProtocol)
      return refuse(fmt::format("has no valid greeting: protocol: {}: this is version {}",
                                greeting.protocol, kProtocol));
    greeting_ = std::move(greeting);
    if (greeting_.stacks) child_->gives_stacks();
    return std::nullopt;
  }

  /// Sends a request with a number of its own. `answer`: the members that came back. Nothing, or
  /// how the adapter died of it. Requires  start() gave nothing.
  [[nodiscard]] std::optional<std::string> ask(json::object request,
                                               std::chrono::duration<double> deadline,
                                               json::object& answer) {
    request["id"] = ++id_;
    line_ = json::serialize(request);
    line_ += '\n';
    if (hung_) deadline = std::min(deadline, kAfterAHang);
    if (auto death = child_->ask(line_, deadline)) {
      hung_ = hung_ || death->starts_with("hung");
      last_death_ = *death;
      return death;
    }
    boost::system::error_code failure;
    json::value said = parse_json(child_->answer(), failure);
    if (failure || !said.is_object())
      return refuse(fmt::format("wrote what is no answer: {}", shortened(child_->answer())));
    answer = std::move(said.get_object());
    const json::value* id = answer.if_contains("id");
    if (id == nullptr || *id != json::value(id_))
      return refuse(fmt::format("answered request {} in the place of {}",
                                id != nullptr ? shortened(json::serialize(*id)) : "without id",
                                id_));
    if (const json::value* why = answer.if_contains("fault"))
      return refuse("says: " + shortened(why->is_string() ? std::string(why->get_string())
                                                          : json::serialize(*why)));
    return std::nullopt;
  }

  /// Ends the process: what it said is no answer.
  [[nodiscard]] std::string refuse(const std::string& problem) {
    return last_death_ = child_->refuse("its adapter " + problem);
  }
  void stop() {
    child_.reset();
    memory_.reset();
  }

  /// How its process died last.
  [[nodiscard]] const std::string& last_death() const { return last_death_; }
  [[nodiscard]] const Greeting& greeting() const { return greeting_; }
  [[nodiscard]] const AdapterDeadlines& deadlines() const { return deadlines_; }
  [[nodiscard]] SharedMemory* memory() { return greeting_.memory ? memory_.get() : nullptr; }
  /// Each session has a number of its own.
  [[nodiscard]] std::int64_t next_case() { return ++case_; }
  /// Of the child; a session of another child is over.
  [[nodiscard]] pid_t pid() const { return child_ != nullptr ? child_->pid() : -1; }

 private:
  // A script that hangs is run many times to become smaller.
  static constexpr std::chrono::duration<double> kAfterAHang{2};

  std::string command_;
  AdapterDeadlines deadlines_;
  Greeting greeting_;
  std::unique_ptr<SharedMemory> memory_;
  std::unique_ptr<Child> child_;
  pid_t pid_ = -1;  // of the process whose child it is
  std::int64_t id_ = 0;
  std::int64_t case_ = 0;
  std::string line_;
  bool hung_ = false;
  std::string last_death_;
};

json::object described(const Op& op) {
  return {{"op", op.kind().name}, {"args", write_record(op.arguments())}};
}

// Opens a case. Nothing, or how the adapter died; `refused`: why the cache does not take the setup.
std::optional<std::string> open_case(Adapter& adapter, const CacheKind& kind, const Setup& setup,
                                     std::int64_t number, std::optional<std::string>& refused) {
  if (auto death = adapter.start()) return death;
  json::object open{{"case", number},
                    {"kind", kind.name()},
                    {"profile", setup.profile == Profile::kDocumented ? "documented" : "original"},
                    {"config", setup.config ? write_record(setup.config) : json::object()}};
  json::object answer;
  if (auto death = adapter.ask({{"open", std::move(open)}}, adapter.deadlines().open, answer))
    return death;
  if (const json::value* error = answer.if_contains("error")) {
    const json::value* detail = answer.if_contains("detail");
    refused = shortened(json::serialize(detail != nullptr ? *detail : *error));
  }
  return std::nullopt;
}

/// A case in an adapter.
class AdapterSession final : public Session {
 public:
  /// `dead`: how it died already; empty: it lives.
  AdapterSession(std::shared_ptr<Adapter> adapter, const CacheKind& kind, Setup setup,
                 std::int64_t number, std::string dead)
      : adapter_(std::move(adapter)),
        kind_(kind),
        setup_(std::move(setup)),
        pid_(adapter_->pid()),
        case_(number),
        dead_(std::move(dead)),
        refusals_(kind, missing_operations(adapter_->greeting(), kind)) {}
  ~AdapterSession() override { (void)end(); }

  [[nodiscard]] Observation apply(const Op& op, Probe& probe) override {
    const HarnessWork work;
    Answer given;
    if (expected_.empty()) {
      given = asked(op);
    } else {
      given = std::move(expected_.front());
      expected_.pop_front();
    }
    probe.add_nanoseconds(given.nanoseconds);
    if (given.seen.failed_with(Code::kDied)) dead_ = given.seen.error->detail;
    return std::move(given.seen);
  }

  void expect(std::span<const Op> ops) override {
    const HarnessWork work;
    while (!ops.empty() && lives() && !repeated_) {
      std::size_t count = 0;
      while (count < ops.size() && (count == 0 || !refusals_.depend_on(ops[count - 1].kind())))
        ++count;
      if (count == 1)
        expected_.push_back(asked(ops.front()));
      else
        ask_at_once(ops.first(count));
      ops = ops.subspan(count);
    }
  }

  [[nodiscard]] std::optional<std::string> end() override {
    if (!lives() || !std::exchange(open_, false)) return std::nullopt;
    json::object answer;
    auto death = adapter_->ask({{"close", case_}}, adapter_->deadlines().open, answer);
    if (death) dead_ = *death;
    return death;
  }

 private:
  struct Answer {
    Observation seen;
    std::uint64_t nanoseconds = 0;
  };
  /// A death amid a batch: who runs its operations one by one knows which one it is.
  struct Repeated {
    std::string how;
    std::size_t left;  ///< operations that it may be
  };

  [[nodiscard]] bool lives() const { return dead_.empty() && pid_ > 0 && adapter_->pid() == pid_; }
  [[nodiscard]] SharedMemory* in_memory() {
    SharedMemory* memory = adapter_->memory();
    if (memory != nullptr) memory->restart();
    return memory;
  }
  [[nodiscard]] static Observation died(std::string how) {
    return {.error = fail(Code::kDied, std::move(how))};
  }

  [[nodiscard]] Answer asked(const Op& op) {
    if (!lives())
      return {died(dead_.empty() ? "in another case: " + adapter_->last_death() : dead_)};
    if (auto refusal = refusals_.of(op)) return {refused(*std::move(refusal))};
    const TensorsIn memory(in_memory());
    json::object request = described(op);
    request["case"] = case_;
    json::object answer;
    if (auto death = adapter_->ask(std::move(request), adapter_->deadlines().operation, answer))
      return {died(*std::move(death))};
    Answer given = read(op, answer);
    refusals_.learn(op, given.seen);
    history_.push_back(op);
    if (repeated_ && --repeated_->left == 0 && !given.seen.failed_with(Code::kDied))
      return {died(repeated_->how + std::string(kNotRepeated))};
    return given;
  }

  // Requires  what is refused of the operations does not depend on their answers.
  void ask_at_once(std::span<const Op> ops) {
    const TensorsIn memory(in_memory());
    std::vector<Answer> answers(ops.size());
    json::array list;
    for (std::size_t i = 0; i < ops.size(); ++i)
      if (auto refusal = refusals_.of(ops[i]))
        answers[i] = {refused(*std::move(refusal))};
      else
        list.push_back(described(ops[i]));
    const std::size_t count = list.size();
    json::array given;
    if (count > 0) {
      json::object answer;
      const json::object request{{"case", case_}, {"batch", std::move(list)}};
      if (auto death = adapter_->ask(request, adapter_->deadlines().operation, answer))
        return ask_again(ops.size(), *std::move(death));
      json::value* batch = answer.if_contains("batch");
      if (batch == nullptr || !batch->is_array() || batch->get_array().size() != count) {
        expected_.push_back(
            {died(adapter_->refuse(fmt::format("gave no {} answers to a batch", count)))});
        return;
      }
      given = std::move(batch->get_array());
    }
    for (std::size_t i = 0, next = 0; i < ops.size(); ++i) {
      if (!answers[i].seen.error) answers[i] = read(ops[i], given[next++]);
      refusals_.learn(ops[i], answers[i].seen);
      history_.push_back(ops[i]);
      expected_.push_back(std::move(answers[i]));
      if (expected_.back().seen.failed_with(Code::kDied)) return;
    }
  }

  // The next operations are asked one by one in a new process, which has run those before.
  void ask_again(std::size_t count, std::string how) {
    std::optional<std::string> refused;
    case_ = adapter_->next_case();
    auto death = open_case(*adapter_, kind_, setup_, case_, refused);
    pid_ = adapter_->pid();
    for (const Op& op : std::exchange(history_, {}))
      if (!death && !refused)
        if (const Answer again = asked(op); again.seen.failed_with(Code::kDied))
          death = again.seen.error->detail;
    if (death || refused) return expected_.push_back({died(how + std::string(kNotRepeated))});
    repeated_ = Repeated{std::move(how), count};
  }

  [[nodiscard]] Answer read(const Op& op, const json::value& said) {
    if (!said.is_object()) return {died(adapter_->refuse("answered with no object"))};
    const json::object& answer = said.get_object();
    Answer given;
    if (const json::value* time = answer.if_contains("ns"))
      if (const auto count = json::try_value_to<std::uint64_t>(*time)) given.nanoseconds = *count;
    if (const json::value* what = answer.if_contains("threw")) {
      given.seen.error = fail(Code::kThrew, what->is_string() ? std::string(what->get_string())
                                                              : json::serialize(*what));
      return given;
    }
    if (answer.contains("unsupported"))
      return {refused(fail(Code::kNotSupported, fmt::format("no operation {}", op.kind().name)))};
    const json::value* ret = answer.if_contains("ret");
    if (ret == nullptr)
      return {
          died(adapter_->refuse(fmt::format("answered {} with neither ret nor threw: {}",
                                            op.kind().name, shortened(json::serialize(answer)))))};
    JsonFault fault;
    auto seen = traces::read_observation(op.kind(), *ret, fault);
    if (!seen)
      return {
          died(adapter_->refuse(fmt::format("answered {} with {}", op.kind().name, fault.text())))};
    given.seen = *std::move(seen);
    if (!given.seen.error) return given;
    if (const json::value* detail = ret->get_object().if_contains("detail"))
      if (detail->is_string()) given.seen.error->detail = std::string(detail->get_string());
    if (given.seen.failed_with(Code::kDied)) given.seen.error->code = Code::kThrew;
    return given;
  }

  std::shared_ptr<Adapter> adapter_;
  const CacheKind& kind_;
  Setup setup_;
  pid_t pid_;
  std::int64_t case_;
  std::string dead_;
  bool open_ = true;
  Refusals refusals_;
  std::deque<Answer> expected_;  // to operations that are still to be applied
  std::vector<Op> history_;      // what was asked
  std::optional<Repeated> repeated_;
};

Result<std::unique_ptr<Session>> opened(const std::shared_ptr<Adapter>& adapter,
                                        const CacheKind& kind, const Setup& setup) {
  const HarnessWork work;
  std::optional<std::string> refused;
  const std::int64_t number = adapter->next_case();
  const auto death = open_case(*adapter, kind, setup, number, refused);
  if (refused) return fail(Code::kNotSupported, *refused);
  return std::make_unique<AdapterSession>(adapter, kind, setup, number,
                                          death ? "open: " + *death : "");
}

std::shared_ptr<Adapter> greeted(const std::string& command, const AdapterDeadlines& deadlines) {
  auto adapter = std::make_shared<Adapter>(command, deadlines);
  if (const auto death = adapter->start())
    throw UsageError(fmt::format("exec:{}: no greeting: {}", command, *death));
  adapter->stop();
  return adapter;
}

}  // namespace

Greeting greeting_of_adapter(const std::string& command, const AdapterDeadlines& deadlines) {
  return greeted(command, deadlines)->greeting();
}

std::vector<Subject> subjects_of_adapter(const Contracts& contracts, const std::string& command,
                                         const AdapterDeadlines& deadlines,
                                         const std::string& variant) {
  const auto adapter = greeted(command, deadlines);
  std::vector<Subject> subjects = greeted_subjects(contracts, adapter->greeting(),
                                                   variant.empty() ? "exec:" + command : variant);
  for (Subject& subject : subjects) {
    subject.open = [adapter, kind = subject.kind](const Setup& setup) {
      return opened(adapter, *kind, setup);
    };
    subject.takes_batches = adapter->greeting().batches;
  }
  return subjects;
}

}  // namespace kvo::tools
